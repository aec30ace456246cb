-- The three worst delays of every carrier so far: Top-N per partition, kept up to date.
--
--   penstock run queries/worst_delays.sql

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

SELECT carrier, place, flight, origin, dest, departed, dep_delay
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY dep_delay DESC, departed, flight) AS place
  FROM flights
  WHERE dep_delay IS NOT NULL
)
WHERE place <= 3;
