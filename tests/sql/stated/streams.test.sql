-- What the streaming tests of this project prove by programs, said as tests of SQL: penstock test tests/sql/stated

CREATE TABLE t (k INT, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'filesystem', 'path' = 't.csv', 'source.replay' = 'true');
CREATE TABLE u (k INT, name STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (k) NOT ENFORCED)
  WITH ('connector' = 'filesystem', 'path' = 'u.csv', 'source.replay' = 'true');

TEST 'three windows in a row: each takes its own time (regress 0001)'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:01'), (1, 1, '2024-01-01 00:00:02'), (1, 1, '2024-01-01 00:00:11'),
  (2, 1, '2024-01-01 00:00:12'), (1, 1, '2024-01-01 00:00:27')
EXPECT (SELECT window_end, k, sum(v) AS v FROM TUMBLE(TABLE (
    SELECT k, sum(v) AS v, window_time AS ts FROM TUMBLE(TABLE (
      SELECT k, count(*) AS v, window_time AS ts FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS)
      GROUP BY window_start, window_end, window_time, k), DESCRIPTOR(ts), INTERVAL '10' SECONDS)
    GROUP BY window_start, window_end, window_time, k), DESCRIPTOR(ts), INTERVAL '20' SECONDS)
  GROUP BY window_start, window_end, k)
  VALUES ('2024-01-01 00:00:20', 1, 3), ('2024-01-01 00:00:20', 2, 1), ('2024-01-01 00:00:40', 1, 1);

TEST 'an aggregate of no rows has one row (regress 0002)'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:01')
EXPECT (SELECT count(*) AS n, max(v) AS m FROM t WHERE v > 15) VALUES (0, NULL);

TEST 'the bounds of an earlier window are columns like any others (regress 0003)'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:01'), (2, 1, '2024-01-01 00:00:02'), (1, 1, '2024-01-01 00:00:07')
EXPECT (SELECT ws, window_end, count(*) AS v FROM TUMBLE(TABLE (
    SELECT window_start AS ws, window_time AS ts, k FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS)
    GROUP BY window_start, window_end, window_time, k), DESCRIPTOR(ts), INTERVAL '20' SECONDS)
  GROUP BY ws, window_start, window_end)
  VALUES ('2024-01-01 00:00:00', '2024-01-01 00:00:20', 2), ('2024-01-01 00:00:05', '2024-01-01 00:00:20', 1);

TEST 'a row behind its window is dropped, one within the delay is not'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:01') WATERMARK '2024-01-01 00:00:09'
  VALUES (1, 10, '2024-01-01 00:00:02') WATERMARK '2024-01-01 00:00:10'
  VALUES (1, 100, '2024-01-01 00:00:03')
EXPECT (SELECT window_start, sum(v) AS v FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS)
  GROUP BY window_start, window_end) VALUES ('2024-01-01 00:00:00', 11);

TEST 'a row is in every window of HOP that covers it'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:07')
EXPECT (SELECT window_start, count(*) AS n FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS)
  GROUP BY window_start, window_end) VALUES ('2024-01-01 00:00:00', 1), ('2024-01-01 00:00:05', 1);

TEST 'CUMULATE grows to its size'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:01'), (1, 2, '2024-01-01 00:00:06')
EXPECT (SELECT window_end, sum(v) AS v FROM CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS)
  GROUP BY window_start, window_end) VALUES ('2024-01-01 00:00:05', 1), ('2024-01-01 00:00:10', 3);

TEST 'a session ends at its gap, of each key by itself'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:01'), (1, 1, '2024-01-01 00:00:04'), (2, 1, '2024-01-01 00:00:04'),
  (1, 1, '2024-01-01 00:00:20')
EXPECT (SELECT k, window_start, count(*) AS n
  FROM SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY k, window_start, window_end)
  VALUES (1, '2024-01-01 00:00:01', 2), (2, '2024-01-01 00:00:04', 1), (1, '2024-01-01 00:00:20', 1);

TEST 'a group replaces its row: every change is a pair'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:01'), (1, 2, '2024-01-01 00:00:02')
EXPECT (SELECT k, sum(v) AS v FROM t GROUP BY k)
  CHANGES VALUES ('+I', 1, 1), ('-U', 1, 1), ('+U', 1, 3);

