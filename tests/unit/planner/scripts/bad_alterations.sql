CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s DROP v
---
error[SQL-1342]: column "v" cannot be dropped: column "w" is computed from it
  2 | ALTER TABLE s DROP v
    |                    ^
hint: drop or change that first
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s DROP ts
---
error[SQL-1342]: column "ts" cannot be dropped: the watermark goes by it
  2 | ALTER TABLE s DROP ts
    |                    ^^
hint: drop or change that first
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s DROP (w, id)
---
error[SQL-1342]: column "id" cannot be dropped: it is part of the primary key
  2 | ALTER TABLE s DROP (w, id)
    |                        ^^
hint: drop or change that first
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s DROP vv
---
error[SQL-1042]: column "vv" does not exist in s
  2 | ALTER TABLE s DROP vv
    |                    ^^
hint: did you mean "v"?
====
# caret: v
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s ADD v INT
---
error[SQL-1301]: table "s" has a column "v" already
  2 | ALTER TABLE s ADD v INT
    |                   ^
hint: write MODIFY to change it
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s ADD (a INT AFTER vv)
---
error[SQL-1042]: column "vv" does not exist in s
  2 | ALTER TABLE s ADD (a INT AFTER vv)
    |                                ^^
hint: did you mean "v"?
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s MODIFY vv INT
---
error[SQL-1042]: column "vv" does not exist in s
  2 | ALTER TABLE s MODIFY vv INT
    |                      ^^
hint: did you mean "v"?
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s MODIFY WATERMARK FOR tss AS tss
---
error[SQL-1042]: column "tss" of WATERMARK FOR does not exist
  2 | ALTER TABLE s MODIFY WATERMARK FOR tss AS tss
    |                                    ^^^
hint: did you mean "ts"?
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s ADD WATERMARK FOR ts AS ts
---
error[SQL-1341]: table "s" has a watermark already
  2 | ALTER TABLE s ADD WATERMARK FOR ts AS ts
    |                                 ^^
hint: write MODIFY WATERMARK ..
====
# caret: id
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s ADD PRIMARY KEY (id) NOT ENFORCED
---
error[SQL-1341]: table "s" has a primary key already
  2 | ALTER TABLE s ADD PRIMARY KEY (id) NOT ENFORCED
    |                                ^^
hint: write MODIFY PRIMARY KEY ..
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s DROP PRIMARY KEY; ALTER TABLE s DROP PRIMARY KEY
---
error[SQL-1341]: table "s" has no primary key
  2 | ALTER TABLE s DROP PRIMARY KEY; ALTER TABLE s DROP PRIMARY KEY
    |                                             ^
====
# caret: WATERMARK
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s DROP WATERMARK; ALTER TABLE s DROP WATERMARK
---
error[SQL-1341]: table "s" has no watermark
  2 | ALTER TABLE s DROP WATERMARK; ALTER TABLE s DROP WATERMARK
    |                                                  ^^^^^^^^^
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s RESET ('fromat')
---
error[SQL-1341]: option 'fromat' is not set
  2 | ALTER TABLE s RESET ('fromat')
    |                      ^^^^^^^^
hint: did you mean "format"?
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s RESET ('connector')
---
error[SQL-1341]: a table cannot be without a connector
  2 | ALTER TABLE s RESET ('connector')
    |                      ^^^^^^^^^^^
hint: drop the table and create it again
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s SET ('fromat' = 'csv')
---
error[SQL-1503]: connector 'filesystem' has no option 'fromat'
  2 | ALTER TABLE s SET ('fromat' = 'csv')
    |                    ^^^^^^^^
hint: did you mean "format"?
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s CHANGE v
---
error[SQL-1001]: unexpected "CHANGE": ADD, DROP, MODIFY, RENAME, RESET or SET was expected
  2 | ALTER TABLE s CHANGE v
    |               ^^^^^^
hint: write MODIFY and the column with its new type
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s RENAME v TO u
---
error[SQL-1342]: column "v" cannot be renamed: column "w" is computed from it
  2 | ALTER TABLE s RENAME v TO u
    |                      ^
hint: drop or change that first
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s RENAME id TO ts
---
error[SQL-1301]: table "s" has a column "ts" already
  2 | ALTER TABLE s RENAME id TO ts
    |                            ^^
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s RENAME TO bid
---
error[SQL-1302]: table "bid" exists already
  2 | ALTER TABLE s RENAME TO bid
    |                         ^^^
hint: drop it first with DROP TABLE bid, or write CREATE TABLE IF NOT EXISTS
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE rich RENAME TO poor
---
error[SQL-1303]: "rich" is a view, not a table
  2 | ALTER TABLE rich RENAME TO poor
    |             ^^^^
hint: write VIEW: DROP VIEW rich, SHOW CREATE VIEW rich
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s MODIFY ts STRING
---
error[SQL-1702]: a watermark needs a TIMESTAMP column, "ts" is STRING
  2 | ALTER TABLE s MODIFY ts STRING
    |             ^
hint: add a computed column, for instance event_time AS to_timestamp(ts), and watermark that
====
CREATE TABLE s (id INT, v BIGINT, ts TIMESTAMP(3), w AS v * 2, WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'filesystem', 'path' = 'x', 'format' = 'csv');
ALTER TABLE s MODIFY v BOOLEAN
---
error[SQL-1103]: multiply: BOOLEAN * INT is not defined
  2 | ALTER TABLE s MODIFY v BOOLEAN
    |             ^
hint: CAST the operands to numbers or intervals
