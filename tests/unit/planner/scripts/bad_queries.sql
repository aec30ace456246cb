SELECT * FROM bid WHERE auction IN (SELECT id, name FROM person)
---
error[SQL-1085]: IN compares 1 value with 2 columns
  1 | SELECT * FROM bid WHERE auction IN (SELECT id, name FROM person)
    |                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: list 1 value in the subquery
====
SELECT * FROM bid WHERE (auction, bidder) IN (SELECT id FROM person)
---
error[SQL-1085]: IN compares 2 values with 1 column
  1 | SELECT * FROM bid WHERE (auction, bidder) IN (SELECT id FROM person)
    |                                              ^^^^^^^^^^^^^^^^^^^^^^^
hint: list 2 values in the subquery
====
SELECT (SELECT size, name FROM city LIMIT 1)
---
error[SQL-1085]: a scalar subquery returns one column, this returns 2
  1 | SELECT (SELECT size, name FROM city LIMIT 1)
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: list one column; several are compared as in (a, b) = (SELECT x, y ..), without ROW
====
SELECT (SELECT max(size) FROM city WHERE name = bid.chanel) FROM bid
---
error[SQL-1042]: column "chanel" does not exist in bid
  1 | SELECT (SELECT max(size) FROM city WHERE name = bid.chanel) FROM bid
    |                                                     ^^^^^^
hint: did you mean "channel"?
====
SELECT channel, count(*) FROM bid GROUP BY (SELECT max(size) FROM city)
---
error[SQL-1061]: column "channel" is neither in GROUP BY nor in an aggregate
  1 | SELECT channel, count(*) FROM bid GROUP BY (SELECT max(size) FROM city)
    |        ^^^^^^^
hint: add it to GROUP BY, or write any_value(channel)
====
SELECT grouping(channel) FROM bid
---
error[SQL-1063]: GROUPING goes with GROUP BY
  1 | SELECT grouping(channel) FROM bid
    |        ^^^^^^^^^^^^^^^^^
hint: add GROUP BY ROLLUP (..)
====
SELECT channel, grouping(bidder) FROM bid GROUP BY ROLLUP (channel)
---
error[SQL-1063]: bidder is no key of GROUP BY
  1 | SELECT channel, grouping(bidder) FROM bid GROUP BY ROLLUP (channel)
    |                          ^^^^^^
hint: GROUPING takes keys of GROUP BY
====
SELECT count(*) FROM bid GROUP BY CUBE (auction, bidder, price, channel, ts, 1, 2, 3, 4)
---
error[SQL-1007]: a CUBE of 9 makes more than 256 grouping sets
  1 | SELECT count(*) FROM bid GROUP BY CUBE (auction, bidder, price, channel, ts, 1, 2, 3, 4)
    |                                                                                         ^
hint: name the sets you need: GROUPING SETS (..)
====
SELECT name, size FROM city INTERSECT SELECT name FROM airline
---
error[SQL-1083]: the branches of INTERSECT differ in width: 2 columns and 1
  1 | SELECT name, size FROM city INTERSECT SELECT name FROM airline
    |                                       ^^^^^^^^^^^^^^^^^^^^^^^^
hint: name the same columns in every branch
====
# caret: SELECT joined FROM person
SELECT size FROM city EXCEPT SELECT joined FROM person
---
error[SQL-1084]: column "size" of EXCEPT has no common type: INT, TIMESTAMP(3)
  1 | SELECT size FROM city EXCEPT SELECT joined FROM person
    |                              ^^^^^^^^^^^^^^^^^^^^^^^^^
hint: CAST it in one branch
====
SELECT TUMBLE_END(ts, INTERVAL '2' HOUR) FROM bid GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)
---
error[SQL-1708]: tumble_end reads another window than GROUP BY names
  1 | SELECT TUMBLE_END(ts, INTERVAL '2' HOUR) FROM bid GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: repeat the arguments of tumble in GROUP BY
====
SELECT count(*) FROM bid GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), HOP(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR)
---
error[SQL-1707]: GROUP BY names two different windows
  1 | SELECT count(*) FROM bid GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), HOP(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR)
    |                                                                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: window the rows in FROM: TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), ..)), one subquery for each window
====
SELECT count(*) FROM bid GROUP BY TUMBLE(ts)
---
error[SQL-1102]: tumble in GROUP BY takes a time column and its lengths
  1 | SELECT count(*) FROM bid GROUP BY TUMBLE(ts)
    |                                   ^^^^^^^^^^
hint: write TUMBLE(ts, INTERVAL .. MINUTE)
====
SELECT window(ts, '2 hours') FROM bid GROUP BY window(ts, '1 hour')
---
error[SQL-1708]: the window window is no value by itself
  1 | SELECT window(ts, '2 hours') FROM bid GROUP BY window(ts, '1 hour')
    |        ^^^^^^^^^^^^^^^^^^^^^
