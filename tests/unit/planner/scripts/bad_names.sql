SELECT prcie FROM bid
---
error[SQL-1042]: column "prcie" does not exist in bid
  1 | SELECT prcie FROM bid
    |        ^^^^^
hint: did you mean "price"?
====
SELECT bid.prcie FROM bid
---
error[SQL-1042]: column "prcie" does not exist in bid
  1 | SELECT bid.prcie FROM bid
    |            ^^^^^
hint: did you mean "price"?
====
SELECT b.price FROM bid
---
error[SQL-1044]: table "b" is not in FROM
  1 | SELECT b.price FROM bid
    |        ^
hint: there is bid
====
SELECT x.price FROM bid AS b
---
error[SQL-1044]: table "x" is not in FROM
  1 | SELECT x.price FROM bid AS b
    |        ^
hint: there is b
====
SELECT price FROM bids
---
error[SQL-1041]: table "bids" does not exist
  1 | SELECT price FROM bids
    |                   ^^^^
hint: did you mean "bid"?
====
SELECT price FROM bidd AS b
---
error[SQL-1041]: table "bidd" does not exist
  1 | SELECT price FROM bidd AS b
    |                   ^^^^
hint: did you mean "bid"?
====
WITH auctions AS (SELECT 1 AS a) SELECT * FROM auction
---
error[SQL-1041]: table "auction" does not exist
  1 | WITH auctions AS (SELECT 1 AS a) SELECT * FROM auction
    |                                                ^^^^^^^
hint: did you mean "auctions"?
====
SELECT name FROM airline, city
---
error[SQL-1043]: column "name" is in airline and in city
  1 | SELECT name FROM airline, city
    |        ^^^^
hint: write airline.name or city.name
====
SELECT * FROM bid, bid
---
error[SQL-1045]: table name "bid" occurs twice in FROM
  1 | SELECT * FROM bid, bid
    |                    ^^^
hint: give one of them an alias: bid AS other
====
# caret: person
SELECT * FROM bid a JOIN person A ON a.bidder = a.id
---
error[SQL-1045]: table name "A" occurs twice in FROM
  1 | SELECT * FROM bid a JOIN person A ON a.bidder = a.id
    |                          ^^^^^^
hint: give one of them an alias: A AS other
====
SELECT zzzzzzz FROM city
---
error[SQL-1042]: column "zzzzzzz" does not exist in city
  1 | SELECT zzzzzzz FROM city
    |        ^^^^^^^
hint: there is country, name, size
====
SELECT lenght(channel) FROM bid
---
error[SQL-1101]: there is no function lenght
  1 | SELECT lenght(channel) FROM bid
    |        ^^^^^^^^^^^^^^^
hint: did you mean "length"?
====
SELECT cuont(*) FROM bid
---
error[SQL-1101]: there is no function cuont
  1 | SELECT cuont(*) FROM bid
    |        ^^^^^^^^
hint: did you mean "count"?
====
SELECT sum(*) FROM bid
---
error[SQL-1102]: sum(*) does not exist
  1 | SELECT sum(*) FROM bid
    |        ^^^^^^
hint: only COUNT takes *
====
SELECT count() FROM bid
---
error[SQL-1102]: count() counts nothing
  1 | SELECT count() FROM bid
    |        ^^^^^^^
hint: write COUNT(*)
====
SELECT upper() FROM bid
---
error[SQL-1102]: upper takes 1 argument, not 0
  1 | SELECT upper() FROM bid
    |        ^^^^^^^
hint: write upper(s)
====
SELECT upper(channel, 1, 2) FROM bid
---
error[SQL-1102]: upper takes 1 argument, not 3
  1 | SELECT upper(channel, 1, 2) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^
hint: write upper(s)
====
SELECT upper(DISTINCT channel) FROM bid
---
error[SQL-1105]: DISTINCT goes with aggregate functions, upper is none
  1 | SELECT upper(DISTINCT channel) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^
