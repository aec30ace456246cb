WITH starts AS (
  SELECT f.*, time_bucket(INTERVAL 6 HOUR, departed, TIMESTAMP '1970-01-01') - to_hours(6 * step) AS window_start
  FROM flights f, range(4) AS steps(step)
)
SELECT window_start, window_start + INTERVAL 1 DAY AS window_end, origin, count(*) AS planned, count(*) FILTER (WHERE dep_time IS NULL) AS cancelled
FROM starts GROUP BY ALL HAVING cancelled > 150
