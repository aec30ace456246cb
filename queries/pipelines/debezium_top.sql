-- Debezium to PostgreSQL: the changes of a table, as Debezium writes them to a topic, into a table of the best.
--
-- The topic has the running number of flights of each route. The query keeps the three busiest routes of each airport; where a
-- route overtakes another, its rows are replaced in the transaction that stores the epoch.
--
--   make demo-debezium

CREATE TEMPORARY TABLE routes (
  origin STRING, dest STRING, flights BIGINT, PRIMARY KEY (origin, dest) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'routes', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'debezium-json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '${until}'
);

CREATE TEMPORARY TABLE busiest_routes (
  origin STRING, place BIGINT, dest STRING, flights BIGINT, PRIMARY KEY (origin, place) NOT ENFORCED
) WITH ('connector' = 'postgres', 'url' = '${postgres}', 'table-name' = 'busiest_routes');

INSERT INTO busiest_routes
SELECT origin, place, dest, flights
FROM (
  SELECT origin, dest, flights, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY flights DESC, dest) AS place
  FROM routes
)
WHERE place <= 3;

SELECT * FROM busiest_routes ORDER BY origin, place;
