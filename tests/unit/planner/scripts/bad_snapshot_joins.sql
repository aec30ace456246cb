SELECT * FROM SNAPSHOT(input => TABLE person, on_time => DESCRIPTOR(joined)) AS s
---
error[SQL-1729]: SNAPSHOT is allowed after JOIN LATERAL only
  1 | SELECT * FROM SNAPSHOT(input => TABLE person, on_time => DESCRIPTOR(joined)) AS s
    |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write FROM a JOIN LATERAL SNAPSHOT(input => TABLE t, ..) AS s ON a.k = s.k
====
SELECT * FROM bid JOIN SNAPSHOT(input => TABLE person, on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
---
error[SQL-1729]: SNAPSHOT is allowed after JOIN LATERAL only
  1 | SELECT * FROM bid JOIN SNAPSHOT(input => TABLE person, on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write FROM a JOIN LATERAL SNAPSHOT(input => TABLE t, ..) AS s ON a.k = s.k
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(input => TABLE person) AS s ON bid.bidder = s.id
---
error[SQL-1729]: SNAPSHOT of a table that does not end needs the column its time goes by
  1 | SELECT * FROM bid JOIN LATERAL SNAPSHOT(input => TABLE person) AS s ON bid.bidder = s.id
    |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write on_time => DESCRIPTOR(joined)
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(input => TABLE person, on_time => DESCRIPTOR(born)) AS s ON bid.bidder = s.id
---
error[SQL-1729]: "born" is no event-time column of the table
  1 | ECT * FROM bid JOIN LATERAL SNAPSHOT(input => TABLE person, on_time => DESCRIPTOR(born)) AS s ON bid.bidder = s.id
    |                                                                                   ^^^^
hint: write on_time => DESCRIPTOR(joined)
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(input => TABLE log, on_time => DESCRIPTOR(noticed)) AS s ON bid.bidder = s.at
---
error[SQL-1729]: "noticed" is no event-time column of the table
  1 | ECT * FROM bid JOIN LATERAL SNAPSHOT(input => TABLE log, on_time => DESCRIPTOR(noticed)) AS s ON bid.bidder = s.at
    |                                                                                ^^^^^^^
hint: give the table a WATERMARK, or read one that ends
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, load_complete_time => TIMESTAMP '2026-01-01 00:00:00') AS s ON bid.bidder = s.id
---
error[SQL-1102]: SNAPSHOT has no argument load_complete_time
  1 | d JOIN LATERAL SNAPSHOT(TABLE person, load_complete_time => TIMESTAMP '2026-01-01 00:00:00') AS s ON bid.bidder = 
    |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: did you mean "LOAD_COMPLETED_TIME"?
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
---
error[SQL-1102]: the arguments of SNAPSHOT have names
  1 | SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
    |                                                       ^^^^^^^^^^^^^^^^^^
hint: write SNAPSHOT(input => TABLE t, on_time => DESCRIPTOR(ts), load_completed_time => TIMESTAMP '2026-01-01 00:00:00')
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, load_completed_condition => 'compile_time', on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
---
error[SQL-1102]: SNAPSHOT has no argument load_completed_condition
  1 | d JOIN LATERAL SNAPSHOT(TABLE person, load_completed_condition => 'compile_time', on_time => DESCRIPTOR(joined)) A
    |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: did you mean "LOAD_COMPLETED_TIME"?
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined), on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
---
error[SQL-1102]: the argument on_time is given twice
  1 | RAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined), on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
    |                                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
---
error[SQL-1102]: SNAPSHOT takes a table: input => TABLE name
  1 | SELECT * FROM bid JOIN LATERAL SNAPSHOT(on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
    |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write SNAPSHOT(input => TABLE t, on_time => DESCRIPTOR(ts), load_completed_time => TIMESTAMP '2026-01-01 00:00:00')
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person PARTITION BY id, on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
---
error[SQL-1601]: PARTITION is not supported here
  1 | M bid JOIN LATERAL SNAPSHOT(TABLE person PARTITION BY id, on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
    |                                                       ^^
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined), load_completed_time => current_timestamp) AS s ON bid.bidder = s.id
---
error[SQL-1729]: load_completed_time is a TIMESTAMP or TIMESTAMP_LTZ that is written down
  1 | T(TABLE person, on_time => DESCRIPTOR(joined), load_completed_time => current_timestamp) AS s ON bid.bidder = s.id
    |                                                                       ^^^^^^^^^^^^^^^^^
hint: write load_completed_time => TIMESTAMP '2026-01-01 00:00:00', or leave it out: then it is the moment the job is first started
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined), load_completed_idle_timeout => INTERVAL '1' MONTH) AS s ON bid.bidder = s.id
---
error[SQL-1729]: load_completed_idle_timeout is an interval of days or less, longer than nothing
  1 | erson, on_time => DESCRIPTOR(joined), load_completed_idle_timeout => INTERVAL '1' MONTH) AS s ON bid.bidder = s.id
    |                                                                      ^^^^^^^^^^^^^^^^^^
hint: write load_completed_idle_timeout => INTERVAL '10' SECOND
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined), state_ttl => INTERVAL '0' SECOND) AS s ON bid.bidder = s.id
---
error[SQL-1729]: state_ttl is an interval of days or less, longer than nothing
  1 |  SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined), state_ttl => INTERVAL '0' SECOND) AS s ON bid.bidder = s.id
    |                                                                     ^^^^^^^^^^^^^^^^^^^
hint: write state_ttl => INTERVAL '10' SECOND
====
SELECT * FROM bid FULL JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.id
---
error[SQL-1601]: SNAPSHOT is joined by JOIN or LEFT JOIN
  1 | SELECT * FROM bid FULL JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined)) AS s ON bid.bidder = s.i
    |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write JOIN or LEFT JOIN
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined)) AS s
---
error[SQL-1001]: the statement ends where ON or USING was expected
  1 | SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined)) AS s
    |                                                                                          ^
hint: write INNER JOIN t ON a.key = b.key; CROSS JOIN pairs every row with every row
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined)) AS s ON bid.bidder IN (SELECT id FROM person)
---
error[SQL-1601]: a subquery in the ON of a temporal or snapshot join is not supported
  1 | SELECT * FROM bid JOIN LATERAL SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined)) AS s ON bid.bidder IN (SELECT
    |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: put it among the conditions of WHERE
====
SELECT * FROM bid JOIN LATERAL SNAPSHOT(person) AS s ON bid.bidder = s.id
---
error[SQL-1102]: SNAPSHOT takes a table: input => TABLE name
  1 | SELECT * FROM bid JOIN LATERAL SNAPSHOT(person) AS s ON bid.bidder = s.id
    |                                         ^^^^^^
hint: write SNAPSHOT(input => TABLE t, on_time => DESCRIPTOR(ts), load_completed_time => TIMESTAMP '2026-01-01 00:00:00')
====
SELECT * FROM bid JOIN LATERAL SNAPSHT(TABLE person) AS s ON bid.bidder = s.id
---
error[SQL-1101]: table function "SNAPSHT" does not exist
  1 | SELECT * FROM bid JOIN LATERAL SNAPSHT(TABLE person) AS s ON bid.bidder = s.id
    |                                ^^^^^^^
hint: did you mean "SNAPSHOT"?
