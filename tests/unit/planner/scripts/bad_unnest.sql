SELECT * FROM bid, UNNEST(price) AS u(e)
---
error[SQL-1103]: unnest: DECIMAL(10, 2) has no elements
  1 | SELECT * FROM bid, UNNEST(price) AS u(e)
    |                    ^^^^^^^^^^^^^
hint: it takes an ARRAY or a MAP
====
SELECT * FROM bid, UNNEST(prise) AS u(e)
---
error[SQL-1042]: column "prise" does not exist in bid
  1 | SELECT * FROM bid, UNNEST(prise) AS u(e)
    |                           ^^^^^
hint: did you mean "price"?
====
SELECT * FROM (SELECT array(price) AS a FROM bid), UNNEST(a) AS u(x, y)
---
error[SQL-1046]: 2 column names are given for 1 column
  1 | SELECT * FROM (SELECT array(price) AS a FROM bid), UNNEST(a) AS u(x, y)
    |                                                              ^^^^^^^^^^
hint: the columns are col
====
SELECT * FROM (SELECT map(channel, price) AS a FROM bid), UNNEST(a) AS u(x, X)
---
error[SQL-1045]: column name "X" is given twice
  1 | SELECT * FROM (SELECT map(channel, price) AS a FROM bid), UNNEST(a) AS u(x, X)
    |                                                                             ^
====
SELECT * FROM bid, unest(array(1)) AS u(x)
---
error[SQL-1101]: table function "unest" does not exist
  1 | SELECT * FROM bid, unest(array(1)) AS u(x)
    |                    ^^^^^^^^^^^^^^^
hint: did you mean "unnest"?
====
SELECT * FROM bid, LATERAL TABLE(tumbel(1)) AS u(x)
---
error[SQL-1101]: table function "tumbel" does not exist
  1 | SELECT * FROM bid, LATERAL TABLE(tumbel(1)) AS u(x)
    |                                  ^^^^^^^^^
hint: did you mean "TUMBLE"?
====
SELECT * FROM TUMBEL(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR)
---
error[SQL-1101]: table function "TUMBEL" does not exist
  1 | SELECT * FROM TUMBEL(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR)
    |               ^^^^^^
hint: did you mean "TUMBLE"?
====
SELECT 1 + explode(array(price)) FROM bid
---
error[SQL-1107]: explode returns rows: it is a table function
  1 | SELECT 1 + explode(array(price)) FROM bid
    |            ^^^^^^^^^^^^^^^^^^^^^
hint: write FROM t, LATERAL TABLE(explode(..)) AS f(..)
====
SELECT * FROM bid RIGHT JOIN UNNEST(array(1)) AS u(x) ON TRUE
---
error[SQL-1601]: a table function is joined by CROSS JOIN or LEFT JOIN
  1 | SELECT * FROM bid RIGHT JOIN UNNEST(array(1)) AS u(x) ON TRUE
    |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write CROSS JOIN, or LEFT JOIN .. ON TRUE to keep rows without any
====
# caret: UNNEST(array(1))
SELECT * FROM bid, UNNEST(array(1)) AS bid(x)
---
error[SQL-1045]: table name "bid" occurs twice in FROM
  1 | SELECT * FROM bid, UNNEST(array(1)) AS bid(x)
    |                    ^^^^^^^^^^^^^^^^
hint: give one of them an alias: bid AS other
====
SELECT * FROM bid, UNNEST(array(1)) WITH ORDINALTY AS u(x, n)
---
error[SQL-1001]: unexpected "ORDINALTY"
  1 | SELECT * FROM bid, UNNEST(array(1)) WITH ORDINALTY AS u(x, n)
    |                                          ^^^^^^^^^
hint: did you mean "ORDINALITY"?
====
SELECT * FROM bid, inline(array(1))
---
error[SQL-1103]: inline: argument 1 is ARRAY<INT>, wanted an ARRAY of rows
  1 | SELECT * FROM bid, inline(array(1))
    |                    ^^^^^^^^^^^^^^^^
hint: usage: inline(x)
====
SELECT * FROM stack(auction, 1, 2)
---
error[SQL-1042]: column "auction" does not exist
  1 | SELECT * FROM stack(auction, 1, 2)
    |                     ^^^^^^^
