SELECT * FROM TUMBLE(TABLE log, DESCRIPTOR(noticed), INTERVAL '1' MINUTE)
---
error[SQL-1701]: "noticed" is no time attribute, so no window can be cut on it
  1 | SELECT * FROM TUMBLE(TABLE log, DESCRIPTOR(noticed), INTERVAL '1' MINUTE)
    |                                            ^^^^^^^
hint: add WATERMARK FOR noticed AS noticed - INTERVAL '5' SECOND to CREATE TABLE log
====
SELECT * FROM TUMBLE(TABLE log, DESCRIPTOR(at), INTERVAL '1' MINUTE)
---
error[SQL-1701]: "at" is no time attribute, so no window can be cut on it
  1 | SELECT * FROM TUMBLE(TABLE log, DESCRIPTOR(at), INTERVAL '1' MINUTE)
    |                                            ^^
hint: a time attribute is a TIMESTAMP column with a WATERMARK, or a column AS PROCTIME(); at is BIGINT
====
SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(price), INTERVAL '1' MINUTE)
---
error[SQL-1701]: "price" is no time attribute, so no window can be cut on it
  1 | SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(price), INTERVAL '1' MINUTE)
    |                                            ^^^^^
hint: the time attribute is ts
====
SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(tss), INTERVAL '1' MINUTE)
---
error[SQL-1042]: column "tss" does not exist
  1 | SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(tss), INTERVAL '1' MINUTE)
    |                                            ^^^
hint: did you mean "ts"?
====
SELECT * FROM TUMBLE(TABLE (SELECT ts + INTERVAL '1' DAY AS ts FROM bid), DESCRIPTOR(ts), INTERVAL '1' MINUTE)
---
error[SQL-1701]: "ts" is no time attribute, so no window can be cut on it
  1 | SELECT * FROM TUMBLE(TABLE (SELECT ts + INTERVAL '1' DAY AS ts FROM bid), DESCRIPTOR(ts), INTERVAL '1' MINUTE)
    |                                                                                      ^^
hint: the time of bid ends where it is computed with, or rows are grouped or joined: window them before that, or GROUP BY time_bucket(INTERVAL '1' MINUTE, ts)
====
SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts))
---
error[SQL-1102]: TUMBLE needs the argument SIZE
  1 | SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts))
    |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)
====
SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), 10)
---
error[SQL-1705]: the size of a window is an interval of days or less
  1 | SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), 10)
    |                                                 ^^
hint: write INTERVAL '10' MINUTE; months and years have no fixed length
====
SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '0' MINUTE)
---
error[SQL-1705]: the size of a window is longer than nothing
  1 | SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '0' MINUTE)
    |                                                 ^^^^^^^^^^^^^^^^^^^
hint: write INTERVAL '10' MINUTE
====
SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MONTH)
---
error[SQL-1705]: the size of a window is an interval of days or less
  1 | SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MONTH)
    |                                                 ^^^^^^^^^^^^^^^^^^
hint: write INTERVAL '10' MINUTE; months and years have no fixed length
====
SELECT * FROM TUMBLE('bid', DESCRIPTOR(ts), INTERVAL '1' MINUTE)
---
error[SQL-1102]: the first argument of TUMBLE is TABLE name
  1 | SELECT * FROM TUMBLE('bid', DESCRIPTOR(ts), INTERVAL '1' MINUTE)
    |                      ^^^^^
hint: write TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)
====
SELECT * FROM TUMBLE(TABLE bid, ts, INTERVAL '1' MINUTE)
---
error[SQL-1102]: the time column is written DESCRIPTOR(column)
  1 | SELECT * FROM TUMBLE(TABLE bid, ts, INTERVAL '1' MINUTE)
    |                                 ^^
hint: write TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE)
====
SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), SICE => INTERVAL '1' MINUTE)
---
error[SQL-1102]: TUMBLE has no argument SICE
  1 | SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), SICE => INTERVAL '1' MINUTE)
    |                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: did you mean "SIZE"?