TEST 'Top-N retracts the row that falls out'
GIVEN t VALUES (1, 5, '2024-01-01 00:00:01'), (2, 7, '2024-01-01 00:00:02'), (3, 6, '2024-01-01 00:00:03')
EXPECT (SELECT k, v FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY v DESC) <= 2) VALUES (2, 7), (3, 6);

TEST 'deduplication keeps the first row of a key'
GIVEN t VALUES (1, 5, '2024-01-01 00:00:01'), (1, 7, '2024-01-01 00:00:02'), (2, 6, '2024-01-01 00:00:03')
EXPECT (SELECT k, v FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1) VALUES (1, 5), (2, 6);

TEST 'OVER sees the rows before its own'
GIVEN t VALUES (1, 5, '2024-01-01 00:00:01'), (1, 7, '2024-01-01 00:00:02'), (2, 6, '2024-01-01 00:00:03')
EXPECT (SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t)
  VALUES (1, 5), (1, 12), (2, 6);

TEST 'an interval join pairs what is near in time, and an outer one keeps the rest'
GIVEN t VALUES (1, 5, '2024-01-01 00:00:10'), (2, 7, '2024-01-01 00:00:10')
GIVEN u VALUES (1, 'near', '2024-01-01 00:00:08'), (2, 'far', '2024-01-01 00:00:01')
EXPECT (SELECT t.k, u.name FROM t LEFT JOIN u ON t.k = u.k
  AND u.ts BETWEEN t.ts - INTERVAL '5' SECOND AND t.ts) VALUES (1, 'near'), (2, NULL);

TEST 'a temporal join takes the version of its row''s time'
GIVEN t VALUES (1, 5, '2024-01-01 00:00:05'), (1, 7, '2024-01-01 00:00:15')
GIVEN u VALUES (1, 'old', '2024-01-01 00:00:01'), (1, 'new', '2024-01-01 00:00:10')
EXPECT (SELECT t.v, u.name FROM t JOIN u FOR SYSTEM_TIME AS OF t.ts ON t.k = u.k) VALUES (5, 'old'), (7, 'new');

TEST 'a regular join retracts nothing of rows that only arrive'
GIVEN t VALUES (1, 5, '2024-01-01 00:00:05'), (2, 7, '2024-01-01 00:00:15')
GIVEN u VALUES (1, 'one', '2024-01-01 00:00:01')
EXPECT (SELECT t.v, u.name FROM t JOIN u ON t.k = u.k) VALUES (5, 'one');

TEST 'NOT IN is empty beside a NULL'
GIVEN t VALUES (1, 5, '2024-01-01 00:00:05')
GIVEN u (k, name) VALUES (NULL, 'none')
EXPECT (SELECT v FROM t WHERE k NOT IN (SELECT k FROM u)) NO ROWS;

TEST 'MATCH_RECOGNIZE finds a fall and a rise'
GIVEN t VALUES (1, 9, '2024-01-01 00:00:01'), (1, 4, '2024-01-01 00:00:02'), (1, 6, '2024-01-01 00:00:03')
EXPECT (SELECT k, lowest FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(down.v) AS lowest
  PATTERN (begin down+ up) DEFINE down AS v < PREV(v), up AS v > PREV(v))) VALUES (1, 4);

TEST 'EMIT FINAL gives the last row of each group only'
GIVEN t VALUES (1, 1, '2024-01-01 00:00:01'), (1, 2, '2024-01-01 00:00:02')
EXPECT (SELECT k, sum(v) AS v FROM t GROUP BY k EMIT FINAL) CHANGES VALUES ('+I', 1, 3);

TEST 'UNNEST gives a row for each element'
GIVEN t VALUES (1, 2, '2024-01-01 00:00:01')
EXPECT (SELECT x FROM t CROSS JOIN UNNEST(ARRAY[k, v]) AS a (x)) VALUES (1), (2);

TEST 'division is not of integers, and sums widen (Spark''s values)'
GIVEN t VALUES (7, 2, '2024-01-01 00:00:01')
EXPECT (SELECT k / v AS q, k DIV v AS d, sum(k) AS s FROM t GROUP BY k, v) VALUES (3.5, 3, 7);
