-- PostgreSQL and Kafka together: flights of a topic joined with the planes of a table that people edit.
--
-- The table is read once and then followed through its replication slot. An edit of a plane corrects every row it
-- is in: in the topic, which keeps the last value of each key, and in a materialized view of that.
-- In PostgreSQL: ALTER TABLE planes REPLICA IDENTITY FULL, so that a change has the row it replaces.
--
--   make demo-cdc

CREATE TEMPORARY TABLE flights (
  tailnum STRING, origin STRING, distance INT
) WITH (
  'connector' = 'kafka', 'topic' = 'flights', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset'
);

CREATE TEMPORARY TABLE planes (
  tailnum STRING, manufacturer STRING, seats INT, PRIMARY KEY (tailnum) NOT ENFORCED
) WITH (
  'connector' = 'postgres-cdc', 'hostname' = '${postgres_host}', 'port' = '${postgres_port}', 'username' = '${postgres_user}',
  'database-name' = '${database}', 'table-name' = 'planes', 'slot.name' = 'planes', 'heartbeat.interval' = '1 s'
);

CREATE TEMPORARY TABLE makers (
  manufacturer STRING, flights BIGINT, seats BIGINT, PRIMARY KEY (manufacturer) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'makers', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TEMPORARY VIEW flights_of_makers AS
SELECT p.manufacturer, COUNT(*) AS flights, SUM(p.seats) AS seats
FROM flights AS f
JOIN planes AS p ON f.tailnum = p.tailnum
GROUP BY p.manufacturer;

INSERT INTO makers SELECT manufacturer, flights, seats FROM flights_of_makers;
