UPDATE bid SET price = 1
---
error[SQL-1601]: UPDATE of bid is not supported: connector datagen keeps no rows that a statement could replace
  1 | UPDATE bid SET price = 1
    |        ^^^
hint: UPDATE, DELETE and MERGE change local files, Delta and Iceberg tables: INSERT the rows INTO one of them
====
DELETE FROM totals
---
error[SQL-1601]: DELETE of totals is not supported: connector print keeps no rows that a statement could replace
  1 | DELETE FROM totals
    |             ^^^^^^
hint: UPDATE, DELETE and MERGE change local files, Delta and Iceberg tables: INSERT the rows INTO one of them
====
CREATE TABLE pg (id INT) WITH ('connector' = 'postgres', 'url' = 'postgresql://h/db', 'table-name' = 'pg');
MERGE INTO pg USING airline ON pg.id = 1 WHEN MATCHED THEN DELETE
---
error[SQL-1601]: MERGE INTO of pg is not supported: postgres changes its rows itself, and only by UPDATE and DELETE
  2 | MERGE INTO pg USING airline ON pg.id = 1 WHEN MATCHED THEN DELETE
    |            ^^
hint: run it in the database; INSERT INTO a table with a PRIMARY KEY replaces rows by key
====
CREATE TABLE far (n INT) WITH ('connector' = 'filesystem', 'path' = 's3://b/far', 'format' = 'parquet');
UPDATE far SET n = 1
---
error[SQL-1601]: UPDATE of far is not supported: files at s3:// cannot be replaced in one step
  2 | UPDATE far SET n = 1
    |        ^^^
hint: write the rows into a Delta or Iceberg table there, whose rows can be changed
====
CREATE TABLE lenient (n INT) WITH ('connector' = 'filesystem', 'path' = 'l', 'format' = 'csv', 'on-error' = 'skip');
UPDATE lenient SET n = 1
---
error[SQL-1601]: UPDATE of lenient is not supported: records that 'on-error' leaves out would be lost
  2 | UPDATE lenient SET n = 1
    |        ^^^^^^^
hint: INSERT the rows INTO another table, and change that
====
CREATE TABLE feed (id INT) WITH ('connector' = 'delta', 'table-path' = 'lake', 'scan.mode' = 'full');
UPDATE feed SET id = 2
---
error[SQL-1601]: UPDATE of feed is not supported: it is declared as a stream, and rows of the newest version are changed
  2 | UPDATE feed SET id = 2
    |        ^^^^
hint: declare another table of the same place, without options that begin with scan
====
CREATE TABLE old (id INT) WITH ('connector' = 'delta', 'table-path' = 'lake', 'scan.version' = '3');
DELETE FROM old
---
error[SQL-1601]: DELETE of old is not supported: 'scan.version' names one version of it, and rows of the newest version are changed
  2 | DELETE FROM old
    |             ^^^
hint: declare another table of the same place, without options that begin with scan
====
UPDATE 'city.csv' SET size = 1
---
error[SQL-1601]: a change of rows without a declared table is not supported yet
  1 | UPDATE 'city.csv' SET size = 1
    |        ^^^^^^^^^^
hint: declare it by CREATE TABLE, and name that table
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET nme = 'x'
---
error[SQL-1042]: column "nme" does not exist in lake
  2 | UPDATE lake SET nme = 'x'
    |                 ^^^
hint: there is id, n
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = 1, n = 2
---
error[SQL-1045]: column "n" occurs twice in the list
  2 | UPDATE lake SET n = 1, n = 2
    |                        ^
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET id = NULL
---
error[SQL-1093]: column "id" is NOT NULL and is given NULL
  2 | UPDATE lake SET id = NULL
    |                      ^^^^
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = 'one'
---
error[SQL-1092]: column "n" is BIGINT, the value is STRING
  2 | UPDATE lake SET n = 'one'
    |                     ^^^^^
hint: write CAST(.. AS BIGINT)
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET (id, n) = (1)
---
error[SQL-1090]: 2 columns and 1 value in SET
  2 | UPDATE lake SET (id, n) = (1)
    |                 ^^^^^^^^^^^^^
