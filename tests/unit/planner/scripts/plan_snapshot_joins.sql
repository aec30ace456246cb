# the table is loaded to a written moment of its time, seen from the session's zone where the kinds differ
SELECT b.price, s.name FROM bid AS b JOIN LATERAL SNAPSHOT(input => TABLE person, on_time => DESCRIPTOR(joined), load_completed_time => CAST(TIMESTAMP '2026-01-01 00:00:00' AS TIMESTAMP_LTZ(3))) AS s ON b.bidder = s.id AND s.score > b.price
---
Project expressions=(price, name) names=(price, name)
  : price DECIMAL(10, 2), name STRING
  SnapshotJoin kind=inner left_keys=(1) right_keys=(0) residual=(score > CAST(price AS DOUBLE)) ttl_ms=(0, None) build_time=3 loaded_us=1767225600000000
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# every argument, columns renamed, the other spelling
SELECT b.auction, s.who, b.ts FROM bid AS b LEFT JOIN LATERAL TABLE(SNAPSHOT(TABLE person, on_time => DESCRIPTOR(joined), load_completed_idle_timeout => INTERVAL '10' SECOND, state_ttl => INTERVAL '1' DAY)) AS s(bidder, who, town, at, day, points, morning) USING (bidder)
---
Project expressions=(auction, who, ts) names=(auction, who, ts)
  : auction BIGINT, who STRING, ts TIMESTAMP(3) [event time]
  SnapshotJoin kind=left left_keys=(1) right_keys=(0) ttl_ms=(0, 86400000) build_time=3 idle_ms=10000
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# a bounded table is loaded to its end, as in any join
SELECT b.auction, s.country FROM bid AS b JOIN LATERAL SNAPSHOT(input => TABLE city) AS s ON b.channel = s.name
---
Project expressions=(auction, country) names=(auction, country)
  : auction BIGINT, country STRING
  Join kind=inner left_keys=(3) right_keys=(0)
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Scan city columns=(0, 1, 2)
      : name STRING, country STRING, size INT
====
# the time of the left side goes on
SELECT window_end, COUNT(*) FROM TUMBLE(TABLE (SELECT b.ts, s.name FROM bid AS b, LATERAL SNAPSHOT(input => TABLE person, on_time => DESCRIPTOR(joined)) AS s WHERE b.bidder = s.id), DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end
---
Project expressions=(window_end, count(*)) names=(window_end, count(*))
  : window_end TIMESTAMP(3) NOT NULL [window end], count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 2, end_column: 3} aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: tumble, size_us: 60000000}
      Project expressions=(ts, name) names=(ts, name)
        Filter predicate=(bidder = id)
          SnapshotJoin kind=inner ttl_ms=(0, None) build_time=3
            WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
              Scan bid columns=(0, 1, 2, 3, 4)
                : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
            WatermarkAssign time_column=3 watermark=joined
              Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
                Scan person columns=(0, 1, 2, 3, 4, 5)
                  : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
