SELECT /*+ BROADCAST(b,) */ * FROM bid AS b JOIN city AS c ON b.channel = c.name
---
error[SQL-1009]: these names cannot be read
  1 | SELECT /*+ BROADCAST(b,) */ * FROM bid AS b JOIN city AS c ON b.channel = c.name
    |            ^^^^^^^^^
hint: write /*+ BROADCAST(t) */
====
SELECT * FROM bid /*+ BROADCAST(bid) */
---
error[SQL-1602]: BROADCAST has no effect here
  1 | SELECT * FROM bid /*+ BROADCAST(bid) */
    |                       ^^^^^^^^^
hint: write it behind SELECT: SELECT /*+ BROADCAST(t) */ ..
====
SELECT name FROM city AS c WHERE EXISTS (SELECT /*+ BROADCAST(x) */ 1 FROM bid AS b WHERE b.channel = c.name)
---
error[SQL-1602]: BROADCAST names "x", which is no table of this FROM
  1 | SELECT name FROM city AS c WHERE EXISTS (SELECT /*+ BROADCAST(x) */ 1 FROM bid AS b WHERE b.channel = c.name)
    |                                                               ^
hint: there is b
====
SELECT /*+ STATE_TTL('b' = '1 hour long') */ COUNT(*) FROM bid AS b
---
error[SQL-1602]: '1 hour long' is no valid TTL of state
  1 | SELECT /*+ STATE_TTL('b' = '1 hour long') */ COUNT(*) FROM bid AS b
    |                            ^^^^^^^^^^^^^
hint: it takes a duration such as '30 min', '12 h' or '1 d'; 0 is for ever
====
SELECT /*+ STATE_TTL('bid' = '1 h') */ price FROM bid
---
error[SQL-1602]: STATE_TTL of "bid" has no effect in this SELECT
  1 | SELECT /*+ STATE_TTL('bid' = '1 h') */ price FROM bid
    |                      ^^^^^
hint: it is for sides of joins, groups, rows of DISTINCT and partitions of OVER; windows are freed by the watermark, MATCH_RECOGNIZE uses 'table.exec.state.ttl', and ORDER BY .. LIMIT keeps every row that may become one of the first
====
SELECT /*+ STATE_TTL('bids' = '1 h') */ COUNT(*) FROM bid
---
error[SQL-1602]: STATE_TTL names "bids", which is no table of this FROM
  1 | SELECT /*+ STATE_TTL('bids' = '1 h') */ COUNT(*) FROM bid
    |                      ^^^^^^
hint: did you mean "bid"?
====
SELECT /*+ STATE_TTL(b) */ COUNT(*) FROM bid AS b
---
error[SQL-1009]: these options cannot be read
  1 | SELECT /*+ STATE_TTL(b) */ COUNT(*) FROM bid AS b
    |            ^^^^^^^^^
hint: write /*+ STATE_TTL('t' = '1 h') */
====
SELECT * FROM bid /*+ STATE_TTL('b' = '1 h') */
---
error[SQL-1602]: STATE_TTL has no effect here
  1 | SELECT * FROM bid /*+ STATE_TTL('b' = '1 h') */
    |                       ^^^^^^^^^
hint: write it behind SELECT: SELECT /*+ STATE_TTL('t' = '1 h') */ ..
====
SELECT /*+ BRODCAST(c) */ 1
---
error[SQL-1602]: there is no hint BRODCAST
  1 | SELECT /*+ BRODCAST(c) */ 1
    |            ^^^^^^^^
hint: did you mean "BROADCAST"?
====
SELECT /*+ OPTIONS('a' = 'b') */ 1 FROM bid
---
error[SQL-1602]: OPTIONS has no effect here
  1 | SELECT /*+ OPTIONS('a' = 'b') */ 1 FROM bid
    |            ^^^^^^^
hint: write it behind the name of a table that is read: FROM t /*+ OPTIONS('key' = 'value') */
====
SELECT * FROM city /*+ OPTIONS('csv.headr' = 'true') */
---
error[SQL-1503]: connector 'filesystem' has no option 'csv.headr'
  1 | SELECT * FROM city /*+ OPTIONS('csv.headr' = 'true') */
    |                                ^^^^^^^^^^^
hint: did you mean "csv.header"?
====
SELECT * FROM city /*+ OPTIONS('csv.header' = 'perhaps') */ AS c
---
error[SQL-1505]: option 'csv.header' cannot be 'perhaps'
  1 | SELECT * FROM city /*+ OPTIONS('csv.header' = 'perhaps') */ AS c
    |                                               ^^^^^^^^^
hint: write 'true' or 'false'
====
SELECT * FROM city /*+ OPTIONS('csv.header') */
---
error[SQL-1009]: these options cannot be read
  1 | SELECT * FROM city /*+ OPTIONS('csv.header') */
    |                        ^^^^^^^
hint: write /*+ OPTIONS('key' = 'value', ..) */
====
SELECT * FROM city /*+ OPTIONS */
---
error[SQL-1009]: these options cannot be read
  1 | SELECT * FROM city /*+ OPTIONS */
    |                        ^^^^^^^
