-- The year of flights as messages of a Kafka topic, one flight a message: what the other pipelines read.
--
--   penstock run queries/pipelines/flights_topic.sql --var kafka=localhost:9092

CREATE TEMPORARY TABLE year_of_flights (
  `year` INT, `month` INT, `day` INT,
  dep_time INT, sched_dep_time INT, dep_delay INT,
  arr_time INT, sched_arr_time INT, arr_delay INT,
  carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  air_time INT, distance INT, `hour` INT, `minute` INT, time_hour STRING
) WITH (
  'connector' = 'filesystem', 'path' = '${flights}', 'format' = 'csv', 'csv.null-literal' = 'NA'
);

CREATE TEMPORARY TABLE flights (
  scheduled TIMESTAMP(3), carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  dep_delay INT, arr_delay INT, distance INT
) WITH (
  'connector' = 'kafka', 'topic' = 'flights', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json',
  -- flights of one plane are in one partition, in their order
  'key.format' = 'raw', 'key.fields' = 'tailnum'
);

INSERT INTO flights
SELECT TIMESTAMPADD(MINUTE, sched_dep_time DIV 100 * 60 + sched_dep_time % 100,
                    CAST(MAKE_DATE(`year`, `month`, `day`) AS TIMESTAMP)),
       carrier, flight, tailnum, origin, dest, dep_delay, arr_delay, distance
FROM year_of_flights
WHERE tailnum IS NOT NULL
ORDER BY `year`, `month`, `day`, sched_dep_time, carrier, flight;