hint: write a value for each column
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = DEFAULT
---
error[SQL-1601]: DEFAULT is not supported yet
  2 | UPDATE lake SET n = DEFAULT
    |                     ^^^^^^^
hint: write the value: columns have no defaults, and NULL is a value
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = 1 FROM airline
---
error[SQL-1601]: UPDATE .. FROM is not supported yet
  2 | UPDATE lake SET n = 1 FROM airline
    |                       ^^^^
hint: write MERGE INTO t USING s ON .. WHEN MATCHED THEN UPDATE SET .., or a subquery as the value
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET (id, n) = (SELECT 1, 2)
---
error[SQL-1601]: a subquery of several columns in SET is not supported yet
  2 | UPDATE lake SET (id, n) = (SELECT 1, 2)
    |                           ^
hint: write a subquery for each column: SET a = (SELECT ..), b = (SELECT ..); or MERGE
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = 1 WHERE n
---
error[SQL-1103]: WHERE takes a BOOLEAN, this is BIGINT
  2 | UPDATE lake SET n = 1 WHERE n
    |                             ^
hint: compare it with something
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = 1 WHERE n = 2 ORDER BY n
---
error[SQL-1001]: unexpected "ORDER": the end of the statement was expected
  2 | UPDATE lake SET n = 1 WHERE n = 2 ORDER BY n
    |                                   ^^^^^
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake n = 1
---
error[SQL-1001]: unexpected "=": SET was expected
  2 | UPDATE lake n = 1
    |               ^
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
DELETE lake
---
error[SQL-1001]: unexpected "lake": FROM was expected
  2 | DELETE lake
    |        ^^^^
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
DELETE FROM lake USING airline WHERE n = 1
---
error[SQL-1601]: DELETE .. USING is not supported yet
  2 | DELETE FROM lake USING airline WHERE n = 1
    |                  ^^^^^
hint: write DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE ..), or MERGE
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
DELETE FROM lake WHERE n = 1 RETURNING n
---
error[SQL-1601]: RETURNING of DELETE is not supported yet
  2 | DELETE FROM lake WHERE n = 1 RETURNING n
    |                              ^^^^^^^^^
hint: SELECT the rows: before the statement those that it will change, after it as they are
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
CREATE TABLE endless (auction INT) WITH ('connector' = 'datagen');
DELETE FROM lake WHERE n IN (SELECT auction FROM endless)
---
error[SQL-1311]: table endless never ends, and DELETE is a statement of rows that end
  3 | DELETE FROM lake WHERE n IN (SELECT auction FROM endless)
    |             ^^^^
hint: read a table that ends; INSERT INTO a table with a PRIMARY KEY follows a stream
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING airline ON TRUE
---
error[SQL-1001]: the statement ends where WHEN was expected
  2 | MERGE INTO lake USING airline ON TRUE
    |                                      ^
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING (SELECT 1 AS id) ON TRUE WHEN MATCHED THEN DELETE
---
error[SQL-1601]: the source of MERGE needs a name
  2 | MERGE INTO lake USING (SELECT 1 AS id) ON TRUE WHEN MATCHED THEN DELETE
    |                       ^^^^^^^^^^^^^^^^
hint: write USING (SELECT ..) AS s
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING airline ON TRUE WHEN MATCHED THEN INSERT *
---
error[SQL-1001]: unexpected "INSERT": UPDATE, DELETE or DO NOTHING was expected
  2 | MERGE INTO lake USING airline ON TRUE WHEN MATCHED THEN INSERT *
    |                                                         ^^^^^^
hint: a semicolon ends the statement before it
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING airline ON TRUE WHEN NOT MATCHED THEN DELETE
---
error[SQL-1001]: unexpected "DELETE": INSERT or DO NOTHING was expected
  2 | MERGE INTO lake USING airline ON TRUE WHEN NOT MATCHED THEN DELETE
    |                                                             ^^^^^^
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING airline ON TRUE WHEN NOT MATCHED THEN INSERT VALUES (1)
---
error[SQL-1090]: INSERT of MERGE has 1 value for 2 columns
  2 | MERGE INTO lake USING airline ON TRUE WHEN NOT MATCHED THEN INSERT VALUES (1)
    |                                                                    ^^^^^^^^^^