hint: select window.start and window.end
====
SELECT count(*) FROM log GROUP BY window(noticed, '1 hour')
---
error[SQL-1701]: "noticed" is no time attribute, so no window can be cut on it
  1 | SELECT count(*) FROM log GROUP BY window(noticed, '1 hour')
    |                                          ^^^^^^^
hint: add WATERMARK FOR noticed AS noticed - INTERVAL '5' SECOND to CREATE TABLE log
====
SELECT count(*) FROM bid GROUP BY SESSION(ts, INTERVAL '5' MINUTE), bidder + 1
---
error[SQL-1706]: sessions in GROUP BY go with keys that are columns
  1 | SELECT count(*) FROM bid GROUP BY SESSION(ts, INTERVAL '5' MINUTE), bidder + 1
    |                                                                     ^^^^^^^^^^
hint: compute the key in a subquery in FROM and group by its column
====
SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) FROM bid
---
error[SQL-1101]: there is no function tumble_start
  1 | SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: SHOW FUNCTIONS lists every function
====
CREATE TABLE copy LIKE bidd
---
error[SQL-1041]: table "bidd" does not exist
  1 | CREATE TABLE copy LIKE bidd
    |                        ^^^^
hint: did you mean "bid"?
====
CREATE TABLE copy LIKE bid (INCLUDING NOTHING)
---
error[SQL-1001]: this is no list of what LIKE copies
  1 | CREATE TABLE copy LIKE bid (INCLUDING NOTHING)
    |                            ^^^^^^^^^^^^^^^^^^^
hint: write (EXCLUDING part), parts being ALL, CONSTRAINTS, GENERATED, METADATA, OPTIONS, PARTITIONS, WATERMARKS
====
CREATE TABLE copy WITH ('connector' = 'print') AS SELECT NULL AS x
---
error[SQL-1309]: column "x" is always NULL, so the table cannot know its type
  1 | CREATE TABLE copy WITH ('connector' = 'print') AS SELECT NULL AS x
    |                                                   ^^^^^^^^^^^^^^^^
hint: write CAST(NULL AS type) AS x
====
CREATE TABLE copy WITH ('connector' = 'datagenn') AS SELECT 1 AS x
---
error[SQL-1502]: there is no connector 'datagenn'
  1 | CREATE TABLE copy WITH ('connector' = 'datagenn') AS SELECT 1 AS x
    |                                       ^^^^^^^^^^
hint: did you mean "datagen"?
====
CREATE TABLE copy WITH ('connector' = 'print') AS SELECT channel, channel FROM bid
---
error[SQL-1301]: column "channel" is declared twice
  1 | CREATE TABLE copy WITH ('connector' = 'print') AS SELECT channel, channel FROM bid
    |                                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
====
SELECT channel FROM bid INTERSCT SELECT name FROM city
---
error[SQL-1001]: unexpected "INTERSCT"
  1 | SELECT channel FROM bid INTERSCT SELECT name FROM city
    |                         ^^^^^^^^
hint: did you mean "INTERSECT"?
====
SELECT * FROM bid WHERE auction = ANY (1)
---
error[SQL-1062]: the aggregate any cannot be used in WHERE
  1 | SELECT * FROM bid WHERE auction = ANY (1)
    |                                   ^^^^^^^
hint: to compare with one of several values write x IN (a, b), with an array's ARRAY_CONTAINS(array, x)
====
SELECT * FROM bid WHERE auction = ANY (ARRAY[1, 2])
---
error[SQL-1062]: the aggregate any cannot be used in WHERE
  1 | SELECT * FROM bid WHERE auction = ANY (ARRAY[1, 2])
    |                                   ^^^^^^^^^^^^^^^^^
hint: to compare with one of several values write x IN (a, b), with an array's ARRAY_CONTAINS(array, x)
====
SELECT COALESCE(SELECT size FROM city, 0) FROM bid
---
error[SQL-1001]: a query is a value in parentheses only
  1 | SELECT COALESCE(SELECT size FROM city, 0) FROM bid
    |                 ^^^^^^
hint: put it into parentheses of its own: (SELECT ..)
====
SELECT rlike FROM bid
---
error[SQL-1008]: RLIKE is a reserved word and cannot be a column here
  1 | SELECT rlike FROM bid
    |        ^^^^^
hint: quote it to use it as a name: `rlike`
====
TABLE bid WHERE price > 1
---
error[SQL-1001]: unexpected "WHERE": the end of the query or its next part was expected
  1 | TABLE bid WHERE price > 1
    |           ^^^^^
====
SELECT b.price FROM bid AS b FULL JOIN person AS p ON p.id = b.auction AND EXISTS (SELECT 1 FROM city AS c WHERE c.size > p.id + b.auction)
---
error[SQL-1601]: a subquery in the ON of a FULL JOIN reads both sides
  1 | S b FULL JOIN person AS p ON p.id = b.auction AND EXISTS (SELECT 1 FROM city AS c WHERE c.size > p.id + b.auction)
    |                                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write a LEFT JOIN, and UNION ALL of the rows of the other side for which NOT EXISTS