hint: write /*+ OPTIONS('key' = 'value', ..) */
====
SELECT * FROM city /*+ OPTIONS('connector' = 'datagen') */
---
error[SQL-1603]: a hint does not change a table's connector
  1 | SELECT * FROM city /*+ OPTIONS('connector' = 'datagen') */
    |                                ^^^^^^^^^^^
hint: declare another table: CREATE TABLE .. LIKE ..
====
# caret: 'csv.header'
SELECT * FROM rich /*+ OPTIONS('csv.header' = 'false') */
---
error[SQL-1603]: "rich" has no options
  1 | SELECT * FROM rich /*+ OPTIONS('csv.header' = 'false') */
    |                                ^^^^^^^^^^^^
hint: give the hint to the tables it reads
====
INSERT INTO totals /*+ OPTIONS('print-identifer' = 'x') */ SELECT 1, 2, 'a'
---
error[SQL-1503]: connector 'print' has no option 'print-identifer'
  1 | INSERT INTO totals /*+ OPTIONS('print-identifer' = 'x') */ SELECT 1, 2, 'a'
    |                                ^^^^^^^^^^^^^^^^^
hint: did you mean "print-identifier"?
====
INSERT INTO totals SELECT 1, 2, 'a' /*+ LOOKUP('table' = 'x') */
---
error[SQL-1602]: LOOKUP has no effect here
  1 | INSERT INTO totals SELECT 1, 2, 'a' /*+ LOOKUP('table' = 'x') */
    |                                         ^^^^^^
hint: write it behind SELECT: SELECT /*+ LOOKUP('table' = 't', 'async' = 'true', ..) */ ..
====
SELECT * FROM city AS c /*+ OPTIONS('csv.header' = 'false') */
---
error[SQL-1602]: OPTIONS has no effect here
  1 | SELECT * FROM city AS c /*+ OPTIONS('csv.header' = 'false') */
    |                             ^^^^^^^
hint: write it behind the name of a table that is read: FROM t /*+ OPTIONS('key' = 'value') */
====
SELECT 1 /*+ */
---
error[SQL-1009]: this hint cannot be read
  1 | SELECT 1 /*+ */
    |          ^^^^^^
hint: write /*+ OPTIONS('key' = 'value') */
====
SELECT /*+ PARALLELISM('c' = '4') */ COUNT(*) FROM bid AS b
---
error[SQL-1602]: PARALLELISM names "c", which is neither a table of this FROM nor one of its clauses
  1 | SELECT /*+ PARALLELISM('c' = '4') */ COUNT(*) FROM bid AS b
    |                        ^^^
hint: there is DISTINCT, GROUP BY, JOIN, OVER, b, bid
====
SELECT /*+ PARALLELISM('JOIN d' = '4') */ * FROM bid AS b JOIN city AS c ON b.channel = c.name
---
error[SQL-1602]: PARALLELISM names "JOIN d", which is neither a table of this FROM nor one of its clauses
  1 | SELECT /*+ PARALLELISM('JOIN d' = '4') */ * FROM bid AS b JOIN city AS c ON b.channel = c.name
    |                        ^^^^^^^^
hint: did you mean "JOIN c"?
====
SELECT /*+ PARALLELISM('s' = '4') */ COUNT(*) FROM (SELECT price FROM bid) AS s
---
error[SQL-1602]: PARALLELISM names "s", which is neither a table of this FROM nor one of its clauses
  1 | SELECT /*+ PARALLELISM('s' = '4') */ COUNT(*) FROM (SELECT price FROM bid) AS s
    |                        ^^^
hint: it is a query: write the hint behind its SELECT
====
SELECT /*+ PARALLELISM(0) */ DISTINCT price FROM bid
---
error[SQL-1602]: '0' is no number of subtasks
  1 | SELECT /*+ PARALLELISM(0) */ DISTINCT price FROM bid
    |                        ^
hint: write a whole number from 1 on: PARALLELISM(4)
====
SELECT /*+ PARALLELISM('GROUP BY' = 'many') */ price, COUNT(*) FROM bid GROUP BY price
---
error[SQL-1602]: 'many' is no number of subtasks
  1 | SELECT /*+ PARALLELISM('GROUP BY' = 'many') */ price, COUNT(*) FROM bid GROUP BY price
    |                                     ^^^^^^
hint: write a whole number from 1 on: PARALLELISM(4)
====
SELECT /*+ PARALLELISM(b) */ COUNT(*) FROM bid AS b
---
error[SQL-1009]: these options cannot be read
  1 | SELECT /*+ PARALLELISM(b) */ COUNT(*) FROM bid AS b
    |            ^^^^^^^^^^^
hint: write /*+ PARALLELISM('t' = '4', 'JOIN' = '2') */
====
SELECT * FROM bid /*+ PARALLELISM(4) */
---
error[SQL-1602]: PARALLELISM has no effect here
  1 | SELECT * FROM bid /*+ PARALLELISM(4) */
    |                       ^^^^^^^^^^^
hint: write it behind SELECT: SELECT /*+ PARALLELISM('t' = '4', 'JOIN' = '2') */ ..
