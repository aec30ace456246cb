# all columns stand as they are, no projection
SELECT * FROM bid
---
WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time]
  Scan bid columns=(0, 1, 2, 3, 4)
    : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a computed column stands in its declared place
SELECT * FROM person
---
WatermarkAssign time_column=3 watermark=joined
  : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3) [event time], born DATE, score DOUBLE, joined_day DATE
  Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
    Scan person columns=(0, 1, 2, 3, 4, 5)
      : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT name, score + 1 AS more, city || '!' FROM person WHERE score >= 1.5 AND city IS NOT NULL
---
Project expressions=(name, (score + 1.0), (city || '!')) names=(name, more, city || '!')
  : name STRING, more DOUBLE, city || '!' STRING
  Filter predicate=((score >= 1.5) AND is_not_null(city))
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# precedence
SELECT 1 + 2 * 3 - 4 / 2 % 3, -price, NOT price > 1 OR price < 2 AND price = 3 FROM bid
---
Project expressions=((CAST((1 + (2 * 3)) AS DOUBLE) - ((4.0 / 2.0) % 3.0)), negate(price), (not((price > 1.00)) OR ((price < 2.00) AND (price = 3.00)))) names=(1 + 2 * 3 - 4 / 2 % 3, -price, NOT price > 1 OR price < 2 AND price = 3)
  : 1 + 2 * 3 - 4 / 2 % 3 DOUBLE NOT NULL, -price DECIMAL(10, 2), NOT price > 1 OR price < 2 AND price = 3 BOOLEAN
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT p.* EXCEPT (born, joined), p.born AS birthday FROM person AS p
---
Project expressions=(id, name, city, score, joined_day, born) names=(id, name, city, score, joined_day, birthday)
  : id BIGINT NOT NULL, name STRING, city STRING, score DOUBLE, joined_day DATE, birthday DATE
  WatermarkAssign time_column=3 watermark=joined
    Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
      Scan person columns=(0, 1, 2, 3, 4, 5)
        : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# quotes of both kinds, case does not matter
SELECT `AUCTION`, "Price" FROM BID
---
Project expressions=(auction, price) names=(AUCTION, Price)
  : AUCTION BIGINT, Price DECIMAL(10, 2)
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT CASE WHEN price > 10 THEN 'high' WHEN price > 1 THEN 'low' END, CASE auction WHEN 1 THEN 'one' ELSE 'other' END FROM bid
---
Project expressions=(CASE WHEN (price > 10.00) THEN 'high' WHEN (price > 1.00) THEN 'low' ELSE NULL END, CASE WHEN (auction = 1) THEN 'one' ELSE 'other' END) names=(CASE WHEN price > 10 THEN 'high' WHEN price > 1 THEN 'low' END, CASE auction WHEN 1 THEN 'one' ELSE 'other' END)
  : CASE WHEN price > 10 THEN 'high' WHEN price > 1 THEN 'low' END STRING, CASE auction WHEN 1 THEN 'one' ELSE 'other' END STRING NOT NULL
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT COALESCE(price, 0), NULLIF(auction, 1), IF(price > 1, 1, 2.5), nvl2(channel, 1, 0) FROM bid
---
Project expressions=(CASE WHEN is_not_null(CAST(price AS DECIMAL(12, 2))) THEN CAST(price AS DECIMAL(12, 2)) ELSE 0.00 END, CASE WHEN (auction = 1) THEN NULL ELSE auction END, CASE WHEN (price > 1.00) THEN 1.0 ELSE 2.5 END, CASE WHEN is_not_null(channel) THEN 1 ELSE 0 END) names=(coalesce(price, 0), nullif(auction, 1), IF(price > 1, 1, 2.5), nvl2(channel, 1, 0))
  : coalesce(price, 0) DECIMAL(12, 2) NOT NULL, nullif(auction, 1) BIGINT, IF(price > 1, 1, 2.5) DECIMAL(11, 1) NOT NULL, nvl2(channel, 1, 0) INT NOT NULL
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction IN (1, 2, 3), auction NOT IN (1), price BETWEEN 1 AND 2, channel LIKE 'a#%%' ESCAPE '#', channel RLIKE '^a', price IS NOT DISTINCT FROM NULL FROM bid
---
Project expressions=(in(auction, 1, 2, 3), not(in(auction, 1)), ((price >= 1.00) AND (price <= 2.00)), like(channel, 'a#%%', '#'), rlike(channel, '^a'), (price <=> NULL)) names=(auction IN (1, 2, 3), auction NOT IN (1), price BETWEEN 1 AND 2, channel LIKE 'a#%%' ESCAPE '#', channel RLIKE '^a', price IS NOT DISTINCT FROM NULL)
  : auction IN (1, 2, 3) BOOLEAN, auction NOT IN (1) BOOLEAN, price BETWEEN 1 AND 2 BOOLEAN, channel LIKE 'a#%%' ESCAPE '#' BOOLEAN, channel RLIKE '^a' BOOLEAN, price IS NOT DISTINCT FROM NULL BOOLEAN NOT NULL
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT score IS NULL, (score > 1) IS TRUE, (score > 1) IS NOT FALSE FROM person
---
Project expressions=(is_null(score), is_true((score > 1.0)), not(is_false((score > 1.0)))) names=(score IS NULL, (score > 1) IS TRUE, (score > 1) IS NOT FALSE)
  : score IS NULL BOOLEAN NOT NULL, (score > 1) IS TRUE BOOLEAN NOT NULL, (score > 1) IS NOT FALSE BOOLEAN NOT NULL
  WatermarkAssign time_column=3 watermark=joined
    Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
      Scan person columns=(0, 1, 2, 3, 4, 5)
        : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT EXTRACT(DAY FROM ts), EXTRACT(DOW FROM ts), ts + INTERVAL '1 02:03:04' DAY TO SECOND, ts - INTERVAL 5 MINUTES, born + INTERVAL '1-2' YEAR TO MONTH FROM bid, person
