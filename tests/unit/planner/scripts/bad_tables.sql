CREATE TABLE bid (a INT) WITH ('connector' = 'datagen')
---
error[SQL-1302]: table "bid" exists already
  1 | CREATE TABLE bid (a INT) WITH ('connector' = 'datagen')
    |              ^^^
hint: drop it first with DROP TABLE bid, or write CREATE TABLE IF NOT EXISTS
====
CREATE TABLE t (a INT, A STRING) WITH ('connector' = 'datagen')
---
error[SQL-1301]: column "A" is declared twice
  1 | CREATE TABLE t (a INT, A STRING) WITH ('connector' = 'datagen')
    |                        ^
====
CREATE TABLE t (a INTT) WITH ('connector' = 'datagen')
---
error[SQL-1204]: type "INTT" does not exist
  1 | CREATE TABLE t (a INTT) WITH ('connector' = 'datagen')
    |                   ^^^^
hint: did you mean "INT"?
====
CREATE TABLE t (a INT(3)) WITH ('connector' = 'datagen')
---
error[SQL-1206]: INT takes no number in parentheses
  1 | CREATE TABLE t (a INT(3)) WITH ('connector' = 'datagen')
    |                   ^^^
====
CREATE TABLE t (a TIMESTAMP(12)) WITH ('connector' = 'datagen')
---
error[SQL-1206]: the precision of TIMESTAMP is one number from 0 to 9
  1 | CREATE TABLE t (a TIMESTAMP(12)) WITH ('connector' = 'datagen')
    |                   ^^^^^^^^^
====
CREATE TABLE t (a TIMESTAMP(3) WITH TIME ZONE) WITH ('connector' = 'datagen')
---
error[SQL-1206]: TIMESTAMP WITH TIME ZONE is not a type here
  1 | CREATE TABLE t (a TIMESTAMP(3) WITH TIME ZONE) WITH ('connector' = 'datagen')
    |                   ^^^^^^^^^
hint: write TIMESTAMP_LTZ(3): an instant, shown in the session's zone
====
CREATE TABLE t (a ARRAY) WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected ")": "<" was expected
  1 | CREATE TABLE t (a ARRAY) WITH ('connector' = 'datagen')
    |                        ^
