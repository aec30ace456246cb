SELECT channel, bidder, count(*) AS n, grouping(channel, bidder) AS g FROM bid GROUP BY ROLLUP (channel, bidder)
---
Project expressions=(channel, bidder, count(*), ((left_out1 * 2) + left_out2)) names=(channel, bidder, n, g)
  : channel STRING, bidder BIGINT, n BIGINT NOT NULL, g BIGINT NOT NULL
  Union
    Project expressions=(channel, bidder, count(*), 0, 0) names=(channel, bidder, count(*), left_out1, left_out2)
      Aggregate keys=(3, 1) aggregates=(count(*)) names=(count(*)) phase=single
        : channel STRING, bidder BIGINT, count(*) BIGINT NOT NULL
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(channel, NULL, count(*), 0, 1) names=(channel, bidder, count(*), left_out1, left_out2)
      Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
        : channel STRING, count(*) BIGINT NOT NULL
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(NULL, NULL, count(*), 1, 1) names=(channel, bidder, count(*), left_out1, left_out2)
      Aggregate aggregates=(count(*)) names=(count(*)) phase=single
        : count(*) BIGINT NOT NULL
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT channel, sum(price) FROM bid GROUP BY GROUPING SETS ((channel), ()) HAVING grouping(channel) = 1
---
Project expressions=(channel, sum(price)) names=(channel, sum(price))
  : channel STRING, sum(price) DECIMAL(20, 2)
  Filter predicate=(left_out1 = 1)
    Union
      Project expressions=(channel, sum(price), 0) names=(channel, sum(price), left_out1)
        Aggregate keys=(3) aggregates=(sum(price)) names=(sum(price)) phase=single
          : channel STRING, sum(price) DECIMAL(20, 2)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      Project expressions=(NULL, sum(price), 1) names=(channel, sum(price), left_out1)
        Aggregate aggregates=(sum(price)) names=(sum(price)) phase=single
          : sum(price) DECIMAL(20, 2)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT window_start, channel, count(*), grouping_id() FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start, window_end, CUBE (channel)
---
Project expressions=(window_start, channel, count(*), ((((left_out1 * 2) + left_out2) * 2) + left_out3)) names=(window_start, channel, count(*), grouping_id())
  : window_start TIMESTAMP(3) NOT NULL [window start], channel STRING, count(*) BIGINT NOT NULL, grouping_id() BIGINT NOT NULL
  Union
    Project expressions=(window_start, window_end, channel, count(*), 0, 0, 0, window_time) names=(window_start, window_end, channel, count(*), left_out1, left_out2, left_out3, window_time)
      WindowAggregate window={start_column: 5, end_column: 6} keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
        : channel STRING, count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
        WindowTable window={kind: tumble, time_column: 4, size_us: 3600000000}
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(window_start, window_end, NULL, count(*), 0, 0, 1, window_time) names=(window_start, window_end, channel, count(*), left_out1, left_out2, left_out3, window_time)
      WindowAggregate window={start_column: 5, end_column: 6} aggregates=(count(*)) names=(count(*)) phase=single
        : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
        WindowTable window={kind: tumble, time_column: 4, size_us: 3600000000}
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT channel, bidder % 2 AS half, count(*) FROM bid GROUP BY GROUPING SETS (channel, (2))
---
Project expressions=(channel, key2, count(*)) names=(channel, half, count(*))
  : channel STRING, half BIGINT, count(*) BIGINT NOT NULL
  Union
    Project expressions=(channel, NULL, count(*), 0, 1) names=(channel, key2, count(*), left_out1, left_out2)
      Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
        : channel STRING, count(*) BIGINT NOT NULL
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(NULL, (bidder % 2), count(*), 1, 0) names=(channel, key2, count(*), left_out1, left_out2)
      Aggregate keys=(5) aggregates=(count(*)) names=(count(*)) phase=single
        : (bidder % 2) BIGINT, count(*) BIGINT NOT NULL
        Project expressions=(auction, bidder, price, channel, ts, (bidder % 2)) names=(auction, bidder, price, channel, ts, (bidder % 2))
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# one set is a plain GROUP BY, and so has nothing left out
SELECT channel, grouping(channel) FROM bid GROUP BY channel
---
Project expressions=(channel, 0) names=(channel, grouping(channel))
  : channel STRING, grouping(channel) BIGINT NOT NULL
  Aggregate keys=(3) phase=single
    : channel STRING
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
