-- What a database with Debezium would write: the changes of a table that counts the flights of each route.
--
--   penstock run queries/pipelines/routes_topic.sql --var kafka=localhost:9092 --var flights=queries/data/flights

CREATE TEMPORARY TABLE year_of_flights (
  `year` INT, `month` INT, `day` INT,
  dep_time INT, sched_dep_time INT, dep_delay INT,
  arr_time INT, sched_arr_time INT, arr_delay INT,
  carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
  air_time INT, distance INT, `hour` INT, `minute` INT, time_hour STRING
) WITH (
  'connector' = 'filesystem', 'path' = '${flights}', 'format' = 'csv', 'csv.null-literal' = 'NA', 'source.replay' = 'true'
);

CREATE TEMPORARY TABLE routes (
  origin STRING, dest STRING, flights BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'routes', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'debezium-json'
);

INSERT INTO routes SELECT origin, dest, COUNT(*) FROM year_of_flights GROUP BY origin, dest;