====
# what goes on within a type is expected where it stands: brackets are those that were opened
CREATE TABLE t (a ROW<b INT
---
error[SQL-1001]: the statement ends where "," or ">" was expected
  1 | CREATE TABLE t (a ROW<b INT
    |                            ^
hint: a closing parenthesis is missing
====
CREATE TABLE t (a ROW(b INT, c MAP<INT, STRING>
---
error[SQL-1001]: the statement ends where "," or ")" was expected
  1 | CREATE TABLE t (a ROW(b INT, c MAP<INT, STRING>
    |                                                ^
hint: a closing parenthesis is missing
====
CREATE TABLE t (a ARRAY<INT b>) WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected "b": "(" or ">" was expected
  1 | CREATE TABLE t (a ARRAY<INT b>) WITH ('connector' = 'datagen')
    |                             ^
hint: a comma is missing before b
====
CREATE TABLE t (a INT COMENT 'x') WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected "COMENT"
  1 | CREATE TABLE t (a INT COMENT 'x') WITH ('connector' = 'datagen')
    |                       ^^^^^^
hint: did you mean "COMMENT"?
====
CREATE TABLE t (a INTERVL DAY) WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected "INTERVL"
  1 | CREATE TABLE t (a INTERVL DAY) WITH ('connector' = 'datagen')
    |                   ^^^^^^^
hint: did you mean "INTERVAL"?
====
CREATE TABLE t (a ROW<select INT>) WITH ('connector' = 'datagen')
---
error[SQL-1008]: SELECT is a reserved word
  1 | CREATE TABLE t (a ROW<select INT>) WITH ('connector' = 'datagen')
    |                       ^^^^^^
hint: quote it to use it as a name: `select`
====
# syntax comes first: the second column's, though the first has an unknown type
CREATE TABLE t (a INTT, b ARRAY) WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected ")": "<" was expected
  1 | CREATE TABLE t (a INTT, b ARRAY) WITH ('connector' = 'datagen')
    |                                ^
====
SELECT CAST(price AS DECIMAL(10 2)) FROM bid
---
error[SQL-1001]: unexpected "2": "," or ")" was expected
  1 | SELECT CAST(price AS DECIMAL(10 2)) FROM bid
    |                                 ^
hint: a comma is missing before 2
====
CREATE TABLE t (a ROW<b INT, b INT>) WITH ('connector' = 'datagen')
---
error[SQL-1205]: field "b" is declared twice
  1 | CREATE TABLE t (a ROW<b INT, b INT>) WITH ('connector' = 'datagen')
    |                              ^
====
CREATE TABLE t (a INT b INT) WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected "b": ",", "(" or ")" was expected
  1 | CREATE TABLE t (a INT b INT) WITH ('connector' = 'datagen')
    |                       ^
hint: a comma is missing before b
====
CREATE TABLE t (a INT,) WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected ")": CONSTRAINT, a name, PRIMARY or WATERMARK was expected
  1 | CREATE TABLE t (a INT,) WITH ('connector' = 'datagen')
    |                       ^
hint: leave out the comma before it
====
CREATE TABLE t () WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected ")": CONSTRAINT, a name, PRIMARY or WATERMARK was expected
  1 | CREATE TABLE t () WITH ('connector' = 'datagen')
    |                 ^
====
CREATE TABLE t (a AS 1) WITH ('connector' = 'datagen')
---
error[SQL-1308]: table "t" has no physical column
  1 | CREATE TABLE t (a AS 1) WITH ('connector' = 'datagen')
    |              ^
hint: declare at least one column that the connector fills
====
CREATE TABLE t (a INT, b AS c + 1) WITH ('connector' = 'datagen')
---
error[SQL-1042]: column "c" does not exist in t
  1 | CREATE TABLE t (a INT, b AS c + 1) WITH ('connector' = 'datagen')
    |                             ^
hint: there is a; a text is written in single quotes: 'c'
====
CREATE TABLE t (a INT, b AS a +) WITH ('connector' = 'datagen')
---
error[SQL-1001]: the statement ends where an expression was expected
  1 | CREATE TABLE t (a INT, b AS a +) WITH ('connector' = 'datagen')
    |                                ^
====
# caret: SUM(a)
CREATE TABLE t (a INT, b AS SUM(a)) WITH ('connector' = 'datagen')
---
error[SQL-1062]: the aggregate sum cannot be used in column "b"
  1 | CREATE TABLE t (a INT, b AS SUM(a)) WITH ('connector' = 'datagen')
    |                             ^^^^^^
hint: aggregate in a query over the table
====
CREATE TABLE t (a INT, WATERMARK FOR a AS a) WITH ('connector' = 'datagen')
---
error[SQL-1702]: a watermark needs a TIMESTAMP column, "a" is INT
  1 | CREATE TABLE t (a INT, WATERMARK FOR a AS a) WITH ('connector' = 'datagen')
    |                                      ^
hint: add a computed column, for instance event_time AS to_timestamp(a), and watermark that
====
CREATE TABLE t (a STRING, WATERMARK FOR a AS a - INTERVAL '1' SECOND) WITH ('connector' = 'datagen')
---
error[SQL-1702]: a watermark needs a TIMESTAMP column, "a" is STRING
  1 | CREATE TABLE t (a STRING, WATERMARK FOR a AS a - INTERVAL '1' SECOND) WITH ('connector' = 'datagen')
    |                                         ^
hint: add a computed column, for instance event_time AS to_timestamp(a), and watermark that
====
CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR tss AS ts) WITH ('connector' = 'datagen')
---
error[SQL-1042]: column "tss" of WATERMARK FOR does not exist
  1 | CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR tss AS ts) WITH ('connector' = 'datagen')
    |                                                ^^^
hint: did you mean "ts"?
====
CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS 5) WITH ('connector' = 'datagen')
---
error[SQL-1702]: a watermark is a point in time, this is INT
  1 | CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS 5) WITH ('connector' = 'datagen')
    |                                                      ^
hint: write ts - INTERVAL '5' SECOND
====
CREATE TABLE t (ts TIMESTAMP(3), WATERMRK FOR ts AS ts) WITH ('connector' = 'datagen')
---
error[SQL-1001]: unexpected "WATERMRK"
  1 | CREATE TABLE t (ts TIMESTAMP(3), WATERMRK FOR ts AS ts) WITH ('connector' = 'datagen')
    |                                  ^^^^^^^^
hint: did you mean "WATERMARK"?
====
CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts, WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')
---
error[SQL-1304]: a table has one watermark, here is a second
  1 | CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts, WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen')
    |                                                                        ^^
====
CREATE TABLE t (a INT, PRIMARY KEY (a)) WITH ('connector' = 'datagen')
---
error[SQL-1305]: a primary key is never enforced on a stream
  1 | CREATE TABLE t (a INT, PRIMARY KEY (a)) WITH ('connector' = 'datagen')
    |                                     ^
hint: write PRIMARY KEY (..) NOT ENFORCED: the key is a promise about the data
====
CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED) WITH ('connector' = 'datagen')
---
error[SQL-1042]: column "b" of PRIMARY KEY does not exist
  1 | CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED) WITH ('connector' = 'datagen')
    |                                     ^