====
SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, SIZE => INTERVAL '1' MINUTE)
---
error[SQL-1102]: the argument SIZE is given twice
  1 | SELECT * FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE, SIZE => INTERVAL '1' MINUTE)
    |                                                                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^
====
SELECT * FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '7' MINUTE, INTERVAL '10' MINUTE)
---
error[SQL-1704]: the size of HOP, 0:10:00, is no multiple of its slide, 0:07:00
  1 | SELECT * FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '7' MINUTE, INTERVAL '10' MINUTE)
    |                                              ^^^^^^^^^^^^^^^^^^^
====
SELECT * FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '5' MINUTE)
---
error[SQL-1704]: the size of HOP, 0:05:00, is no multiple of its slide, 0:10:00
  1 | SELECT * FROM HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '5' MINUTE)
    |                                              ^^^^^^^^^^^^^^^^^^^^
hint: HOP takes the slide first, then the size
====
SELECT * FROM TUMBLE(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
---
error[SQL-1601]: PARTITION BY in TUMBLE is not supported
  1 | SELECT * FROM TUMBLE(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '1' MINUTE)
    |                                             ^^^^^^
hint: name the columns in GROUP BY
====
INSERT INTO totals (id) SELECT auction FROM bid ORDER BY price
---
error[SQL-1703]: an endless stream has no last row, so it cannot be ordered
  1 | INSERT INTO totals (id) SELECT auction FROM bid ORDER BY price
    |                                                 ^^^^^^^^^^^^^^
hint: order by a time attribute first, ascending, or add LIMIT n to keep the first n rows up to date
====
SELECT * FROM bid CROSS JOIN UNNEST(channels)
---
error[SQL-1042]: column "channels" does not exist in bid
  1 | SELECT * FROM bid CROSS JOIN UNNEST(channels)
    |                                     ^^^^^^^^
hint: did you mean "channel"?
====
SELECT * FROM bid QUALIFY price > 1
---
error[SQL-1068]: QUALIFY filters by calls with OVER, and there is none
  1 | SELECT * FROM bid QUALIFY price > 1
    |                           ^^^^^^^^^
hint: use WHERE, or HAVING behind GROUP BY
====
SELECT * FROM bid MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1744]: MATCH_RECOGNIZE needs an ORDER BY
  1 | SELECT * FROM bid MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS TRUE)
    |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: ORDER BY ts
====
WITH RECURSIVE r AS (SELECT auction FROM r) SELECT * FROM r
---
error[SQL-1751]: "r" has no first rows: each of its queries reads "r" itself
  1 | WITH RECURSIVE r AS (SELECT auction FROM r) SELECT * FROM r
    |                      ^^^^^^^^^^^^^^^^^^^^^
