# rows that share a key: a join
SELECT b.auction, c.big FROM bid AS b, LATERAL (SELECT size * 2 AS big FROM city WHERE city.name = b.channel AND size > 3) AS c
---
Project expressions=(auction, big) names=(auction, big)
  : auction BIGINT, big INT
  Project expressions=(auction, bidder, price, channel, ts, item1) names=(auction, bidder, price, channel, ts, big)
    Join kind=inner left_keys=(3) right_keys=(0)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, country, size, (size * 2)) names=(name, country, size, item1)
        Filter predicate=(size > 3)
          Scan city columns=(0, 1, 2)
            : name STRING, country STRING, size INT
====
# a list of aggregates is one row for each
SELECT auction, n, top FROM bid AS b LEFT JOIN LATERAL (SELECT count(*) AS n, max(size) AS top FROM city WHERE name = b.channel) AS c ON TRUE
---
Project expressions=(auction, n, top) names=(auction, n, top)
  : auction BIGINT, n BIGINT NOT NULL, top INT
  Project expressions=(auction, bidder, price, channel, ts, CASE WHEN is_not_null(count(*)) THEN count(*) ELSE 0 END, max(size)) names=(auction, bidder, price, channel, ts, n, top)
    Join kind=left left_keys=(3) right_keys=(0)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Aggregate keys=(0) aggregates=(count(*), max(size)) names=(count(*), max(size)) phase=single
        : name STRING, count(*) BIGINT NOT NULL, max(size) INT
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
====
# the first rows for each
SELECT auction, c.* FROM bid AS b CROSS JOIN LATERAL (SELECT country, size + b.price AS s FROM city WHERE name = b.channel ORDER BY size DESC LIMIT 2) AS c(x, y)
---
Project expressions=(auction, x, y) names=(auction, x, y)
  : auction BIGINT, x STRING, y DECIMAL(13, 2)
  Project expressions=(auction, bidder, price, channel, ts, item1, (CAST(size AS DECIMAL(10, 0)) + price)) names=(auction, bidder, price, channel, ts, country, s)
    Join kind=inner left_keys=(3) right_keys=(0)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, country, size, country) names=(name, country, size, item1)
        PartitionTop partition=(0) order=(size DESC NULLS LAST) rank=row_number limit=2
          Scan city columns=(0, 1, 2)
            : name STRING, country STRING, size INT
====
# a query that reads nothing of it
SELECT auction, n FROM bid, LATERAL (SELECT country, count(*) AS n FROM city GROUP BY country) AS c
---
Project expressions=(auction, n) names=(auction, n)
  : auction BIGINT, n BIGINT NOT NULL
  Join kind=inner
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(country, count(*)) names=(country, n)
      Aggregate keys=(1) aggregates=(count(*)) names=(count(*)) phase=single
        : country STRING, count(*) BIGINT NOT NULL
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
====
SELECT b.auction, o.price FROM bid AS b LEFT JOIN LATERAL (SELECT price, bidder FROM bid WHERE auction = b.auction) AS o ON o.bidder <> b.bidder
---
Project expressions=(auction, price) names=(auction, price)
  : auction BIGINT, price DECIMAL(10, 2)
  Project expressions=(auction, bidder, price, channel, ts, item1, item2) names=(auction, bidder, price, channel, ts, price, bidder)
    Join kind=left left_keys=(0) right_keys=(0) residual=(bidder <> bidder)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(auction, bidder, price, channel, ts, price, bidder) names=(auction, bidder, price, channel, ts, item1, item2)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT b.auction, o.n FROM bid AS b LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM bid WHERE auction = b.auction) AS o ON o.n > b.bidder
---
Project expressions=(auction, n) names=(auction, n)
  : auction BIGINT, n BIGINT
  Project expressions=(auction, bidder, price, channel, ts, CASE WHEN (n > bidder) THEN n ELSE NULL END) names=(auction, bidder, price, channel, ts, n)
    Project expressions=(auction, bidder, price, channel, ts, CASE WHEN is_not_null(count(*)) THEN count(*) ELSE 0 END) names=(auction, bidder, price, channel, ts, n)
      Join kind=left left_keys=(0) right_keys=(0)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
        Aggregate keys=(0) aggregates=(count(*)) names=(count(*)) phase=single
          : auction BIGINT, count(*) BIGINT NOT NULL
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT * FROM bid AS b, LATERAL (SELECT size FROM city WHERE name < b.channel ORDER BY size LIMIT 1) AS c
---
Project expressions=(auction, bidder, price, channel, ts, item1) names=(auction, bidder, price, channel, ts, size)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time], size INT
  Join kind=inner left_keys=(3) right_keys=(3)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(name, country, size, outer1, size) names=(name, country, size, outer1, item1)
      PartitionTop partition=(3) order=(size NULLS FIRST) rank=row_number limit=1
        Project expressions=(name, country, size, outer1) names=(name, country, size, outer1)
          Join kind=inner residual=(name < channel)
            Project expressions=($0) names=(outer1)
              Aggregate keys=(3) phase=single
                : channel STRING
                WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                  Scan bid columns=(0, 1, 2, 3, 4)
                    : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
            Scan city columns=(0, 1, 2)
              : name STRING, country STRING, size INT
