CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'datagen');
CREATE TABLE person (
  id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE,
  joined_day AS CAST(joined AS DATE),
  WATERMARK FOR joined AS joined
) WITH ('connector' = 'datagen');
CREATE TABLE city (name STRING, country STRING, size INT) WITH ('connector' = 'filesystem', 'path' = 'city.csv');
CREATE TABLE airline (carrier STRING, name STRING) WITH ('connector' = 'filesystem', 'path' = 'airline.csv');
CREATE TABLE log (line STRING, at BIGINT, noticed TIMESTAMP(3)) WITH ('connector' = 'datagen');
CREATE TABLE totals (id BIGINT NOT NULL, total DECIMAL(20, 2), label STRING) WITH ('connector' = 'print');
CREATE TABLE stamped (id INT, twice AS id * 2, at TIMESTAMP(3) NOT NULL) WITH ('connector' = 'blackhole');
CREATE VIEW rich AS SELECT auction, price * 2 AS double_price, ts FROM bid WHERE price > 100;
