# rows of sessions under any operator; their event time ends, for they come when the session is over
SELECT * FROM SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '5' MINUTE) WHERE price > 10
---
Filter predicate=(price > 10.00)
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3), window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
  WindowTable window={kind: session, time_column: 4, size_us: 300000000, partition_keys: (1,)}
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT window_end, channel, COUNT(*) FROM SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '5' MINUTE) GROUP BY window_start, window_end, channel
---
Project expressions=(window_end, channel, count(*)) names=(window_end, channel, count(*))
  : window_end TIMESTAMP(3) NOT NULL [window end], channel STRING, count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 5, end_column: 6} keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
    : channel STRING, count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: session, time_column: 4, size_us: 300000000, partition_keys: (1,)}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# the same order time keeps
SELECT auction, ts FROM bid ORDER BY ts, price DESC
---
Project expressions=(auction, ts) names=(auction, ts)
  : auction BIGINT, ts TIMESTAMP(3) [event time]
  TemporalSort keys=(ts NULLS FIRST, price DESC NULLS LAST)
    Project expressions=(auction, ts, price) names=(auction, ts, order1)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction, ts FROM bid ORDER BY ts DESC
---
Sort keys=(ts DESC NULLS LAST)
  : auction BIGINT, ts TIMESTAMP(3) [event time]
  Project expressions=(auction, ts) names=(auction, ts)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
INSERT INTO totals SELECT auction, price, channel FROM bid ORDER BY ts
---
Sink totals
  : id BIGINT, total DECIMAL(20, 2), label STRING
  Project expressions=(auction, CAST(price AS DECIMAL(20, 2)), channel) names=(id, total, label)
    Project expressions=(auction, price, channel) names=(auction, price, channel)
      TemporalSort keys=(ts NULLS FIRST)
        Project expressions=(auction, price, channel, ts) names=(auction, price, channel, order1)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