---
Project expressions=(day(ts), dayofweek(ts), (ts + INTERVAL '1 02:03:04' DAY TO SECOND), (ts - INTERVAL '0 00:05:00' DAY TO SECOND), (born + 14)) names=(extract('day', ts), extract('dow', ts), ts + INTERVAL '1 02:03:04' DAY TO SECOND, ts - INTERVAL 5 MINUTES, born + INTERVAL '1-2' YEAR TO MONTH)
  : extract('day', ts) INT, extract('dow', ts) INT, ts + INTERVAL '1 02:03:04' DAY TO SECOND TIMESTAMP(3), ts - INTERVAL 5 MINUTES TIMESTAMP(3), born + INTERVAL '1-2' YEAR TO MONTH DATE
  Join kind=inner
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT TIMESTAMP '2013-01-31 10:00:00', TIMESTAMP_LTZ '2013-01-31 10:00:00', DATE '2013-01-31', 1.50, 1e3, 10L, 3000000000, -2147483648, X'00ff', NULL
---
Values rows=((TIMESTAMP(6) '2013-01-31 10:00:00', TIMESTAMP_LTZ(6) '2013-01-31 10:00:00+00:00', DATE '2013-01-31', 1.50, 1000.0, 10, 3000000000, -2147483648, X'00FF', NULL))
  : TIMESTAMP '2013-01-31 10:00:00' TIMESTAMP(6) NOT NULL, TIMESTAMP_LTZ '2013-01-31 10:00:00' TIMESTAMP_LTZ(6) NOT NULL, DATE '2013-01-31' DATE NOT NULL, 1.50 DECIMAL(3, 2) NOT NULL, 1e3 DOUBLE NOT NULL, 10L BIGINT NOT NULL, 3000000000 BIGINT NOT NULL, -2147483648 INT NOT NULL, X'00ff' BINARY NOT NULL, NULL NULL
