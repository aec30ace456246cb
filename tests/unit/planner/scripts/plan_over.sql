# ranks, and a projection that names them
SELECT *, ROW_NUMBER() OVER (PARTITION BY channel ORDER BY price DESC) AS rn FROM bid
---
Project expressions=(auction, bidder, price, channel, ts, over1) names=(auction, bidder, price, channel, ts, rn)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3), rn INT NOT NULL
  Over partition=(3) order=(price DESC NULLS LAST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(row_number()) names=(over1) timely=False
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# time settles rows: the order is the event time, ascending, and the frame does not look ahead
SELECT channel, SUM(price) OVER (PARTITION BY channel ORDER BY ts RANGE BETWEEN INTERVAL '5' SECONDS PRECEDING AND CURRENT ROW) AS s, LAG(price, 2, 0) OVER (PARTITION BY channel ORDER BY ts) AS l FROM bid
---
Project expressions=(channel, over1, over2) names=(channel, s, l)
  : channel STRING, s DECIMAL(20, 2), l DECIMAL(10, 2)
  Over partition=(3) order=(ts NULLS FIRST) frame=RANGE BETWEEN 5000000 PRECEDING AND CURRENT ROW calls=(sum(price), lag(price, 2, 0.00)) names=(over1, over2) timely=True
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# what looks ahead, or goes down, is not settled by time
SELECT LEAD(price) OVER (ORDER BY ts), COUNT(*) OVER (ORDER BY ts ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM bid
---
Project expressions=(over1, over2) names=(lead(price), count(*))
  : lead(price) DECIMAL(10, 2), count(*) BIGINT NOT NULL
  Over order=(ts NULLS FIRST) frame=ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING calls=(lead(price, 1, NULL), count(*)) names=(over1, over2) timely=False
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT FIRST_VALUE(price) OVER (PARTITION BY channel ORDER BY ts DESC) FROM bid
---
Project expressions=(over1) names=(first_value(price))
  : first_value(price) DECIMAL(10, 2)
  Over partition=(3) order=(ts DESC NULLS LAST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(first_value(price)) names=(over1) timely=False
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# without an order the frame is the partition; different partitions are different nodes
SELECT price / SUM(price) OVER () AS share, AVG(price) OVER (PARTITION BY channel) AS mean FROM bid
---
Project expressions=((price / over1), over2) names=(share, mean)
  : share DECIMAL(33, 23), mean DECIMAL(14, 6)
  Over partition=(3) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING calls=(avg(price)) names=(over2) timely=False
    Over frame=RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING calls=(sum(price)) names=(over1) timely=False
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# over groups: an aggregate of aggregates, a rank by one; the key is computed beneath
SELECT channel, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total, RANK() OVER (PARTITION BY UPPER(channel) ORDER BY COUNT(*) DESC) AS r FROM bid GROUP BY channel ORDER BY r LIMIT 3
---
TopN keys=(r NULLS FIRST) limit=3 offset=0
  : channel STRING, n BIGINT NOT NULL, total BIGINT, r INT NOT NULL
  Project expressions=(channel, count(*), over1, over2) names=(channel, n, total, r)
    Over partition=(2) order=(count(*) DESC NULLS LAST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(rank()) names=(over2) timely=False
      Over frame=RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING calls=(sum(count(*))) names=(over1) timely=False
        Project expressions=(channel, count(*), upper(channel)) names=(channel, count(*), upper(channel))
          Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
            : channel STRING, count(*) BIGINT NOT NULL
            WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
              Scan bid columns=(0, 1, 2, 3, 4)
                : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# within windows the windows' own roles stay
SELECT * FROM (SELECT window_start, window_end, channel, price, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS rn FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE rn <= 3
---
Filter predicate=(rn <= 3)
  : window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], channel STRING, price DECIMAL(10, 2), rn INT NOT NULL
  Project expressions=(window_start, window_end, channel, price, over1) names=(window_start, window_end, channel, price, rn)
    Over partition=(5, 6) order=(price DESC NULLS LAST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(row_number()) names=(over1) timely=False window={start_column: 5, end_column: 6}
      WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# frames: short forms, rows, distances of numbers
SELECT MIN(price) OVER (ORDER BY auction ROWS 2 PRECEDING), MAX(price) OVER (ORDER BY auction RANGE BETWEEN 10 PRECEDING AND UNBOUNDED FOLLOWING) FROM bid
---
Project expressions=(over1, over2) names=(min(price), max(price))
  : min(price) DECIMAL(10, 2), max(price) DECIMAL(10, 2)
  Over order=(auction NULLS FIRST) frame=RANGE BETWEEN 10 PRECEDING AND UNBOUNDED FOLLOWING calls=(max(price)) names=(over2) timely=False
    Over order=(auction NULLS FIRST) frame=ROWS BETWEEN 2 PRECEDING AND CURRENT ROW calls=(min(price)) names=(over1) timely=False
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