hint: there is a
====
CREATE TABLE t (a INT, PRIMARY KEY (a, a) NOT ENFORCED) WITH ('connector' = 'datagen')
---
error[SQL-1301]: column "a" occurs twice in PRIMARY KEY
  1 | CREATE TABLE t (a INT, PRIMARY KEY (a, a) NOT ENFORCED) WITH ('connector' = 'datagen')
    |                                        ^
====
CREATE TABLE t (a INT) PARTITIONED BY (b) WITH ('connector' = 'datagen')
---
error[SQL-1042]: column "b" of PARTITIONED BY does not exist
  1 | CREATE TABLE t (a INT) PARTITIONED BY (b) WITH ('connector' = 'datagen')
    |                                        ^
hint: there is a
====
CREATE TABLE t (a INT) PARTITIONED BY (a) WITH ('connector' = 'datagen')
---
error[SQL-1308]: PARTITIONED BY names every column, so none is left to write
  1 | CREATE TABLE t (a INT) PARTITIONED BY (a) WITH ('connector' = 'datagen')
    |                                        ^
hint: leave one out
====
CREATE TABLE t (a STRING METADATA FROM 'filename') WITH ('connector' = 'filesystem', 'path' = 'x.csv')
---
error[SQL-1306]: connector filesystem has no metadata 'filename'
  1 | CREATE TABLE t (a STRING METADATA FROM 'filename') WITH ('connector' = 'filesystem', 'path' = 'x.csv')
    |                                        ^^^^^^^^^^
hint: did you mean "file.name"?
====
CREATE TABLE t (a INT, m STRING METADATA FROM 'file.nam') WITH ('connector' = 'filesystem', 'path' = 'x.csv')
---
error[SQL-1306]: connector filesystem has no metadata 'file.nam'
  1 | CREATE TABLE t (a INT, m STRING METADATA FROM 'file.nam') WITH ('connector' = 'filesystem', 'path' = 'x.csv')
    |                                               ^^^^^^^^^^
hint: did you mean "file.name"?
====
CREATE TABLE t (a INT)
---
error[SQL-1501]: the WITH clause names no connector
  1 | CREATE TABLE t (a INT)
    |              ^
hint: write 'connector' = 'filesystem'; there is blackhole, datagen, delta, duckdb, filesystem, http, iceberg, kafka, mqtt, nats, nexmark, postgres, postgres-cdc, print, python, redis-stream, registered, socket, spark, sqlite, upsert-kafka
====
CREATE TABLE t (a INT) WITH ()
---
error[SQL-1501]: the WITH clause names no connector
  1 | CREATE TABLE t (a INT) WITH ()
    |              ^
hint: write 'connector' = 'filesystem'; there is blackhole, datagen, delta, duckdb, filesystem, http, iceberg, kafka, mqtt, nats, nexmark, postgres, postgres-cdc, print, python, redis-stream, registered, socket, spark, sqlite, upsert-kafka
====
CREATE TABLE t (a INT) WITH ('path' = 'x')
---
error[SQL-1501]: the WITH clause names no connector
  1 | CREATE TABLE t (a INT) WITH ('path' = 'x')
    |              ^