====
SELECT CAST(price AS BIGINT), TRY_CAST(channel AS DECIMAL(5, 2)) FROM bid
---
Project expressions=(CAST(price AS BIGINT), TRY_CAST(channel AS DECIMAL(5, 2))) names=(CAST(price AS BIGINT), TRY_CAST(channel AS DECIMAL(5, 2)))
  : CAST(price AS BIGINT) BIGINT, TRY_CAST(channel AS DECIMAL(5, 2)) DECIMAL(5, 2)
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT SUBSTRING(name FROM 2 FOR 3), TRIM(BOTH 'x' FROM name), POSITION('a' IN name), TIMESTAMPDIFF(HOUR, joined, joined) FROM person
---
Project expressions=(substr(name, 2, 3), trim(name, 'x'), position('a', name), timestampdiff('hour', joined, joined)) names=(substring(name, 2, 3), trim(name, 'x'), position('a', name), timestampdiff('hour', joined, joined))
  : substring(name, 2, 3) STRING, trim(name, 'x') STRING, position('a', name) INT, timestampdiff('hour', joined, joined) BIGINT
  WatermarkAssign time_column=3 watermark=joined
    Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
      Scan person columns=(0, 1, 2, 3, 4, 5)
        : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT DISTINCT channel, auction FROM bid
---
Aggregate keys=(0, 1) phase=single
  : channel STRING, auction BIGINT
  Project expressions=(channel, auction) names=(channel, auction)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# an alias in GROUP BY and HAVING, an ordinal in ORDER BY
SELECT upper(channel) AS c, COUNT(*) AS n, SUM(price) / 2 FROM bid GROUP BY c HAVING n > 3 ORDER BY 2 DESC, c LIMIT 5
---
TopN keys=(n DESC NULLS LAST, c NULLS FIRST) limit=5 offset=0
  : c STRING, n BIGINT NOT NULL, SUM(price) / 2 DECIMAL(24, 6)
  Project expressions=(upper(channel), count(*), (sum(price) / 2)) names=(c, n, SUM(price) / 2)
    Filter predicate=(count(*) > 3)
      Aggregate keys=(5) aggregates=(count(*), sum(price)) names=(count(*), sum(price)) phase=single
        : upper(channel) STRING, count(*) BIGINT NOT NULL, sum(price) DECIMAL(20, 2)
        Project expressions=(auction, bidder, price, channel, ts, upper(channel)) names=(auction, bidder, price, channel, ts, upper(channel))
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT channel, COUNT(DISTINCT bidder), AVG(price), COUNT(*) FILTER (WHERE price > 10) FROM bid GROUP BY 1
---
Project expressions=(channel, count(DISTINCT bidder), avg(price), count(*) FILTER (WHERE (price > 10.00))) names=(channel, count(DISTINCT bidder), avg(price), COUNT(*) FILTER (WHERE price > 10))
  : channel STRING, count(DISTINCT bidder) BIGINT NOT NULL, avg(price) DECIMAL(14, 6), COUNT(*) FILTER (WHERE price > 10) BIGINT NOT NULL
  Aggregate keys=(3) aggregates=(count(DISTINCT bidder), avg(price), count(*) FILTER (WHERE (price > 10.00))) names=(count(DISTINCT bidder), avg(price), count(*) FILTER (WHERE (price > 10.00))) phase=single
    : channel STRING, count(DISTINCT bidder) BIGINT NOT NULL, avg(price) DECIMAL(14, 6), count(*) FILTER (WHERE (price > 10.00)) BIGINT NOT NULL
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# one aggregate used twice is computed once
SELECT MAX(price) - MIN(price), MAX(price) FROM bid
---
Project expressions=((max(price) - min(price)), max(price)) names=(MAX(price) - MIN(price), max(price))
  : MAX(price) - MIN(price) DECIMAL(11, 2), max(price) DECIMAL(10, 2)
  Aggregate aggregates=(max(price), min(price)) names=(max(price), min(price)) phase=single
    : max(price) DECIMAL(10, 2), min(price) DECIMAL(10, 2)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# an aggregate without GROUP BY over nothing else
SELECT COUNT(*) FROM bid HAVING COUNT(*) > 1
---
Filter predicate=(count(*) > 1)
  : count(*) BIGINT NOT NULL
  Aggregate aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# ORDER BY a column that is not selected
