CREATE TABLE more (extra INT) WITH ('rows-per-second' = '5') LIKE bid
---
CREATE TABLE `more` (
  `auction` BIGINT,
  `bidder` BIGINT,
  `price` DECIMAL(10, 2),
  `channel` STRING,
  `ts` TIMESTAMP(3),
  `extra` INT,
  WATERMARK FOR `ts` AS ts - INTERVAL '5' SECOND
)
WITH (
  'connector' = 'datagen',
  'rows-per-second' = '5'
)
====
CREATE TABLE printed WITH ('connector' = 'print') LIKE person (EXCLUDING OPTIONS EXCLUDING WATERMARKS EXCLUDING GENERATED)
---
CREATE TABLE `printed` (
  `id` BIGINT NOT NULL,
  `name` STRING,
  `city` STRING,
  `joined` TIMESTAMP(3),
  `born` DATE,
  `score` DOUBLE
)
WITH (
  'connector' = 'print'
)
====
CREATE TABLE per_channel WITH ('connector' = 'print') AS SELECT channel, count(*) AS n FROM bid GROUP BY channel
---
CREATE TABLE `per_channel` (
  `channel` STRING,
  `n` BIGINT NOT NULL
)
WITH (
  'connector' = 'print'
)
Sink per_channel
  : channel STRING, n BIGINT NOT NULL
  Project expressions=(channel, count(*)) names=(channel, n)
    Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
      : channel STRING, count(*) BIGINT NOT NULL
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
