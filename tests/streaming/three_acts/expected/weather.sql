WITH hours AS (
  SELECT date_trunc('hour', departed) AS window_start, origin, count(*) AS flights, sum(dep_delay)::BIGINT AS delay_minutes FROM flights GROUP BY ALL
)
SELECT h.window_start, h.origin, h.flights, h.delay_minutes, o.visib, o.wind_speed, o.precip
FROM hours h JOIN weather o ON h.origin = o.origin AND h.window_start = make_timestamp(o.year, o.month, o.day, o.hour, 0, 0)
WHERE o.visib < 0.5 AND h.flights >= 10