====
SELECT * FROM bid AS b, LATERAL (SELECT size FROM city WHERE name = b.channel ORDER BY b.price LIMIT 1) AS c
---
Project expressions=(auction, bidder, price, channel, ts, item1) names=(auction, bidder, price, channel, ts, size)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time], size INT
  Project expressions=(auction, bidder, price, channel, ts, name, country, size, outer1, outer2, item1) names=(auction, bidder, price, channel, ts, name, country, size, outer1, outer2, item1)
    Join kind=inner left_keys=(5, 6, 3) right_keys=(6, 7, 4)
      Project expressions=(auction, bidder, price, channel, ts, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END) names=(auction, bidder, price, channel, ts, key1, key2)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, country, size, outer1, outer2, item1, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END) names=(name, country, size, outer1, outer2, item1, key1, key2)
        Project expressions=(name, country, size, outer1, outer2, size) names=(name, country, size, outer1, outer2, item1)
          Project expressions=(name, country, size, outer1, outer2) names=(name, country, size, outer1, outer2)
            PartitionTop partition=(5, 6, 4) order=(price NULLS FIRST) rank=row_number limit=1
              Project expressions=(name, country, size, outer1, outer2, is_null(price), CASE WHEN is_null(price) THEN 0.00 ELSE price END) names=(name, country, size, outer1, outer2, key1, key2)
                Project expressions=(name, country, size, outer1, outer2) names=(name, country, size, outer1, outer2)
                  Join kind=inner left_keys=(1) right_keys=(0)
                    Project expressions=($0, $1) names=(outer1, outer2)
                      Aggregate keys=(2, 3) phase=single
                        : price DECIMAL(10, 2), channel STRING
                        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                          Scan bid columns=(0, 1, 2, 3, 4)
                            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
                    Scan city columns=(0, 1, 2)
                      : name STRING, country STRING, size INT
====
# a star in the list of outer columns, of both, of a row
SELECT c.* FROM bid AS b, LATERAL (SELECT b.*) AS c
---
Project expressions=(auction, bidder, price, channel, ts) names=(auction, bidder, price, channel, ts)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time]
  Project expressions=(auction, bidder, price, channel, ts, auction, bidder, price, channel, ts) names=(auction, bidder, price, channel, ts, auction, bidder, price, channel, ts)
    Join kind=inner
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(nothing) names=(nothing)
        Values rows=((0))
          : nothing INT NOT NULL
====
SELECT c.x FROM (SELECT named_struct('x', auction, 'y', bidder) AS r FROM bid) AS b, LATERAL (SELECT city.* EXCEPT (size), r.* FROM city WHERE size = r.y) AS c
---
Project expressions=(x) names=(x)
  : x BIGINT
  Project expressions=(r, item1, item2, r.x, r.y) names=(r, name, country, x, y)
    Project expressions=(r, name, country, size, item1, item2) names=(r, name, country, size, item1, item2)
      Join kind=inner left_keys=(1) right_keys=(5)
        Project expressions=(r, r.y) names=(r, key1)
          Project expressions=(named_struct('x', auction, 'y', bidder)) names=(r)
            WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
              Scan bid columns=(0, 1, 2, 3, 4)
                : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
        Project expressions=(name, country, size, item1, item2, CAST(size AS BIGINT)) names=(name, country, size, item1, item2, key1)
          Project expressions=(name, country, size, name, country) names=(name, country, size, item1, item2)
            Scan city columns=(0, 1, 2)
              : name STRING, country STRING, size INT
====
# one row by itself: LIMIT and DISTINCT change nothing
SELECT auction, (SELECT DISTINCT max(size) FROM city WHERE name = b.channel LIMIT 1) AS s FROM bid AS b
---
Project expressions=(auction, max(size)) names=(auction, s)
  : auction BIGINT, s INT
  Join kind=left left_keys=(3) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Aggregate keys=(0) aggregates=(max(size)) names=(max(size)) phase=single
      : name STRING, max(size) INT
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