====
SELECT count_if(DISTINCT price > 1) FROM bid
---
error[SQL-1105]: count_if has no DISTINCT form
  1 | SELECT count_if(DISTINCT price > 1) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write count_if(x)
====
SELECT abs(channel, 1) FROM bid
---
error[SQL-1102]: abs takes 1 argument, not 2
  1 | SELECT abs(channel, 1) FROM bid
    |        ^^^^^^^^^^^^^^^
hint: write abs(x)
====
SELECT * FROM TUMBEL(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
---
error[SQL-1101]: table function "TUMBEL" does not exist
  1 | SELECT * FROM TUMBEL(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
    |               ^^^^^^
hint: did you mean "TUMBLE"?
====
SELECT c.* FROM bid
---
error[SQL-1044]: table "c" is not in FROM
  1 | SELECT c.* FROM bid
    |        ^
hint: there is bid
====
SELECT * EXCEPT (prise) FROM bid
---
error[SQL-1042]: column "prise" is not among those of *
  1 | SELECT * EXCEPT (prise) FROM bid
    |                  ^^^^^
hint: did you mean "price"?
====
SELECT *
---
error[SQL-1042]: * has no columns here
  1 | SELECT *
    |        ^
hint: write FROM and a table
====
SELECT price
---
error[SQL-1042]: column "price" does not exist
  1 | SELECT price
    |        ^^^^^
hint: there is no FROM, so no column can be read
====
SELECT * EXCEPT (name, country, size) FROM city
---
error[SQL-1042]: * EXCEPT leaves no column
  1 | SELECT * EXCEPT (name, country, size) FROM city
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
====
SELECT a FROM (SELECT price FROM bid) AS s
---
error[SQL-1042]: column "a" does not exist in s
  1 | SELECT a FROM (SELECT price FROM bid) AS s
    |        ^
hint: there is price
====
SELECT * FROM (VALUES (1, 2)) AS v(a)
---
error[SQL-1046]: 1 column name is given for 2 columns
  1 | SELECT * FROM (VALUES (1, 2)) AS v(a)
    |                               ^^^^^^^
hint: the columns are col1, col2
====
SELECT * FROM (VALUES (1, 2)) AS v(a, a)
---
error[SQL-1045]: column name "a" is given twice
  1 | SELECT * FROM (VALUES (1, 2)) AS v(a, a)
    |                                       ^
====
SELECT 1 FROM city ORDER BY 3 LIMIT 1
---
error[SQL-1050]: ORDER BY 3 is no position in a list of 1 column
  1 | SELECT 1 FROM city ORDER BY 3 LIMIT 1
    |                             ^
hint: positions go from 1 to 1
====
SELECT name FROM city GROUP BY 2
---
error[SQL-1050]: GROUP BY 2 is no position in a list of 1 column
  1 | SELECT name FROM city GROUP BY 2
    |                                ^
hint: positions go from 1 to 1
====
SELECT DISTINCT name FROM city ORDER BY size LIMIT 1
---
error[SQL-1051]: ORDER BY of a SELECT DISTINCT reads a column of its list
  1 | SELECT DISTINCT name FROM city ORDER BY size LIMIT 1
    |                                         ^^^^
hint: add it to the list, or order by what is there
====
WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a
---
error[SQL-1045]: the name "a" occurs twice in WITH
  1 | WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a
    |                       ^
====
SELECT main.bid.price FROM bid
---
error[SQL-1044]: table "main" is not in FROM
  1 | SELECT main.bid.price FROM bid
    |        ^^^^
hint: there is bid
====
SELECT * FROM main.bid
---
error[SQL-1351]: database "main" does not exist in default_catalog
  1 | SELECT * FROM main.bid
    |               ^^^^^^^^
hint: there is default_database, system
====
SELECT price.amount FROM bid
---
error[SQL-1108]: DECIMAL(10, 2) has no field "amount"
  1 | SELECT price.amount FROM bid
    |              ^^^^^^
hint: a dot reads a field of a ROW
====
SELECT CAST(price AS BIGNIT) FROM bid
---
error[SQL-1204]: type "BIGNIT" does not exist
  1 | SELECT CAST(price AS BIGNIT) FROM bid
    |                      ^^^^^^
hint: did you mean "BIGINT"?
====
SELECT CAST(price AS DECIMAL(50, 2)) FROM bid
---
error[SQL-1201]: DECIMAL(50,2) is not a type: 1 <= precision <= 38, 0 <= scale <= precision
  1 | SELECT CAST(price AS DECIMAL(50, 2)) FROM bid
    |                      ^^^^^^^
====
SET 'paralelism.default' = '2'
---
error[SQL-1401]: setting 'paralelism.default' does not exist
  1 | SET 'paralelism.default' = '2'
    |     ^^^^^^^^^^^^^^^^^^^^
hint: did you mean "parallelism.default"?
====
SET 'parallelism.default' = 'two'
---
error[SQL-1402]: 'two' is no value for setting 'parallelism.default'
  1 | SET 'parallelism.default' = 'two'
    |                             ^^^^^
hint: it takes a whole number
====
SET 'parallelism.default' = '0'
---
error[SQL-1402]: '0' is no value for setting 'parallelism.default'
  1 | SET 'parallelism.default' = '0'
    |                             ^^^
hint: it takes a whole number from 1 to 1024
====
SET 'execution.runtime-mode' = 'bath'
---
error[SQL-1402]: 'bath' is no value for setting 'execution.runtime-mode'
  1 | SET 'execution.runtime-mode' = 'bath'
    |                                ^^^^^^
hint: did you mean "batch"? it takes automatic, streaming or batch
====
SET 'execution.checkpointing.interval' = '5 parsecs'
---
error[SQL-1402]: '5 parsecs' is no value for setting 'execution.checkpointing.interval'
  1 | SET 'execution.checkpointing.interval' = '5 parsecs'
    |                                          ^^^^^^^^^^^
hint: it takes a duration such as '5 s', '50 ms' or '1 min'
====
SET 'table.local-time-zone' = 'Mars/Olympus'
---
error[SQL-1402]: 'Mars/Olympus' is no value for setting 'table.local-time-zone'
  1 | SET 'table.local-time-zone' = 'Mars/Olympus'
    |                               ^^^^^^^^^^^^^^
hint: it takes a time zone such as 'UTC' or 'Europe/Berlin'
====
SET 'table.dml-sync' = 'maybe'
---
error[SQL-1402]: 'maybe' is no value for setting 'table.dml-sync'
  1 | SET 'table.dml-sync' = 'maybe'
    |                        ^^^^^^^
hint: it takes automatic, true or false
====
RESET 'paralelism.default'
---
error[SQL-1401]: setting 'paralelism.default' does not exist
  1 | RESET 'paralelism.default'
    |       ^^^^^^^^^^^^^^^^^^^^
hint: did you mean "parallelism.default"?
====
DROP TABLE bidd
---
error[SQL-1041]: table "bidd" does not exist
  1 | DROP TABLE bidd
    |            ^^^^
hint: did you mean "bid"?
====
DROP VIEW bid
---
error[SQL-1303]: "bid" is a table, not a view
  1 | DROP VIEW bid
    |           ^^^
hint: write TABLE: DROP TABLE bid, SHOW CREATE TABLE bid
====
DROP TABLE rich
---
error[SQL-1303]: "rich" is a view, not a table
  1 | DROP TABLE rich
    |            ^^^^
hint: write VIEW: DROP VIEW rich, SHOW CREATE VIEW rich
====
INSERT INTO total SELECT 1
---
error[SQL-1041]: table "total" does not exist
  1 | INSERT INTO total SELECT 1
    |             ^^^^^
hint: did you mean "totals"?
====
INSERT INTO rich SELECT 1
---
error[SQL-1303]: "rich" is a view, not a table
  1 | INSERT INTO rich SELECT 1
    |             ^^^^
hint: write VIEW: DROP VIEW rich, SHOW CREATE VIEW rich
