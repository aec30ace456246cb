# fields by name without case, through tables and brackets
SELECT r.channel, t.r.price, (t.r).PRICE AS p, a[1].channel, m['k'], element_at(a, -1).price FROM (SELECT struct(channel, price) AS r, array(struct(channel, price)) AS a, map('k', price) AS m FROM bid) AS t
---
Project expressions=(r.channel, r.price, r.price, a[1].channel, m['k'], element_at(a, -1).price) names=(channel, price, p, a[1].channel, m['k'], element_at(a, -1).price)
  : channel STRING, price DECIMAL(10, 2), p DECIMAL(10, 2), a[1].channel STRING, m['k'] DECIMAL(10, 2), element_at(a, -1).price DECIMAL(10, 2)
  Project expressions=(struct(channel, price), array(struct(channel, price)), map('k', price)) names=(r, a, m)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT ARRAY[1, 2L, NULL] AS a, MAP['k', 1, 'j', NULL] AS m, ROW(auction, price + 1) AS r, named_struct('x', 1, 'y', ARRAY[price]) AS s FROM bid
---
Project expressions=(array(1, 2, NULL), map('k', 1, 'j', NULL), struct(auction, (price + 1)), named_struct('x', 1, 'y', array(price))) names=(a, m, r, s)
  : a ARRAY<BIGINT> NOT NULL, m MAP<STRING, INT> NOT NULL, r ROW<auction BIGINT, col2 DECIMAL(11, 2)> NOT NULL, s ROW<x INT, y ARRAY<DECIMAL(10, 2)>> NOT NULL
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT price::INT::STRING AS p, -price::INT AS n, ARRAY[channel]::ARRAY<STRING> AS c, ts AT TIME ZONE 'Europe/Berlin' AT TIME ZONE 'UTC' AS z, ts::TIMESTAMP(3) WITH LOCAL TIME ZONE AS w FROM bid
---
Project expressions=(CAST(CAST(price AS INT) AS STRING), negate(CAST(price AS INT)), CAST(array(channel) AS ARRAY<STRING>), at_time_zone(at_time_zone(ts, 'Europe/Berlin'), 'UTC'), CAST(ts AS TIMESTAMP_LTZ(3))) names=(p, n, c, z, w)
  : p STRING, n INT, c ARRAY<STRING> NOT NULL, z TIMESTAMP(3), w TIMESTAMP_LTZ(3)
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT sum(r.price) AS total, r.channel FROM (SELECT struct(channel, price) AS r FROM bid) GROUP BY r.channel ORDER BY r.channel LIMIT 3
---
TopN keys=(channel NULLS FIRST) limit=3 offset=0
  : total DECIMAL(20, 2), channel STRING
  Project expressions=(sum(r.price), r.channel) names=(total, channel)
    Aggregate keys=(1) aggregates=(sum(r.price)) names=(sum(r.price)) phase=single
      : r.channel STRING, sum(r.price) DECIMAL(20, 2)
      Project expressions=(r, r.channel) names=(r, r.channel)
        Project expressions=(struct(channel, price)) names=(r)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# the fields of a row as columns
SELECT r.*, s.* EXCEPT (x) FROM (SELECT struct(channel, price) AS r, named_struct('x', 1, 'y', ts) AS s FROM bid)
---
Project expressions=(r.channel, r.price, s.y) names=(channel, price, y)
  : channel STRING, price DECIMAL(10, 2), y TIMESTAMP(3)
  Project expressions=(struct(channel, price), named_struct('x', 1, 'y', ts)) names=(r, s)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT transform(ARRAY[price], (x, i) -> x + i * auction) AS t, aggregate(ARRAY[bidder], 0, (s, x) -> s + x, s -> -s) AS a FROM bid WHERE exists(ARRAY[auction], auction -> auction > bidder)
---
Project expressions=(transform(array(price), (x, i) -> (x + CAST((CAST(i AS BIGINT) * auction) AS DECIMAL(20, 0)))), aggregate(array(bidder), 0, (s, x) -> (s + x), s -> negate(s))) names=(t, a)
  : t ARRAY<DECIMAL(23, 2)> NOT NULL, a BIGINT
  Filter predicate=exists(array(auction), auction -> (auction > bidder))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT transform_values(MAP[channel, ROW(price, ts)], (k, v) -> v.price) AS v, transform(ARRAY[ARRAY[auction]], l -> filter(l, x -> x > size(l))) AS f FROM bid
---
Project expressions=(transform_values(map(channel, struct(price, ts)), (k, v) -> v.price), transform(array(array(auction)), l -> filter(l, x -> (x > CAST(size(l) AS BIGINT))))) names=(v, f)
  : v MAP<STRING, DECIMAL(10, 2)> NOT NULL, f ARRAY<ARRAY<BIGINT>> NOT NULL
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
