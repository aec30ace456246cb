-- SQL-1701: a window over a window over a window took the innermost window's time for its own
SELECT window_end, k, v FROM (SELECT window_end, k, sum(v) AS v FROM TUMBLE(TABLE (SELECT k, sum(v) AS v, window_time AS ts FROM TUMBLE(TABLE
 (SELECT k, count(*) AS v, window_time AS ts FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS) AS a GROUP BY window_start, window_end, window_time, k),
 DESCRIPTOR(ts), INTERVAL '10' SECONDS) AS b GROUP BY window_start, window_end, window_time, k), DESCRIPTOR(ts), INTERVAL '20' SECONDS) AS c
 GROUP BY window_start, window_end, k)
===
SELECT time_bucket(INTERVAL '20 seconds', ts) + INTERVAL '20 seconds' AS window_end, k, count(*) AS v FROM t WHERE ts IS NOT NULL GROUP BY window_end, k
