SELECT from_json(channel, 'a INT, b ARAY<STRING>') FROM bid
---
error[SQL-1001]: unexpected "ARAY"
  1 | SELECT from_json(channel, 'a INT, b ARAY<STRING>') FROM bid
    |                                     ^^^^
hint: did you mean "ARRAY"?
====
SELECT from_json(channel, 'a INT,') FROM bid
---
error[SQL-1001]: unexpected ">": a name was expected
  1 | SELECT from_json(channel, 'a INT,') FROM bid
    |                                  ^
====
SELECT from_json(channel, channel) FROM bid
---
error[SQL-1103]: from_json: the schema is no constant text
  1 | SELECT from_json(channel, channel) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write from_json(text, 'a INT, b ARRAY<STRING>')
====
SELECT from_json(channel, 'MAP<INT, INT>') FROM bid
---
error[SQL-1103]: from_json: the keys of a JSON object are texts, not INT
  1 | SELECT from_json(channel, 'MAP<INT, INT>') FROM bid
    |                           ^^^^^^^^^^^^^^^
hint: write MAP<STRING, ..> and CAST it
====
SELECT from_json(channel, 'a INT', map('multiLine', 'true')) FROM bid
---
error[SQL-1103]: from_json: the only option is mode
  1 | SELECT from_json(channel, 'a INT', map('multiLine', 'true')) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write map('mode', 'FAILFAST'), or leave it out: PERMISSIVE gives NULL
====
SELECT to_json(auction) FROM bid
---
error[SQL-1103]: to_json: argument 1 is BIGINT, wanted a ROW, an ARRAY, a MAP or a VARIANT
  1 | SELECT to_json(auction) FROM bid
    |        ^^^^^^^^^^^^^^^^
hint: write to_json(struct(a, b))
====
SELECT json_object('a') FROM bid
---
error[SQL-1001]: unexpected ")": VALUE, : or "," was expected
  1 | SELECT json_object('a') FROM bid
    |                       ^
====
SELECT json_object(auction VALUE 1) FROM bid
---
error[SQL-1103]: json_object: a key is BIGINT, wanted STRING
  1 | SELECT json_object(auction VALUE 1) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: CAST it to STRING
====
SELECT json_array(INTERVAL '1' DAY) FROM bid
---
error[SQL-1103]: json_array: INTERVAL DAY TO SECOND has no form in JSON
  1 | SELECT json_array(INTERVAL '1' DAY) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: CAST it to STRING
====
SELECT * FROM bid LATERAL VIEW json_tuple(channel, channel) t AS x
---
error[SQL-1103]: json_tuple: a field's name is no plain constant text
  1 | SELECT * FROM bid LATERAL VIEW json_tuple(channel, channel) t AS x
    |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write json_tuple(text, 'a', 'b')
====
SELECT * FROM bid LATERAL VIEW json_tuple(channel, 'a', 'b') t AS x
---
error[SQL-1046]: 1 column name is given for 2 columns
  1 | SELECT * FROM bid LATERAL VIEW json_tuple(channel, 'a', 'b') t AS x
    |                                                              ^^^^^^
hint: the columns are c0, c1
