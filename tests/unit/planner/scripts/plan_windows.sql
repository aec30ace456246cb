SELECT window_start, window_end, channel, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end, channel
---
Project expressions=(window_start, window_end, channel, count(*)) names=(window_start, window_end, channel, n)
  : window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], channel STRING, n BIGINT NOT NULL
  WindowAggregate window={start_column: 5, end_column: 6} keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
    : channel STRING, count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: tumble, time_column: 4, size_us: 600000000}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# named arguments, no outer TABLE, window_time without being a key
SELECT window_time, MAX(price) FROM HOP(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '1' MINUTE, SIZE => INTERVAL '1' HOUR) GROUP BY window_start, window_end
---
Project expressions=(window_time, max(price)) names=(window_time, max(price))
  : window_time TIMESTAMP(3) NOT NULL [window time], max(price) DECIMAL(10, 2)
  WindowAggregate window={start_column: 5, end_column: 6} aggregates=(max(price)) names=(max(price)) phase=single
    : max(price) DECIMAL(10, 2), window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: hop, time_column: 4, size_us: 3600000000, step_us: 60000000}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT * FROM CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' HOUR, INTERVAL '1' DAY, INTERVAL '30' MINUTES) AS w
---
WindowTable window={kind: cumulate, time_column: 4, size_us: 86400000000, step_us: 3600000000, offset_us: 1800000000}
  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3) [event time], window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# sessions: the window aggregate stands right on the window table
SELECT bidder, window_start, window_end, SUM(price) FROM SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), INTERVAL '5' MINUTES) GROUP BY bidder, window_start, window_end
---
Project expressions=(bidder, window_start, window_end, sum(price)) names=(bidder, window_start, window_end, sum(price))
  : bidder BIGINT, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], sum(price) DECIMAL(20, 2)
  WindowAggregate window={start_column: 5, end_column: 6} keys=(1) aggregates=(sum(price)) names=(sum(price)) phase=single
    : bidder BIGINT, sum(price) DECIMAL(20, 2), window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: session, time_column: 4, size_us: 300000000, partition_keys: (1,)}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# one bound of the window alone is an ordinary key
SELECT window_end, COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_end
---
Aggregate keys=(6) aggregates=(count(*)) names=(count(*)) phase=single
  : window_end TIMESTAMP(3) NOT NULL, count(*) BIGINT NOT NULL
  WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a window over windows, cut on window_time
SELECT window_start, window_end, SUM(n) FROM TUMBLE(TABLE (SELECT window_time, COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, window_time), DESCRIPTOR(window_time), INTERVAL '1' HOUR) GROUP BY window_start, window_end
---
Project expressions=(window_start, window_end, sum(n)) names=(window_start, window_end, sum(n))
  : window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], sum(n) BIGINT
  WindowAggregate window={start_column: 2, end_column: 3} aggregates=(sum(n)) names=(sum(n)) phase=single
    : sum(n) BIGINT, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: tumble, size_us: 3600000000}
      Project expressions=(window_time, count(*)) names=(window_time, n)
        WindowAggregate window={start_column: 5, end_column: 6} aggregates=(count(*)) names=(count(*)) phase=single
          : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
          WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
            WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
              Scan bid columns=(0, 1, 2, 3, 4)
                : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# roles survive projection and renaming in a subquery
SELECT s, e, COUNT(*) FROM (SELECT window_start AS s, window_end AS e, price FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) WHERE price > 1) GROUP BY s, e
---
Project expressions=(window_start, window_end, count(*)) names=(s, e, count(*))
  : s TIMESTAMP(3) NOT NULL [window start], e TIMESTAMP(3) NOT NULL [window end], count(*) BIGINT NOT NULL
  WindowAggregate window={end_column: 1} aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    Project expressions=(window_start, window_end, price) names=(s, e, price)
      Filter predicate=(price > 1.00)
        WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a computed key is computed beneath
SELECT window_start, upper(channel), COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, upper(channel)
---
Project expressions=(window_start, upper(channel), count(*)) names=(window_start, upper(channel), count(*))
  : window_start TIMESTAMP(3) NOT NULL [window start], upper(channel) STRING, count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 5, end_column: 6} keys=(8) aggregates=(count(*)) names=(count(*)) phase=single
    : upper(channel) STRING, count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    Project expressions=(auction, bidder, price, channel, ts, window_start, window_end, window_time, upper(channel)) names=(auction, bidder, price, channel, ts, window_start, window_end, window_time, upper(channel))
      WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a join with a bounded table keeps the windows
SELECT window_start, c.country, COUNT(*) FROM TUMBLE(TABLE person, DESCRIPTOR(joined), INTERVAL '1' DAY) AS w JOIN city AS c ON w.city = c.name GROUP BY window_start, window_end, c.country
---
Project expressions=(window_start, country, count(*)) names=(window_start, country, count(*))
  : window_start TIMESTAMP(3) NOT NULL [window start], country STRING, count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 7, end_column: 8} keys=(11) aggregates=(count(*)) names=(count(*)) phase=single
    : country STRING, count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    Join kind=inner left_keys=(2) right_keys=(0)
      WindowTable window={kind: tumble, time_column: 3, size_us: 86400000000}
        WatermarkAssign time_column=3 watermark=joined
          Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
            Scan person columns=(0, 1, 2, 3, 4, 5)
              : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
====
# a join of two streams ends them: an ordinary aggregate
SELECT window_start, COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' DAY) AS w JOIN person AS p ON w.bidder = p.id GROUP BY window_start, window_end
---
Project expressions=(window_start, count(*)) names=(window_start, count(*))
  : window_start TIMESTAMP(3) NOT NULL, count(*) BIGINT NOT NULL
  Aggregate keys=(5, 6) aggregates=(count(*)) names=(count(*)) phase=single
    : window_start TIMESTAMP(3) NOT NULL, window_end TIMESTAMP(3) NOT NULL, count(*) BIGINT NOT NULL
    Join kind=inner left_keys=(1) right_keys=(0)
      WindowTable window={kind: tumble, time_column: 4, size_us: 86400000000}
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
      WatermarkAssign time_column=3 watermark=joined
        Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
          Scan person columns=(0, 1, 2, 3, 4, 5)
            : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
