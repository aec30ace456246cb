-- Planes of Envoy Air that leave New York five times within two days, and where each went before: rows over earlier rows of the same plane.
-- Time settles every row: it is given once, when the watermark has passed it.
--
--   penstock run queries/busy_planes.sql

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

SELECT tailnum, departed, origin, dest, went_before, within_two_days
FROM (
  SELECT tailnum, departed, origin, dest,
         LAG(dest) OVER (PARTITION BY tailnum ORDER BY departed, flight, origin) AS went_before,
         COUNT(*) OVER (PARTITION BY tailnum ORDER BY departed RANGE BETWEEN INTERVAL '2' DAYS PRECEDING AND CURRENT ROW) AS within_two_days
  FROM flights
  WHERE dep_time IS NOT NULL AND carrier = 'MQ'
)
WHERE within_two_days >= 5;
