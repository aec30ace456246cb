# a table with a primary key and a watermark; ties are broken by all its columns
CREATE TABLE rate (currency STRING, factor DOUBLE, since TIMESTAMP(3), WATERMARK FOR since AS since, PRIMARY KEY (currency) NOT ENFORCED) WITH ('connector' = 'datagen');
SELECT b.price, r.factor, b.ts FROM bid AS b LEFT JOIN rate FOR SYSTEM_TIME AS OF b.ts AS r ON r.currency = b.channel AND r.factor > 1
---
table rate

Project expressions=(price, factor, ts) names=(price, factor, ts)
  : price DECIMAL(10, 2), factor DOUBLE, ts TIMESTAMP(3) [event time]
  TemporalJoin kind=left left_keys=(3) right_keys=(0) left_time=4 right_time=2 ties=(0, 1, 2) residual=(factor > 1.0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=2 watermark=since
      Scan rate columns=(0, 1, 2)
        : currency STRING NOT NULL, factor DOUBLE, since TIMESTAMP(3)
====
# a view that keeps the last row of each key is not deduplicated: each of its rows is a version
CREATE VIEW latest AS SELECT id AS who, city FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY joined DESC) AS n FROM person) WHERE n = 1;
SELECT auction, city FROM bid JOIN latest AS l FOR SYSTEM_TIME AS OF ts ON bidder = who
---
view latest

Project expressions=(auction, city) names=(auction, city)
  : auction BIGINT, city STRING
  Project expressions=(auction, bidder, price, channel, ts, who, city) names=(auction, bidder, price, channel, ts, who, city)
    TemporalJoin kind=inner left_keys=(1) right_keys=(0) left_time=4 right_time=2 ties=(0, 3, 1, 2, 4, 5, 6)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(id, city, joined, name, born, score, joined_day) names=(who, city, joined, name, born, score, joined_day)
        Project expressions=(id, name, city, joined, born, score, joined_day, over1) names=(id, name, city, joined, born, score, joined_day, n)
          Project expressions=(id, name, city, joined, born, score, joined_day, 1) names=(id, name, city, joined, born, score, joined_day, over1)
            WatermarkAssign time_column=3 watermark=joined
              Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
                Scan person columns=(0, 1, 2, 3, 4, 5)
                  : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# as of processing time: a bounded table is loaded
SELECT b.auction, c.country FROM (SELECT *, PROCTIME() AS p_time FROM bid) AS b JOIN city FOR SYSTEM_TIME AS OF b.p_time AS c ON b.channel = c.name
---
Project expressions=(auction, country) names=(auction, country)
  : auction BIGINT, country STRING
  Join kind=inner left_keys=(3) right_keys=(0)
    Project expressions=(auction, bidder, price, channel, ts, proctime()) names=(auction, bidder, price, channel, ts, p_time)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT name, carrier, country FROM airline NATURAL LEFT JOIN city
---
Project expressions=(name, carrier, country) names=(name, carrier, country)
  : name STRING, carrier STRING, country STRING
  Join kind=left left_keys=(1) right_keys=(0)
    Scan airline columns=(0, 1)
      : carrier STRING, name STRING
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
