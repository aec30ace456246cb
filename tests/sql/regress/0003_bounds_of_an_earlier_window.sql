-- the bounds of an earlier window, under other names, were taken for the window's own
SELECT ws, window_end, v FROM (SELECT ws, window_start, window_end, count(*) AS v FROM TUMBLE(TABLE (SELECT window_start AS ws, window_time AS ts, k
 FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECONDS) AS a GROUP BY window_start, window_end, window_time, k), DESCRIPTOR(ts), INTERVAL '20' SECONDS)
 AS b GROUP BY ws, window_start, window_end)
===
SELECT ws, time_bucket(INTERVAL '20 seconds', ws) + INTERVAL '20 seconds' AS window_end, count(*) AS v
 FROM (SELECT DISTINCT time_bucket(INTERVAL '5 seconds', ts) AS ws, k FROM t WHERE ts IS NOT NULL) GROUP BY ALL
