-- Delays out of New York: a year of flights replayed as a stream.
--
-- Every flight is an event at the time it left (a cancelled one: when it should have). Weekly windows per origin and carrier close as
-- event time passes them; airlines and planes are bounded tables that Spark reads. The result is Parquet, written exactly once.
--
--   penstock run queries/flights.sql --state out/state

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

CREATE TEMPORARY TABLE airlines (carrier STRING, name STRING)
WITH ('connector' = 'filesystem', 'path' = 'queries/data/airlines.csv.gz', 'format' = 'csv', 'csv.null-literal' = 'NA');

CREATE TEMPORARY TABLE planes (
  tailnum STRING, `year` INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT, speed INT, engine STRING
) WITH ('connector' = 'filesystem', 'path' = 'queries/data/planes.csv.gz', 'format' = 'csv', 'csv.null-literal' = 'NA');

CREATE TEMPORARY TABLE delays (
  week TIMESTAMP(3), origin STRING, airline STRING,
  flights BIGINT, cancelled BIGINT, late_arrivals BIGINT, departure_delay BIGINT, arrival_delay BIGINT, worst_arrival INT, seats BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'out/flights/delays', 'format' = 'parquet');

CREATE TEMPORARY VIEW flights_with_planes AS
SELECT f.departed, f.origin, f.carrier, f.dep_time, f.dep_delay, f.arr_delay, p.seats
FROM flights AS f
LEFT JOIN planes AS p ON f.tailnum = p.tailnum AND p.seats > 1;

INSERT INTO delays
SELECT w.window_start, w.origin, a.name, w.flights, w.cancelled, w.late_arrivals, w.departure_delay, w.arrival_delay, w.worst_arrival, w.seats
FROM (
  SELECT window_start, window_end, origin, carrier,
         COUNT(*) AS flights,
         COUNT(*) FILTER (WHERE dep_time IS NULL) AS cancelled,
         COUNT(*) FILTER (WHERE arr_delay > 15) AS late_arrivals,
         SUM(dep_delay) AS departure_delay,
         SUM(arr_delay) AS arrival_delay,
         MAX(arr_delay) AS worst_arrival,
         SUM(seats) FILTER (WHERE dep_time IS NOT NULL) AS seats
  FROM TABLE(TUMBLE(TABLE flights_with_planes, DESCRIPTOR(departed), INTERVAL '7' DAY))
  GROUP BY window_start, window_end, origin, carrier
) AS w
JOIN airlines AS a ON w.carrier = a.carrier;

-- The table at the end: bounded by now, so Spark answers. Who keeps New York waiting?
SELECT origin, airline,
       SUM(flights) AS flights,
       ROUND(100.0 * SUM(cancelled) / SUM(flights), 1) AS cancelled_percent,
       ROUND(100.0 * SUM(late_arrivals) / (SUM(flights) - SUM(cancelled)), 1) AS late_percent,
       ROUND(1.0 * SUM(arrival_delay) / (SUM(flights) - SUM(cancelled)), 1) AS mean_arrival_delay,
       MAX(worst_arrival) AS worst_minutes
FROM delays
GROUP BY origin, airline
HAVING SUM(flights) > 1000
ORDER BY mean_arrival_delay DESC, origin, airline
LIMIT 12;
