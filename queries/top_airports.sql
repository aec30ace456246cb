-- The ten busiest destinations so far: a running count whose result changes with every flight, and its top ten.
--
--   penstock run queries/top_airports.sql

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

CREATE TEMPORARY TABLE airports (faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING)
WITH ('connector' = 'filesystem', 'path' = 'queries/data/airports.csv.gz', 'format' = 'csv', 'csv.null-literal' = 'NA');

SELECT t.dest, a.name, t.flights, t.miles
FROM (
  SELECT dest, COUNT(*) AS flights, SUM(CAST(distance AS BIGINT)) AS miles
  FROM flights
  WHERE dep_time IS NOT NULL
  GROUP BY dest
) AS t
LEFT JOIN airports AS a ON t.dest = a.faa
ORDER BY flights DESC, dest
LIMIT 10;
