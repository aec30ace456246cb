-- What the routes out of each airport are like: aggregates of counts that change.
--
--   penstock run queries/route_shapes.sql

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

SELECT origin,
       PERCENTILE_APPROX(flights, 0.9) AS many, MEDIAN(flights) AS middle, MODE(flights) AS often, MAX_BY(dest, flights) AS busiest,
       FIRST_VALUE(dest ORDER BY flights DESC, dest DESC) AS busiest_too, LISTAGG(dest, ' ') WITHIN GROUP (ORDER BY flights DESC, dest) AS dests,
       BIT_OR(flights) AS some_bits, BIT_XOR(flights) AS odd_bits, ROUND(REGR_SLOPE(seconds, flights), 6) AS slope
FROM (SELECT origin, dest, COUNT(*) AS flights, SUM(air_time) AS seconds FROM flights GROUP BY origin, dest)
GROUP BY origin;