hint: write r AS (SELECT the first rows UNION ALL SELECT .. FROM r JOIN ..)
====
WITH RECURSIVE r AS (SELECT auction AS a FROM bid UNION SELECT b.price FROM r JOIN bid AS b ON b.auction = r.a LIMIT 9) SELECT * FROM r
---
error[SQL-1751]: the UNION of r cannot have LIMIT
  1 | WITH RECURSIVE r AS (SELECT auction AS a FROM bid UNION SELECT b.price FROM r JOIN bid AS b ON b.auction = r.a LIM
    |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write r AS (SELECT the first rows UNION ALL SELECT .. FROM r JOIN ..)
====
WITH RECURSIVE r AS (SELECT auction AS a FROM bid UNION ALL SELECT max(a) FROM r) SELECT * FROM r
---
error[SQL-1752]: a recursive term cannot group or count its own rows, or make them DISTINCT
  1 | WITH RECURSIVE r AS (SELECT auction AS a FROM bid UNION ALL SELECT max(a) FROM r) SELECT * FROM r
    |                                                             ^^^^^^^^^^^^^^^^^^^^
hint: read the table itself once, by filters, inner joins and table functions; group, rank or limit its rows in the query below WITH
====
WITH RECURSIVE r AS (SELECT auction AS a FROM bid UNION SELECT x.a FROM r AS x JOIN r AS y ON x.a = y.a) SELECT * FROM r
---
error[SQL-1752]: a recursive term cannot join its own rows with each other, or pad or exclude other rows by them
  1 | ECURSIVE r AS (SELECT auction AS a FROM bid UNION SELECT x.a FROM r AS x JOIN r AS y ON x.a = y.a) SELECT * FROM r
    |                                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: read the table itself once, by filters, inner joins and table functions; group, rank or limit its rows in the query below WITH
====
WITH RECURSIVE r AS (SELECT auction AS a, 1.5 AS f FROM bid UNION ALL SELECT a, f * 1.25 FROM r) SELECT * FROM r
---
error[SQL-1084]: column "f" becomes wider in each iteration: it is DECIMAL(18, 9)
  1 | WITH RECURSIVE r AS (SELECT auction AS a, 1.5 AS f FROM bid UNION ALL SELECT a, f * 1.25 FROM r) SELECT * FROM r
    |                                                                       ^^^^^^^^^^^^^^^^^^^^^^^^^
hint: CAST it to one type in the recursive term
====
WITH RECURSIVE r AS (SELECT auction AS a FROM bid UNION SELECT a, 1 FROM r) SELECT * FROM r
---
error[SQL-1083]: the branches of UNION differ in width: 1 columns and 2
  1 | WITH RECURSIVE r AS (SELECT auction AS a FROM bid UNION SELECT a, 1 FROM r) SELECT * FROM r
    |                                                         ^^^^^^^^^^^^^^^^^^
hint: name the same columns in every branch
====
WITH RECURSIVE r AS (SELECT CURRENT_TIMESTAMP AS t UNION ALL SELECT CURRENT_TIMESTAMP FROM r WHERE t IS NULL) SELECT * FROM r
---
error[SQL-1753]: a recursive term may compute a row again, and this value would be another then
  1 | IVE r AS (SELECT CURRENT_TIMESTAMP AS t UNION ALL SELECT CURRENT_TIMESTAMP FROM r WHERE t IS NULL) SELECT * FROM r
    |                                                          ^^^^^^^^^^^^^^^^^
hint: compute it in the first SELECT, or in the query below WITH
====
INSERT OVERWRITE totals SELECT 1, 2, 'x'
---
error[SQL-1601]: INSERT OVERWRITE of totals is not supported: it replaces local files, Delta and Iceberg tables
  1 | INSERT OVERWRITE totals SELECT 1, 2, 'x'
    |                  ^^^^^^
hint: connector print: write INSERT INTO, or INSERT OVERWRITE a filesystem table and read that
====
USE `main.there`
---
error[SQL-1353]: a name cannot have a dot in it
  1 | USE `main.there`
    |     ^^^^^^^^^^^^
hint: dots separate catalog, database and table
====
UPDATE bid SET price = 1
---
error[SQL-1601]: UPDATE of bid is not supported: connector datagen keeps no rows that a statement could replace
  1 | UPDATE bid SET price = 1
    |        ^^^
hint: UPDATE, DELETE and MERGE change local files, Delta and Iceberg tables: INSERT the rows INTO one of them
====
CREATE FUNCTION f AS 'a.b' LANGUAGE JAVA
---
error[SQL-1336]: functions are written in Python, not in JAVA
  1 | CREATE FUNCTION f AS 'a.b' LANGUAGE JAVA
    |                                     ^^^^
hint: write LANGUAGE PYTHON
====
STOP JOB 'x' WITH SAVEPONT
---
error[SQL-1001]: unexpected "SAVEPONT"
  1 | STOP JOB 'x' WITH SAVEPONT
    |                   ^^^^^^^^
hint: did you mean "SAVEPOINT"?