hint: there is no FROM, so no column can be read
====
SELECT * FROM bid, stack(auction, 1, 2)
---
error[SQL-1103]: stack: the number of rows is no constant above zero
  1 | SELECT * FROM bid, stack(auction, 1, 2)
    |                    ^^^^^^^^^^^^^^^^^^^^
hint: write stack(2, a, b, c, d) for two rows of two columns
====
SELECT * FROM generate_series(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 00:00:00')
---
error[SQL-1103]: generate_series: a series of times needs a step
  1 | SELECT * FROM generate_series(TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 00:00:00')
    |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write an INTERVAL as the third argument
====
SELECT * FROM range('a')
---
error[SQL-1103]: range: argument 1 is STRING, wanted an integer
  1 | SELECT * FROM range('a')
    |               ^^^^^^^^^^
hint: usage: range([first, ]end[, step])
====
SELECT * FROM bid, LATERAL VIEW explode(array(1)) t AS x
---
error[SQL-1001]: unexpected "VIEW": TABLE, UNNEST, a table function or "(" was expected
  1 | SELECT * FROM bid, LATERAL VIEW explode(array(1)) t AS x
    |                            ^^^^
====
SELECT * FROM bid LATERAL VIEW explode(array(1) t AS x
---
error[SQL-1001]: unexpected "t": ")" was expected
  1 | SELECT * FROM bid LATERAL VIEW explode(array(1) t AS x
    |                                                 ^
hint: a comma is missing before t
====
SELECT e FROM UNNEST(t.a) AS u(e), (SELECT array(1) AS a) AS t
---
error[SQL-1044]: table "t" is not in FROM
  1 | SELECT e FROM UNNEST(t.a) AS u(e), (SELECT array(1) AS a) AS t
    |                      ^
====
SELECT explode(array(price)), explode(array(1)) FROM bid
---
error[SQL-1111]: a SELECT list has at most one table function
  1 | SELECT explode(array(price)), explode(array(1)) FROM bid
    |                               ^^^^^^^^^^^^^^^^^
hint: write it in FROM: CROSS JOIN UNNEST(..) AS u(x), or LATERAL VIEW explode(..) u AS x
====
SELECT auction, explode(array(1)) FROM bid GROUP BY auction
---
error[SQL-1111]: a table function cannot be used beside GROUP BY
  1 | SELECT auction, explode(array(1)) FROM bid GROUP BY auction
    |                 ^^^^^^^^^^^^^^^^^
hint: write it in FROM: CROSS JOIN UNNEST(..) AS u(x), or LATERAL VIEW explode(..) u AS x
====
SELECT posexplode(array(1)) AS x FROM bid
---
error[SQL-1046]: one name is given for 2 columns
  1 | SELECT posexplode(array(1)) AS x FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^
hint: leave the alias out, the columns are pos, col; or name them all: posexplode(..) AS (pos, col)
====
SELECT auction FROM bid WHERE explode(array(1)) > 3
---
error[SQL-1107]: explode returns rows: it is a table function
  1 | SELECT auction FROM bid WHERE explode(array(1)) > 3
    |                               ^^^^^^^^^^^^^^^^^
hint: write FROM t, LATERAL TABLE(explode(..)) AS f(..)
====
SELECT b.auction, x FROM bid AS b LEFT JOIN UNNEST(ARRAY[bidder]) AS u(x) ON x + 1
---
error[SQL-1103]: ON takes a BOOLEAN, this is BIGINT
  1 | SELECT b.auction, x FROM bid AS b LEFT JOIN UNNEST(ARRAY[bidder]) AS u(x) ON x + 1
    |                                                                              ^^^^^
hint: compare it with something
====
SELECT b.auction, x FROM bid AS b LEFT JOIN UNNEST(ARRAY[bidder]) AS u(x) ON y > 1
---
error[SQL-1042]: column "y" does not exist
  1 | SELECT b.auction, x FROM bid AS b LEFT JOIN UNNEST(ARRAY[bidder]) AS u(x) ON y > 1
    |                                                                              ^
hint: there is auction, bidder, channel, price, ts, x; a text is written in single quotes: 'y'
