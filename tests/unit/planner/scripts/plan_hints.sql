# options for one query; the table keeps its own
SELECT name FROM city /*+ OPTIONS('source.replay' = 'true', 'csv.null-literal' = 'it''s') */ AS c;
SELECT c.name FROM person AS p JOIN city /*+ OPTIONS('csv.header' = 'false'), OPTIONS('csv.quote' = '|') */ c ON p.city = c.name;
CREATE VIEW v AS SELECT name FROM city /*+ OPTIONS('csv.header' = 'false') */;
SELECT name FROM v;
SELECT /*+ BROADCAST(C) */ p.name FROM person AS p JOIN city AS c ON p.city = c.name;
SELECT /*+ STATE_TTL('p' = '1 d', 'C' = '0') */ p.name FROM person AS p JOIN city AS c ON p.city = c.name;
SELECT /*+ STATE_TTL('bid' = '1 h') */ DISTINCT channel, COUNT(*) AS n FROM bid GROUP BY channel;
SELECT name FROM (SELECT /*+ STATE_TTL('p' = '2 h') */ name, ROW_NUMBER() OVER (PARTITION BY city ORDER BY id) AS n FROM person AS p) AS q WHERE n = 1;
SELECT '/*+ BROADCAST(a) */' AS text, 1 /* + no hint */ -- /*+ BROADCAST(a) */
---
Project expressions=(name) names=(name)
  : name STRING
  Scan city columns=(0, 1, 2)
    : name STRING, country STRING, size INT

Project expressions=(name) names=(name)
  : name STRING
  Join kind=inner left_keys=(2) right_keys=(0)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT

view v

Project expressions=(name) names=(name)
  : name STRING
  Scan city columns=(0, 1, 2)
    : name STRING, country STRING, size INT

Project expressions=(name) names=(name)
  : name STRING
  Join kind=inner left_keys=(2) right_keys=(0) copied=1
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT

Project expressions=(name) names=(name)
  : name STRING
  Join kind=inner left_keys=(2) right_keys=(0) ttl_ms=(86400000, 0)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT

Aggregate keys=(0, 1) phase=single ttl_ms=3600000
  : channel STRING, n BIGINT NOT NULL
  Project expressions=(channel, count(*)) names=(channel, n)
    Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single ttl_ms=3600000
      : channel STRING, count(*) BIGINT NOT NULL
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)

Project expressions=(name) names=(name)
  : name STRING
  Filter predicate=(n = 1)
    Project expressions=(name, over1) names=(name, n)
      Over partition=(2) order=(id NULLS FIRST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(row_number()) names=(over1) timely=False ttl_ms=7200000
        WatermarkAssign time_column=3 watermark=joined
          Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
            Scan person columns=(0, 1, 2, 3, 4, 5)
              : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE

Values rows=(('/*+ BROADCAST(a) */', 1))
  : text STRING NOT NULL, 1 INT NOT NULL