hint: the columns are id, n
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING airline ON TRUE WHEN NOT MATCHED THEN INSERT (n) VALUES (1)
---
error[SQL-1093]: column "id" of lake is NOT NULL and is given no value
  2 | MERGE INTO lake USING airline ON TRUE WHEN NOT MATCHED THEN INSERT (n) VALUES (1)
    |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: add id to the columns of INSERT
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING airline ON TRUE WHEN NOT MATCHED THEN INSERT *
---
error[SQL-1042]: column "id" does not exist in airline
  2 | MERGE INTO lake USING airline ON TRUE WHEN NOT MATCHED THEN INSERT *
    |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: there is carrier, name
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING airline ON TRUE WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE
---
error[SQL-1001]: this action is never taken: the one before it has no condition
  2 | MERGE INTO lake USING airline ON TRUE WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE
    |                                                                ^^^^^^^^^^^^^^^^^^^^^^^^
hint: write WHEN .. AND condition THEN for all of them but the last
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
EXPLAIN UPDTE lake SET n = 1
---
error[SQL-1001]: unexpected "UPDTE"
  2 | EXPLAIN UPDTE lake SET n = 1
    |         ^^^^^
hint: did you mean "UPDATE"?
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = ROW_NUMBER() OVER (ORDER BY id) WHERE id > 2
---
error[SQL-1601]: OVER in a condition or value of UPDATE, DELETE and MERGE is not supported
  2 | UPDATE lake SET n = ROW_NUMBER() OVER (ORDER BY id) WHERE id > 2
    |                                  ^^^^^^^^^^^^^^^^^^
hint: write it into the source of MERGE: USING (SELECT .., LAG(a) OVER (..) FROM t) AS s
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = n + 1 WHERE id = 1 AND `x``y` = '' OR n > 2
---
error[SQL-1042]: column "x`y" does not exist in lake
  2 | UPDATE lake SET n = n + 1 WHERE id = 1 AND `x``y` = '' OR n > 2
    |                                            ^^^^^^
hint: there is id, n; a text is written in single quotes: 'x`y'
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
UPDATE lake SET n = MAX(n) + 1
---
error[SQL-1062]: MAX aggregates rows, and a condition or value here is one of a single row
  2 | UPDATE lake SET n = MAX(n) + 1
    |                     ^^^^^^
hint: write a subquery: (SELECT MAX(..) FROM t)
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING (SELECT 1 AS id) AS `a``b` ON lake.id = `a``b`.id WHEN MATCHED AND `a``b`.id THEN DELETE
---
error[SQL-1103]: WHEN takes a BOOLEAN, this is INT
  2 | MERGE INTO lake USING (SELECT 1 AS id) AS `a``b` ON lake.id = `a``b`.id WHEN MATCHED AND `a``b`.id THEN DELETE
    |                                                                                          ^^^^^^^^^
hint: compare it with something
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING (SELECT 1 AS id) AS s ON id = 1 WHEN MATCHED THEN DELETE
---
error[SQL-1043]: column "id" is in lake and in s
  2 | MERGE INTO lake USING (SELECT 1 AS id) AS s ON id = 1 WHEN MATCHED THEN DELETE
    |                                                ^^
hint: write lake.id or s.id
====
CREATE TABLE lake (id INT NOT NULL, n BIGINT) WITH ('connector' = 'delta', 'table-path' = 'lake');
MERGE INTO lake USING nowhere AS s ON s.id = 1 WHEN MATCHED THEN UPDATE SET n = s.n + s.m
---
error[SQL-1041]: table "nowhere" does not exist
  2 | MERGE INTO lake USING nowhere AS s ON s.id = 1 WHEN MATCHED THEN UPDATE SET n = s.n + s.m
    |                       ^^^^^^^
hint: there is airline, bid, city, lake, log, person, rich, stamped and 1 more
