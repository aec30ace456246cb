SELECT * FROM bid AS b FULL JOIN LATERAL (SELECT size FROM city WHERE name = b.channel) AS c ON TRUE
---
error[SQL-1601]: LATERAL is joined by CROSS JOIN or LEFT JOIN
  1 | SELECT * FROM bid AS b FULL JOIN LATERAL (SELECT size FROM city WHERE name = b.channel) AS c ON TRUE
    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write CROSS JOIN, or LEFT JOIN .. ON TRUE to keep rows without any
====
SELECT * FROM bid AS b, LATERAL (SELECT size FROM city WHERE nme = b.channel) AS c
---
error[SQL-1042]: column "nme" does not exist in city
  1 | SELECT * FROM bid AS b, LATERAL (SELECT size FROM city WHERE nme = b.channel) AS c
    |                                                              ^^^
hint: did you mean "name"?
====
# caret: LATERAL (SELECT size FROM city)
SELECT * FROM bid AS b, LATERAL (SELECT size FROM city) AS b
---
error[SQL-1045]: table name "b" occurs twice in FROM
  1 | SELECT * FROM bid AS b, LATERAL (SELECT size FROM city) AS b
    |                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: give one of them an alias: b AS other
====
SELECT * FROM bid AS b, (SELECT size FROM city WHERE name = b.channel) AS c
---
error[SQL-1044]: table "b" is not in FROM
  1 | SELECT * FROM bid AS b, (SELECT size FROM city WHERE name = b.channel) AS c
    |                                                             ^
hint: there is city
====
SELECT * FROM bid AS b, LATERAL (SELECT size FROM city WHERE name = b.channel) AS c(x, y)
---
error[SQL-1046]: 2 column names are given for 1 columns
  1 | SELECT * FROM bid AS b, LATERAL (SELECT size FROM city WHERE name = b.channel) AS c(x, y)
    |                                                                                ^^^^^^^^^^
hint: the columns are size
====
# a star is what it is in any list
SELECT * FROM bid AS b, LATERAL (SELECT nope.*)
---
error[SQL-1044]: table "nope" is not in FROM
  1 | SELECT * FROM bid AS b, LATERAL (SELECT nope.*)
    |                                         ^^^^
====
SELECT * FROM bid AS b, LATERAL (SELECT *)
---
error[SQL-1042]: * has no columns here
  1 | SELECT * FROM bid AS b, LATERAL (SELECT *)
    |                                         ^
hint: write FROM and a table
====
SELECT * FROM bid AS b, (SELECT b.*) AS c
---
error[SQL-1044]: table "b" is not in FROM
  1 | SELECT * FROM bid AS b, (SELECT b.*) AS c
    |                                 ^
====
# an aggregate of outer columns alone is one of the outer query
SELECT (SELECT max(b.price) FROM city) FROM bid AS b
---
error[SQL-1601]: max(price) is an aggregate of the query around the subquery: it reads only columns of that
  1 | SELECT (SELECT max(b.price) FROM city) FROM bid AS b
    |                ^^^^^^^^^^^^
hint: write the aggregate in the query around it; for the value of its row, select the column without an aggregate
====
SELECT m FROM bid AS b, LATERAL (SELECT count(*) AS n, sum(b.price) FILTER (WHERE b.auction > 1) AS m FROM city) AS c
---
error[SQL-1601]: sum(price) FILTER (WHERE (auction > 1)) is an aggregate of the query around the subquery: it reads only columns of that
  1 | ECT m FROM bid AS b, LATERAL (SELECT count(*) AS n, sum(b.price) FILTER (WHERE b.auction > 1) AS m FROM city) AS c
    |                                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write the aggregate in the query around it; for the value of its row, select the column without an aggregate
====
SELECT (SELECT max(channel) FROM city) FROM bid
---
error[SQL-1601]: max(channel) is an aggregate of the query around the subquery: it reads only columns of that
  1 | SELECT (SELECT max(channel) FROM city) FROM bid
    |                ^^^^^^^^^^^^
hint: write the aggregate in the query around it; for the value of its row, select the column without an aggregate
====
SELECT (SELECT max(channel) FROM city LIMIT 1) FROM bid
---
error[SQL-1601]: max(channel) is an aggregate of the query around the subquery: it reads only columns of that
  1 | SELECT (SELECT max(channel) FROM city LIMIT 1) FROM bid
    |                ^^^^^^^^^^^^
hint: write the aggregate in the query around it; for the value of its row, select the column without an aggregate
====
SELECT (SELECT DISTINCT max(channel) FROM city ORDER BY 1 OFFSET 1) FROM bid
---
error[SQL-1601]: max(channel) is an aggregate of the query around the subquery: it reads only columns of that
  1 | SELECT (SELECT DISTINCT max(channel) FROM city ORDER BY 1 OFFSET 1) FROM bid
    |                         ^^^^^^^^^^^^
hint: write the aggregate in the query around it; for the value of its row, select the column without an aggregate
