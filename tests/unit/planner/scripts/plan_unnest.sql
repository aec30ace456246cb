# the rows so far beside the elements of one of their arrays; time attributes live on
SELECT auction, e, ts FROM (SELECT auction, array(price, 1) AS a, ts FROM bid) AS t CROSS JOIN UNNEST(t.a) AS u(e)
---
Project expressions=(auction, e, ts) names=(auction, e, ts)
  : auction BIGINT, e DECIMAL(12, 2), ts TIMESTAMP(3) [event time]
  Unnest call=unnest(a) keep=(0, 1, 2) gives=(0) outer=False ordinality=False
    Project expressions=(auction, array(CAST(price AS DECIMAL(12, 2)), 1.00), ts) names=(auction, a, ts)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# rows are their fields, a map its keys and values; rows without any are kept
SELECT u.*, k, v FROM (SELECT array(struct(channel, price)) AS a, map(channel, price) AS m FROM bid) LEFT JOIN UNNEST(a) WITH ORDINALITY AS u(c, p, n) ON TRUE, UNNEST(m) AS w(k, v)
---
Project expressions=(c, p, n, k, v) names=(c, p, n, k, v)
  : c STRING, p DECIMAL(10, 2), n BIGINT, k STRING NOT NULL, v DECIMAL(10, 2)
  Unnest call=unnest(m) keep=(0, 1, 2, 3, 4) gives=(0, 1) outer=False ordinality=False
    Unnest call=unnest(a) keep=(0, 1) gives=(0, 1) outer=True ordinality=True
      Project expressions=(array(struct(channel, price)), map(channel, price)) names=(a, m)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# Spark's words
SELECT auction, pos, e FROM (SELECT auction, array(price) AS a FROM bid) LATERAL VIEW OUTER posexplode(a) v AS pos, e LATERAL VIEW explode(a) WHERE col > 1
---
Project expressions=(auction, pos, e) names=(auction, pos, e)
  : auction BIGINT, pos INT, e DECIMAL(10, 2)
  Filter predicate=(col > 1.00)
    Unnest call=explode(a) keep=(0, 1, 2, 3) gives=(0) outer=False ordinality=False
      Unnest call=posexplode(a) keep=(0, 1) gives=(0, 1) outer=True ordinality=False
        Project expressions=(auction, array(price)) names=(auction, a)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a condition is a filter
SELECT e FROM (SELECT array(price) AS a FROM bid) AS t JOIN UNNEST(a) AS u(e) ON e > 1
---
Project expressions=(e) names=(e)
  : e DECIMAL(10, 2)
  Filter predicate=(e > 1.00)
    Unnest call=unnest(a) keep=(0) gives=(0) outer=False ordinality=False
      Project expressions=(array(price)) names=(a)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# functions that give rows by themselves
SELECT * FROM UNNEST(ARRAY[1, 2]) AS x, LATERAL TABLE(generate_series(1, x)) AS s, range(2)
---
Project expressions=(x, s, id) names=(x, s, id)
  : x INT, s BIGINT NOT NULL, id BIGINT NOT NULL
  Unnest call=range(2) keep=(0, 1, 2) gives=(0) outer=False ordinality=False
    Unnest call=series(1, CAST(x AS BIGINT)) keep=(0, 1) gives=(0) outer=False ordinality=False
      Unnest call=unnest(array(1, 2)) keep=(0) gives=(0) outer=False ordinality=False
        Values rows=((0))
          : nothing INT NOT NULL
====
SELECT * FROM stack(2, 1, 'a', 2.5, 'b', 3) AS s(a, b, c)
---
Project expressions=(a, b, c) names=(a, b, c)
  : a BIGINT, b BIGINT, c DECIMAL(2, 1)
  Unnest call=stack(2, 1, CAST('a' AS BIGINT), 2.5, CAST('b' AS BIGINT), 3) keep=(0) gives=(0, 1, 2) outer=False ordinality=False
    Values rows=((0))
      : nothing INT NOT NULL
====
# Spark's functions in the list
SELECT auction, explode(a) AS e FROM (SELECT auction, array(price) AS a FROM bid) WHERE auction > 3 ORDER BY e LIMIT 2
---
TopN keys=(e NULLS FIRST) limit=2 offset=0
  : auction BIGINT, e DECIMAL(10, 2)
  Project expressions=(auction, col) names=(auction, e)
    Unnest call=explode(a) keep=(0, 1) gives=(0) outer=False ordinality=False
      Filter predicate=(auction > 3)
        Project expressions=(auction, array(price)) names=(auction, a)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT *, posexplode(a) FROM (SELECT array(price) AS a FROM bid)
---
Unnest call=posexplode(a) keep=(0) gives=(0, 1) outer=False ordinality=False
  : a ARRAY<DECIMAL(10, 2)> NOT NULL, pos INT NOT NULL, col DECIMAL(10, 2)
  Project expressions=(array(price)) names=(a)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT b.auction, x FROM bid AS b LEFT JOIN UNNEST(ARRAY[bidder, auction]) WITH ORDINALITY AS u(x, n) ON x > b.auction AND n = 1
---
Project expressions=(auction, x) names=(auction, x)
  : auction BIGINT, x BIGINT
  Unnest call=unnest(array(bidder, auction)) keep=(0, 1, 2, 3, 4) gives=(0) outer=True ordinality=True condition=((x > auction) AND (n = 1))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT b.auction, x FROM bid AS b JOIN UNNEST(ARRAY[bidder, auction]) AS u(x) ON x > b.auction
---
Project expressions=(auction, x) names=(auction, x)
  : auction BIGINT, x BIGINT
  Filter predicate=(x > auction)
    Unnest call=unnest(array(bidder, auction)) keep=(0, 1, 2, 3, 4) gives=(0) outer=False ordinality=False
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
