SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) AS s, TUMBLE_END(ts, INTERVAL '1' HOUR), TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR) AS t, channel, count(*) FROM bid WHERE price > 1 GROUP BY TUMBLE(ts, INTERVAL '1' HOUR), channel
---
Project expressions=(window_start, window_end, window_time, channel, count(*)) names=(s, window_end, t, channel, count(*))
  : s TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], t TIMESTAMP(3) NOT NULL [window time], channel STRING, count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 5, end_column: 6} keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
    : channel STRING, count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: tumble, time_column: 4, size_us: 3600000000}
      Filter predicate=(price > 1.00)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT HOP_START(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE), sum(price) FROM bid GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE) HAVING HOP_END(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE) > TIMESTAMP '2024-01-01 00:00:00'
---
Project expressions=(window_start, sum(price)) names=(window_start, sum(price))
  : window_start TIMESTAMP(3) NOT NULL [window start], sum(price) DECIMAL(20, 2)
  Filter predicate=(CAST(window_end AS TIMESTAMP(6)) > TIMESTAMP(6) '2024-01-01 00:00:00')
    WindowAggregate window={start_column: 5, end_column: 6} aggregates=(sum(price)) names=(sum(price)) phase=single
      : sum(price) DECIMAL(20, 2), window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
      WindowTable window={kind: hop, time_column: 4, size_us: 600000000, step_us: 300000000}
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT bidder, SESSION_START(ts, INTERVAL '5' MINUTE), count(*) FROM bid GROUP BY bidder, SESSION(ts, INTERVAL '5' MINUTE)
---
Project expressions=(bidder, window_start, count(*)) names=(bidder, window_start, count(*))
  : bidder BIGINT, window_start TIMESTAMP(3) NOT NULL [window start], count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 5, end_column: 6} keys=(1) aggregates=(count(*)) names=(count(*)) phase=single
    : bidder BIGINT, count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: session, time_column: 4, size_us: 300000000, partition_keys: (1,)}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# Spark's words
SELECT window.start, window.end AS finish, count(*) FROM bid b GROUP BY window(b.ts, '10 minutes', '5 minutes')
---
Project expressions=(window_start, window_end, count(*)) names=(start, finish, count(*))
  : start TIMESTAMP(3) NOT NULL [window start], finish TIMESTAMP(3) NOT NULL [window end], count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 5, end_column: 6} aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: hop, time_column: 4, size_us: 600000000, step_us: 300000000}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT session_window.start, bidder FROM bid GROUP BY session_window(ts, '5 minutes'), bidder
---
Project expressions=(window_start, bidder) names=(start, bidder)
  : start TIMESTAMP(3) NOT NULL [window start], bidder BIGINT
  WindowAggregate window={start_column: 5, end_column: 6} keys=(1) phase=single
    : bidder BIGINT, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: session, time_column: 4, size_us: 300000000, partition_keys: (1,)}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT channel, count(*), window.end FROM bid GROUP BY window(ts, 'interval 1 hour'), ROLLUP (channel)
---
Project expressions=(channel, count(*), window_end) names=(channel, count(*), end)
  : channel STRING, count(*) BIGINT NOT NULL, end TIMESTAMP(3) NOT NULL [window end]
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
