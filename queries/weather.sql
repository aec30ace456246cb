-- Do wind and fog delay departures? Hourly windows of flights joined with that hour's weather at the airport (a bounded table).
--
--   penstock run queries/weather.sql

CREATE TEMPORARY TABLE flights (
  `year` INT, `month` INT, `day` INT,
  dep_time INT, sched_dep_time INT, dep_delay INT,
  arr_time INT, sched_arr_time INT, arr_delay INT,
  carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  air_time INT, distance INT, `hour` INT, `minute` INT, time_hour STRING,
  departed AS TIMESTAMPADD(MINUTE, COALESCE(dep_time, sched_dep_time) DIV 100 * 60 + COALESCE(dep_time, sched_dep_time) % 100,
                           CAST(MAKE_DATE(`year`, `month`, `day`) AS TIMESTAMP)),
  -- each month's file is a split of its own; inside one, a day's cancelled flights stand behind those that left
  WATERMARK FOR departed AS departed - INTERVAL '1' DAY
) WITH (
  'connector' = 'filesystem', 'path' = 'queries/data/flights', 'format' = 'csv',
  'csv.null-literal' = 'NA', 'source.replay' = 'true'
);

CREATE TEMPORARY TABLE weather (
  origin STRING, `year` INT, `month` INT, `day` INT, `hour` INT, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT,
  wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE, time_hour STRING,
  observed AS TIMESTAMPADD(HOUR, `hour`, CAST(MAKE_DATE(`year`, `month`, `day`) AS TIMESTAMP))
) WITH ('connector' = 'filesystem', 'path' = 'queries/data/weather.csv.gz', 'format' = 'csv', 'csv.null-literal' = 'NA');

SELECT w.window_start, w.origin, w.flights, w.delay_minutes, o.visib, o.wind_speed, o.precip
FROM (
  SELECT window_start, window_end, origin, COUNT(*) AS flights, SUM(dep_delay) AS delay_minutes
  FROM TABLE(TUMBLE(TABLE flights, DESCRIPTOR(departed), INTERVAL '1' HOUR))
  GROUP BY window_start, window_end, origin
) AS w
JOIN weather AS o ON w.origin = o.origin AND w.window_start = o.observed
WHERE o.visib < 0.5 AND w.flights >= 10;