hint: write 'connector' = 'filesystem'; there is blackhole, datagen, delta, duckdb, filesystem, http, iceberg, kafka, mqtt, nats, nexmark, postgres, postgres-cdc, print, python, redis-stream, registered, socket, spark, sqlite, upsert-kafka
====
CREATE TABLE t (a INT) WITH ('connector' = 'filesytem', 'path' = 'x')
---
error[SQL-1502]: there is no connector 'filesytem'
  1 | CREATE TABLE t (a INT) WITH ('connector' = 'filesytem', 'path' = 'x')
    |                                            ^^^^^^^^^^^
hint: did you mean "filesystem"?
====
CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'pth' = 'x.csv')
---
error[SQL-1503]: connector 'filesystem' has no option 'pth'
  1 | CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'pth' = 'x.csv')
    |                                                          ^^^^^
hint: did you mean "path"?
====
CREATE TABLE t (a INT) WITH ('connector' = 'filesystem')
---
error[SQL-1504]: connector 'filesystem' needs option 'path'
  1 | CREATE TABLE t (a INT) WITH ('connector' = 'filesystem')
    |                              ^^^^^^^^^^^
hint: add 'path' = '..': a file, a directory, a glob or a URL; relative to the directory penstock was started in
====
CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = 'many')
---
error[SQL-1505]: option 'rows-per-second' cannot be 'many'
  1 | CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = 'many')
    |                                                                           ^^^^^^
hint: write a whole number such as '100'
====
CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'connector' = 'print')
---
error[SQL-1307]: option 'connector' is given twice
  1 | CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'connector' = 'print')
    |                                                       ^^^^^^^^^^^
====
CREATE TABLE t (a INT) WITH (connector = datagen)
---
error[SQL-1001]: unexpected "datagen": a text in single quotes was expected
  1 | CREATE TABLE t (a INT) WITH (connector = datagen)
    |                                          ^^^^^^^
hint: a value is a text in single quotes: 'datagen'
====
CREATE TABLE t (a INT) WITH ('connector' = 5)
---
error[SQL-1001]: unexpected "5": a text in single quotes was expected
  1 | CREATE TABLE t (a INT) WITH ('connector' = 5)
    |                                            ^
hint: a value is a text in single quotes: '5'
====
CREATE TABLE table (a INT) WITH ('connector' = 'datagen')
---
error[SQL-1008]: TABLE is a reserved word
  1 | CREATE TABLE table (a INT) WITH ('connector' = 'datagen')
    |              ^^^^^
hint: quote it to use it as a name: `table`
====
CREATE VIEW v AS SELECT nothing FROM bid
---
error[SQL-1042]: column "nothing" does not exist in bid
  1 | CREATE VIEW v AS SELECT nothing FROM bid
    |                         ^^^^^^^
hint: there is auction, bidder, channel, price, ts
====
# caret: a
CREATE VIEW v (a, b) AS SELECT 1
---
error[SQL-1046]: view "v" names 2 columns, its query returns 1
  1 | CREATE VIEW v (a, b) AS SELECT 1
    |                ^
hint: the query returns 1
====
CREATE VIEW v AS SELECT 1 AS a, 2 AS A
---
error[SQL-1301]: view column "A" is given twice
  1 | CREATE VIEW v AS SELECT 1 AS a, 2 AS A
    |                  ^^^^^^^^^^^^^^^^^^^^^
hint: rename one with AS
====
CREATE VIEW rich AS SELECT 1
---
error[SQL-1302]: view "rich" exists already
  1 | CREATE VIEW rich AS SELECT 1
    |             ^^^^
hint: drop it first with DROP VIEW rich, or write CREATE VIEW IF NOT EXISTS
====
CREATE VIEW v AS SELECT auction FROM bid; CREATE OR REPLACE VIEW v AS SELECT auction FROM v; SELECT * FROM v
---
error[SQL-1048]: view "v" reads itself
  1 | CREATE VIEW v AS SELECT auction FROM bid; CREATE OR REPLACE VIEW v AS SELECT auction FROM v; SELECT * FROM v
    |                                                                                           ^
