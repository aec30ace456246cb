SELECT b.auction, p.name FROM bid AS b JOIN person AS p ON b.bidder = p.id
---
Project expressions=(auction, name) names=(auction, name)
  : auction BIGINT, name STRING
  Join kind=inner left_keys=(1) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# keys of unlike types are cast beneath, the rest is residual
SELECT c.name, b.price FROM bid b LEFT JOIN city c ON b.auction = c.size AND b.price > 10 AND c.country <> b.channel
---
Project expressions=(name, price) names=(name, price)
  : name STRING, price DECIMAL(10, 2)
  Project expressions=(auction, bidder, price, channel, ts, name, country, size) names=(auction, bidder, price, channel, ts, name, country, size)
    Join kind=left left_keys=(0) right_keys=(3) residual=((price > 10.00) AND (country <> channel))
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, country, size, CAST(size AS BIGINT)) names=(name, country, size, key1)
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
====
# keys that are expressions
SELECT a.name FROM airline a INNER JOIN city c ON lower(a.name) = lower(c.name)
---
Project expressions=(name) names=(name)
  : name STRING
  Project expressions=(carrier, name, name, country, size) names=(carrier, name, name, country, size)
    Join kind=inner left_keys=(2) right_keys=(3)
      Project expressions=(carrier, name, lower(name)) names=(carrier, name, key1)
        Scan airline columns=(0, 1)
          : carrier STRING, name STRING
      Project expressions=(name, country, size, lower(name)) names=(name, country, size, key1)
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
====
SELECT * FROM airline JOIN city USING (name)
---
Project expressions=(name, carrier, country, size) names=(name, carrier, country, size)
  : name STRING, carrier STRING, country STRING, size INT
  Join kind=inner left_keys=(1) right_keys=(0)
    Scan airline columns=(0, 1)
      : carrier STRING, name STRING
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT name, a.name, c.name FROM airline a RIGHT JOIN city c USING (name)
---
Project expressions=(name, name, name) names=(name, name, name)
  : name STRING, name STRING, name STRING
  Join kind=right left_keys=(1) right_keys=(0)
    Scan airline columns=(0, 1)
      : carrier STRING, name STRING
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT * FROM airline a FULL OUTER JOIN city c USING (name)
---
Project expressions=(name, carrier, country, size) names=(name, carrier, country, size)
  : name STRING, carrier STRING, country STRING, size INT
  Project expressions=(carrier, name, name, country, size, CASE WHEN is_not_null(name) THEN name ELSE name END) names=(carrier, name, name, country, size, name)
    Join kind=full left_keys=(1) right_keys=(0)
      Scan airline columns=(0, 1)
        : carrier STRING, name STRING
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
====
SELECT a.carrier FROM airline a, city c WHERE a.name = c.name
---
Project expressions=(carrier) names=(carrier)
  : carrier STRING
  Filter predicate=(name = name)
    Join kind=inner
      Scan airline columns=(0, 1)
        : carrier STRING, name STRING
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
====
SELECT a.carrier FROM airline a CROSS JOIN city c
---
Project expressions=(carrier) names=(carrier)
  : carrier STRING
  Join kind=inner
    Scan airline columns=(0, 1)
      : carrier STRING, name STRING
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
# no equality at all
SELECT a.carrier FROM airline a JOIN city c ON a.name < c.name
---
Project expressions=(carrier) names=(carrier)
  : carrier STRING
  Join kind=inner residual=(name < name)
    Scan airline columns=(0, 1)
      : carrier STRING, name STRING
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT x.auction FROM bid x JOIN bid y ON x.auction = y.bidder JOIN city z ON z.size = y.auction
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Project expressions=(auction, bidder, price, channel, ts, auction, bidder, price, channel, ts, name, country, size) names=(auction, bidder, price, channel, ts, auction, bidder, price, channel, ts, name, country, size)
    Join kind=inner left_keys=(5) right_keys=(3)
      Join kind=inner left_keys=(0) right_keys=(1)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(name, country, size, CAST(size AS BIGINT)) names=(name, country, size, key1)
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
