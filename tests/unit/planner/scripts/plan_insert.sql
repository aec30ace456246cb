INSERT INTO totals SELECT auction, price, channel FROM bid
---
Sink totals
  : id BIGINT, total DECIMAL(20, 2), label STRING
  Project expressions=(auction, CAST(price AS DECIMAL(20, 2)), channel) names=(id, total, label)
    Project expressions=(auction, price, channel) names=(auction, price, channel)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
INSERT INTO totals (label, id) SELECT channel, auction FROM bid
---
Sink totals
  : id BIGINT, total DECIMAL(20, 2), label STRING
  Project expressions=(auction, NULL, channel) names=(id, total, label)
    Project expressions=(channel, auction) names=(channel, auction)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
INSERT INTO totals VALUES (1, 2.5, 'a'), (2, NULL, NULL)
---
Sink totals
  : id BIGINT NOT NULL, total DECIMAL(20, 2), label STRING
  Project expressions=(CAST(col1 AS BIGINT), CAST(col2 AS DECIMAL(20, 2)), col3) names=(id, total, label)
    Values rows=((1, 2.5, 'a'), (2, NULL, NULL))
      : col1 INT NOT NULL, col2 DECIMAL(2, 1), col3 STRING
====
# computed columns of the sink are not given
INSERT INTO stamped SELECT auction, ts FROM bid
---
Sink stamped
  : id INT, at TIMESTAMP(3) [event time]
  Project expressions=(CAST(auction AS INT), ts) names=(id, at)
    Project expressions=(auction, ts) names=(auction, ts)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
EXECUTE STATEMENT SET BEGIN INSERT INTO totals (id) SELECT auction FROM bid; INSERT INTO stamped SELECT 1, ts FROM bid; END
---
StatementSet
  : done BOOLEAN NOT NULL
  Sink totals
    Project expressions=(auction, NULL, NULL) names=(id, total, label)
      Project expressions=(auction) names=(auction)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
  Sink stamped
    Project expressions=(1, ts) names=(id, at)
      Project expressions=(1, ts) names=(1, ts)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
CREATE VIEW v (a, b) AS SELECT auction, price FROM bid; INSERT INTO totals (id, total) SELECT a, b FROM v
---
view v

Sink totals
  : id BIGINT, total DECIMAL(20, 2), label STRING
  Project expressions=(a, CAST(b AS DECIMAL(20, 2)), NULL) names=(id, total, label)
    Project expressions=(a, b) names=(a, b)
      Project expressions=(auction, price) names=(auction, price)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# computed columns read each other, keys are not null, options fold
CREATE TABLE t (a INT, b AS a + 1, c AS b * 2, f STRING METADATA FROM 'file.name' VIRTUAL, at TIMESTAMP(3), PRIMARY KEY (a) NOT ENFORCED, WATERMARK FOR at AS at) WITH ('Connector' = 'filesystem', 'path' = 't.csv'); SELECT * FROM t
---
table t

WatermarkAssign time_column=4 watermark=at
  : a INT NOT NULL, b INT NOT NULL, c INT NOT NULL, f STRING, at TIMESTAMP(3) [event time]
  Project expressions=(a, (a + 1), ((a + 1) * 2), f, at) names=(a, b, c, f, at)
    Scan t columns=(0, 1, 2)
      : a INT NOT NULL, f STRING, at TIMESTAMP(3)
====
# metadata declared with a role
CREATE TABLE t (a INT, f STRING METADATA FROM 'file.name') WITH ('connector' = 'filesystem', 'path' = 't.csv', 'on-error' = 'table'); SELECT raw, error FROM t$errors
---
table t

Project expressions=(raw, error) names=(raw, error)
  : raw STRING, error STRING NOT NULL
  Scan t$errors columns=(0, 1, 2, 3, 4, 5)
    : raw STRING, source STRING NOT NULL, split STRING NOT NULL, position BIGINT NOT NULL, column STRING, error STRING NOT NULL