====
ALTER TABLE bid SET ('numbr-of-rows' = '5')
---
error[SQL-1503]: connector 'datagen' has no option 'numbr-of-rows'
  1 | ALTER TABLE bid SET ('numbr-of-rows' = '5')
    |                      ^^^^^^^^^^^^^^^
hint: did you mean "number-of-rows"?
====
SELECT * FROM bid$errors
---
error[SQL-1508]: table bid keeps no bad records
  1 | SELECT * FROM bid$errors
    |               ^^^^^^^^^^
hint: create it with 'on-error' = 'table'
====
# caret: w
CREATE TABLE d (a INT) WITH ('connector' = 'datagen'); CREATE VIEW w AS SELECT a FROM d; DROP TABLE d; SELECT * FROM w
---
error[SQL-1041]: table "d" does not exist
  1 | TE TABLE d (a INT) WITH ('connector' = 'datagen'); CREATE VIEW w AS SELECT a FROM d; DROP TABLE d; SELECT * FROM w
    |                                                                                                                  ^
detail: in view "w": SELECT a FROM d
hint: there is airline, bid, city, log, person, rich, stamped, totals and 1 more
====
# changes: what is taken back must be what was given
CREATE TABLE t (id INT, path STRING METADATA FROM 'file.path') WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debezium-json')
---
error[SQL-1515]: column "path": a table of changes has no metadata columns
  1 | CREATE TABLE t (id INT, path STRING METADATA FROM 'file.path') WITH ('connector' = 'filesystem', 'path' = 'x', 'fo
    |                         ^^^^
hint: a retraction would carry other metadata than its row; leave the column out
====
CREATE TABLE t (id INT, day INT) PARTITIONED BY (day) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debezium-json')
---
error[SQL-1515]: files of changes have no partitions
  1 | E t (id INT, day INT) PARTITIONED BY (day) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debezium-js
    |                                       ^^^
hint: an update may move a row from one partition to another; leave PARTITIONED BY out
====
CREATE TABLE t (id INT, at AS CURRENT_TIMESTAMP) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debezium-json')
---
error[SQL-1515]: column "at" of a table of changes has another value each time it is computed
  1 | CREATE TABLE t (id INT, at AS CURRENT_TIMESTAMP) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debez
    |                         ^^
hint: a retraction must equal its row; compute the column from the row's own columns
====
CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv', 'debezium-json.schema-include' = 'true')
---
error[SQL-1507]: option 'debezium-json.schema-include' is of format debezium-json, the format is csv
  1 | id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv', 'debezium-json.schema-include' = 'true')
    |                                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: leave it out
====
CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debezium')
---
error[SQL-1505]: option 'format' cannot be 'debezium'
  1 | CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debezium')
    |                                                                                    ^^^^^^^^^^
hint: it is one of csv, json, parquet, arrow, debezium-json
====
CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv', 'changelog.mode' = 'upsert')
---
error[SQL-1516]: upserts go by a key, and the table has none
  1 | TE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv', 'changelog.mode' = 'upsert')
    |                                                                                       ^^^^^^^^^^^^^^^^
hint: add PRIMARY KEY (..) NOT ENFORCED, or write 'changelog.mode' = 'retract'
====
# caret: 'changelog.mode'
CREATE TABLE t (id INT, op STRING) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv', 'changelog.mode' = 'retract')
---
error[SQL-1516]: column "op" is reserved: it has the kind of each change
  1 | id INT, op STRING) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv', 'changelog.mode' = 'retract')
    |                                                                                      ^^^^^^^^^^^^^^^^
hint: give the column another name
====
CREATE TABLE t (id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debezium-json', 'changelog.mode' = 'retract')
---
error[SQL-1507]: changelog.mode is of the other formats
  1 | (id INT) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'debezium-json', 'changelog.mode' = 'retract')
    |                                                                                      ^^^^^^^^^^^^^^^^
hint: leave it out: debezium-json writes what a row was before and after
====
CREATE TABLE t (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv', 'changelog.mode' = 'upsert');
SELECT * FROM t
---
error[SQL-1047]: table "t" cannot be read: its files hold changes, one with its op a line
  2 | SELECT * FROM t
    |               ^
hint: write 'format' = 'debezium-json' to have changes that can be read again
