-- Kafka to a lakehouse: weekly delays of each airline, from a topic of flights into a Delta table, each row once.
--
-- An epoch of the sink is a checkpoint, and the table's log stores it with the rows. Killed at any moment, the job resumes.
--
--   make demo-kafka
--   penstock run queries/pipelines/kafka_to_delta.sql --state out/state --var kafka=localhost:9092 --var delta=out/delays --var until=unbounded

CREATE TEMPORARY TABLE flights (
  scheduled TIMESTAMP(3), carrier STRING, origin STRING, dep_delay INT, arr_delay INT,
  `partition` INT METADATA VIRTUAL,
  -- a plane's flights are in one partition, so a partition is in the order of the schedule
  WATERMARK FOR scheduled AS scheduled - INTERVAL '1' HOUR
) WITH (
  'connector' = 'kafka', 'topic' = 'flights', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '${until}'
);

CREATE TEMPORARY TABLE delays (
  week TIMESTAMP(3), origin STRING, carrier STRING, flights BIGINT, cancelled BIGINT, late BIGINT, arrival_delay BIGINT
) PARTITIONED BY (origin) WITH ('connector' = 'delta', 'table-path' = '${delta}');

INSERT INTO delays
SELECT window_start, origin, carrier,
       COUNT(*), COUNT(*) FILTER (WHERE dep_delay IS NULL), COUNT(*) FILTER (WHERE arr_delay > 15), SUM(arr_delay)
FROM TABLE(TUMBLE(TABLE flights, DESCRIPTOR(scheduled), INTERVAL '7' DAY))
GROUP BY window_start, window_end, origin, carrier;

SELECT origin, carrier, SUM(flights) AS flights, ROUND(100.0 * SUM(late) / SUM(flights), 1) AS late_percent
FROM delays
GROUP BY origin, carrier
HAVING SUM(flights) > 1000
ORDER BY late_percent DESC, origin, carrier
LIMIT 10;