SELECT name FROM city ORDER BY size DESC, upper(name)
---
Project expressions=(name) names=(name)
  : name STRING
  Sort keys=(size DESC NULLS LAST, upper(name) NULLS FIRST)
    Project expressions=(name, size, upper(name)) names=(name, order1, order2)
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
====
SELECT name FROM city ORDER BY 1 LIMIT 3 OFFSET 2
---
TopN keys=(name NULLS FIRST) limit=3 offset=2
  : name STRING
  Project expressions=(name) names=(name)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT name FROM city LIMIT 3
---
Limit limit=3 offset=0
  : name STRING
  Project expressions=(name) names=(name)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
SELECT auction FROM bid ORDER BY price + 1 FETCH FIRST 2 ROWS ONLY
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  TopN keys=(price + 1 NULLS FIRST) limit=2 offset=0
    Project expressions=(auction, (price + 1)) names=(auction, order1)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
WITH a AS (SELECT auction, price FROM bid), b (x, y) AS (SELECT * FROM a) SELECT y, b.x FROM b WHERE x > 1
---
Project expressions=(y, x) names=(y, x)
  : y DECIMAL(10, 2), x BIGINT
  Filter predicate=(x > 1)
    Project expressions=(auction, price) names=(auction, price)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT s.n + 1 FROM (SELECT COUNT(*) AS n FROM bid) AS s
---
Project expressions=((n + 1)) names=(s.n + 1)
  : s.n + 1 BIGINT NOT NULL
  Project expressions=(count(*)) names=(n)
    Aggregate aggregates=(count(*)) names=(count(*)) phase=single
      : count(*) BIGINT NOT NULL
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT double_price FROM rich r WHERE r.auction = 3
---
Project expressions=(double_price) names=(double_price)
  : double_price DECIMAL(12, 2)
  Filter predicate=(auction = 3)
    Project expressions=(auction, (price * 2), ts) names=(auction, double_price, ts)
      Filter predicate=(price > 100.00)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction, price FROM bid UNION ALL SELECT 1, 2 UNION ALL SELECT size, NULL FROM city
---
Union
  : auction BIGINT, price DECIMAL(12, 2)
  Project expressions=(auction, CAST(price AS DECIMAL(12, 2))) names=(auction, price)
    Project expressions=(auction, price) names=(auction, price)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
  Project expressions=(CAST(1 AS BIGINT), CAST(2 AS DECIMAL(12, 2))) names=(auction, price)
    Values rows=((1, 2))
      : 1 INT NOT NULL, 2 INT NOT NULL
  Project expressions=(CAST(size AS BIGINT), CAST(NULL AS DECIMAL(12, 2))) names=(auction, price)
    Project expressions=(size, NULL) names=(size, NULL)
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
====
SELECT name FROM city UNION SELECT name FROM airline ORDER BY name LIMIT 1
---
TopN keys=(name NULLS FIRST) limit=1 offset=0
  : name STRING
  Aggregate keys=(0) phase=single
    : name STRING
    Union
      Project expressions=(name) names=(name)
        Scan city columns=(0, 1, 2)
          : name STRING, country STRING, size INT
      Project expressions=(name) names=(name)
        Scan airline columns=(0, 1)
          : carrier STRING, name STRING
====
VALUES (1, 'a'), (2.5, NULL)
---
Values rows=((1.0, 'a'), (2.5, NULL))
  : col1 DECIMAL(11, 1) NOT NULL, col2 STRING
====
SELECT v.b FROM (VALUES (1, DATE '2013-01-01'), (2, NULL)) AS v(a, b)
---
Project expressions=(b) names=(b)
  : b DATE
  Values rows=((1, DATE '2013-01-01'), (2, NULL))
    : col1 INT NOT NULL, col2 DATE
====
SELECT 1 AS one, 'text'
---
Values rows=((1, 'text'))
  : one INT NOT NULL, 'text' STRING NOT NULL
====
SELECT 1 + 1
---
Project expressions=((1 + 1)) names=(1 + 1)
  : 1 + 1 INT NOT NULL
  Values rows=((0))
    : nothing INT NOT NULL
