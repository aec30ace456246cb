-- What the delays of each carrier are like, over four days, given every other day.
--
--   penstock run queries/delay_shapes.sql

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

SELECT carrier, window_end,
       PERCENTILE_APPROX(dep_delay, 0.9) AS late, MODE(dep_delay) AS often, MAX_BY(dest, dep_delay) AS worst,
       LAST_VALUE(origin ORDER BY departed, flight) AS last_origin, LISTAGG(DISTINCT origin, '+') WITHIN GROUP (ORDER BY origin DESC) AS origins,
       COUNT_IF(dep_delay > 60) AS hours, APPROX_COUNT_DISTINCT(tailnum) AS planes, BIT_XOR(flight) AS flight_bits,
       ROUND(CORR(arr_delay, dep_delay), 6) AS kept, ROUND(SKEWNESS(dep_delay), 6) AS leaning
FROM HOP(TABLE flights, DESCRIPTOR(departed), INTERVAL '2' DAYS, INTERVAL '4' DAYS)
GROUP BY carrier, window_start, window_end;
