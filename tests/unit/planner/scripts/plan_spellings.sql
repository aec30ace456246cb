SELECT OVERLAY(channel PLACING 'x' FROM 2 FOR 3) AS a, CEIL(ts TO HOUR) AS b, FLOOR(ts TO MONTH) AS c, DATEDIFF(DAY, ts, ts) AS d, decode(auction, 1, 'one', NULL, 'none', 'more') AS e FROM bid
---
Project expressions=(overlay(channel, 'x', 2, 3), CASE WHEN (date_trunc('hour', ts) = ts) THEN date_trunc('hour', ts) ELSE timestampadd('hour', 1, date_trunc('hour', ts)) END, date_trunc('month', ts), timestampdiff('day', ts, ts), CASE WHEN (auction <=> 1) THEN 'one' WHEN (auction <=> NULL) THEN 'none' ELSE 'more' END) names=(a, b, c, d, e)
  : a STRING, b TIMESTAMP(3), c TIMESTAMP(3), d BIGINT, e STRING NOT NULL
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction FROM bid WHERE channel NOT LIKE ANY ('a%', 'b%') AND channel ILIKE ALL ('%x', '%y') AND channel SIMILAR TO 'a(b|c)_%!%' ESCAPE '!'
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Filter predicate=(((not((channel LIKE 'a%')) OR not((channel LIKE 'b%'))) AND (ilike(channel, '%x') AND ilike(channel, '%y'))) AND rlike(channel, '(?s)\A(?:a(b|c)..*%)\z'))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction FROM bid WHERE (auction, bidder) IN ((1, 2), (3, 4)) OR (auction, channel) < (7, 'b') OR (auction, bidder) <> (1, 1) OR (auction, bidder) IS NOT DISTINCT FROM (1, NULL)
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Filter predicate=(((((auction = 1) AND (bidder = 2)) OR ((auction = 3) AND (bidder = 4))) OR ((auction < 7) OR ((auction = 7) AND (channel < 'b')))) OR (((auction <> 1) OR (bidder <> 1)) OR ((auction <=> 1) AND (bidder <=> NULL))))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction FROM bid WHERE auction BETWEEN SYMMETRIC 9 AND bidder AND bidder NOT BETWEEN ASYMMETRIC 1 AND 2 AND channel IS JSON OBJECT AND channel IS NOT JSON
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Filter predicate=(((((auction >= 9) AND (auction <= bidder)) OR ((auction >= bidder) AND (auction <= 9))) AND not(((bidder >= 1) AND (bidder <= 2)))) AND (is_json(channel, 'object') AND not(is_json(channel))))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT try_add(auction, 1) AS a, try_divide(price, bidder) AS b FROM bid
---
Project expressions=(try_add(auction, 1), try_divide(price, CAST(bidder AS DECIMAL(20, 0)))) names=(a, b)
  : a BIGINT, b DECIMAL(31, 23)
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