====
SELECT price, (SELECT count(*) FROM TUMBLE(TABLE (SELECT * FROM bid AS c WHERE c.auction = b.auction), DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS n FROM bid AS b
---
error[SQL-1601]: a correlated subquery cannot read the outer query below tumble windows
  1 | BLE (SELECT * FROM bid AS c WHERE c.auction = b.auction), DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS n FROM bid AS b
    |                                               ^^^^^^^^^
hint: compute this in a query of WITH or a view without the outer column, and compare with the outer column in the WHERE of the subquery
====
SELECT * FROM bid AS b ASOF JOIN person AS p ON b.bidder = p.id
---
error[SQL-1601]: ASOF JOIN takes equalities and one comparison of both sides by >=, >, <= or <
  1 | SELECT * FROM bid AS b ASOF JOIN person AS p ON b.bidder = p.id
    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write ASOF JOIN t ON a.key = t.key AND a.ts >= t.ts, and filter in WHERE or in a subquery
====
SELECT * FROM bid AS b ASOF FULL JOIN person AS p ON b.bidder = p.id AND b.ts >= p.joined
---
error[SQL-1601]: ASOF FULL JOIN is not supported yet
  1 | SELECT * FROM bid AS b ASOF FULL JOIN person AS p ON b.bidder = p.id AND b.ts >= p.joined
    |                             ^^^^
hint: exchange the tables and write ASOF LEFT JOIN
====
SELECT * FROM (bid AS b JOIN person AS p ON b.bidder = p.id) AS x
---
error[SQL-1601]: an alias of a join in parentheses is not supported yet
  1 | SELECT * FROM (bid AS b JOIN person AS p ON b.bidder = p.id) AS x
    |                                                              ^^
hint: leave the alias out and write the aliases of the tables, or write (SELECT * FROM ..) AS x
====
SELECT MULTISET(SELECT id FROM person) FROM bid
---
error[SQL-1601]: MULTISET(SELECT ..) is not supported yet
  1 | SELECT MULTISET(SELECT id FROM person) FROM bid
    |        ^^^^^^^^
hint: write ARRAY(SELECT ..)
====
SELECT * FROM bid WHERE (auction, bidder) < ANY (SELECT id, id FROM person)
---
error[SQL-1085]: a scalar subquery returns one column, this returns 2
  1 | SELECT * FROM bid WHERE (auction, bidder) < ANY (SELECT id, id FROM person)
    |                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: list one column; several are compared as in (a, b) = (SELECT x, y ..), without ROW
====
SELECT count(*) FROM TUMBLE(TABLE (bid AS b JOIN person AS p ON b.bidder = p.id), DESCRIPTOR(ts), INTERVAL '1' MINUTE)
---
error[SQL-1601]: TABLE of a join is not supported yet
  1 | SELECT count(*) FROM TUMBLE(TABLE (bid AS b JOIN person AS p ON b.bidder = p.id), DESCRIPTOR(ts), INTERVAL '1' MIN
    |                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write TABLE (SELECT * FROM a JOIN b ON ..)
====
SELECT (auction, (SELECT max(size) FROM city)) IN (SELECT size, size FROM city) FROM bid
---
error[SQL-1601]: IN of several values that may be NULL, of which one is a subquery
  1 | SELECT (auction, (SELECT max(size) FROM city)) IN (SELECT size, size FROM city) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: select the inner subquery in a query in FROM, and compare its column
====
SELECT CURRENT_WATERMARK(auction) FROM bid
---
error[SQL-1701]: CURRENT_WATERMARK is asked of a column that is not the time of a table here
  1 | SELECT CURRENT_WATERMARK(auction) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: CURRENT_WATERMARK(ts) takes the column of a table that its WATERMARK FOR names; call it below joins, groups and ranks: FROM (SELECT *, CURRENT_WATERMARK(ts) AS w FROM t)
====
SELECT channel, count(*) FROM bid GROUP BY channel EMIT CHANGES EVERY 0 ROWS
---
error[SQL-1012]: a number of rows is a whole number above 0, such as 100
  1 | SELECT channel, count(*) FROM bid GROUP BY channel EMIT CHANGES EVERY 0 ROWS
    |                                                                       ^
====
SELECT channel, count(*) FROM bid GROUP BY channel EMIT CHANGES AFTER 5 ROWS OR 6 ROWS
---
error[SQL-1001]: unexpected "6": INTERVAL was expected
  1 | SELECT channel, count(*) FROM bid GROUP BY channel EMIT CHANGES AFTER 5 ROWS OR 6 ROWS
    |                                                                                 ^
