# bounds on both sides, and the roles that live on
SELECT b.auction, p.name, b.ts FROM bid AS b JOIN person AS p ON b.bidder = p.id AND b.ts BETWEEN p.joined - INTERVAL '5' SECOND AND p.joined + INTERVAL '1' MINUTE
---
Project expressions=(auction, name, ts) names=(auction, name, ts)
  : auction BIGINT, name STRING, ts TIMESTAMP(3) [event time]
  IntervalJoin kind=inner left_keys=(1) right_keys=(0) residual=((ts >= (joined - INTERVAL '0 00:00:05' DAY TO SECOND)) AND (ts <= (joined + INTERVAL '0 00:01:00' DAY TO SECOND))) time=[left event time 4 until 4+5000000us, right event time 3 until 3+60000000us]
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# comma joins take their bounds from WHERE, what is no bound stays there; a bound to any timestamp frees rows but lets go of the time attribute
SELECT b.auction FROM bid AS b, person AS p, bid AS c WHERE b.bidder = p.id AND b.ts >= p.joined AND b.ts < p.joined + INTERVAL '1' HOUR AND c.auction = b.auction AND c.ts BETWEEN b.ts AND b.ts + INTERVAL '1' SECOND AND c.price > b.price
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Filter predicate=(price > price)
    IntervalJoin kind=inner left_keys=(0) right_keys=(0) residual=((ts >= ts) AND (ts <= (ts + INTERVAL '0 00:00:01' DAY TO SECOND))) time=[left event time 4 until 4+1000000us, right event time 4 until 4]
      IntervalJoin kind=inner left_keys=(1) right_keys=(0) residual=((ts >= joined) AND (ts < (joined + INTERVAL '0 01:00:00' DAY TO SECOND))) time=[left event time 4 until 4, right event time 3 until 3+3599999999us]
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
        WatermarkAssign time_column=3 watermark=joined
          Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
            Scan person columns=(0, 1, 2, 3, 4, 5)
              : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# one-sided: the other side is kept for ever, which an outer join of that side cannot wait for
SELECT b.auction FROM bid AS b JOIN person AS p ON b.bidder = p.id AND b.ts >= p.joined
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  IntervalJoin kind=inner left_keys=(1) right_keys=(0) residual=(ts >= joined) time=[left event time 4 until 4, right event time 3 until ever]
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT b.auction, p.id FROM person AS p LEFT JOIN bid AS b ON b.bidder = p.id AND b.ts >= p.joined
---
Project expressions=(auction, id) names=(auction, id)
  : auction BIGINT, id BIGINT NOT NULL
  Join kind=left left_keys=(0) right_keys=(1) residual=(ts >= joined)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a window join
SELECT x.auction, y.channel, x.window_end FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) AS x LEFT JOIN TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) AS y ON x.auction = y.bidder AND x.window_start = y.window_start AND x.window_end = y.window_end
---
Project expressions=(auction, channel, window_end) names=(auction, channel, window_end)
  : auction BIGINT, channel STRING, window_end TIMESTAMP(3) NOT NULL [window end]
  IntervalJoin kind=left left_keys=(0, 5, 6) right_keys=(1, 5, 6) time=[left window end 6 until 6, right window end 6 until 6]
    WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction, window_end FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) AS x WHERE NOT EXISTS (SELECT * FROM TUMBLE(TABLE person, DESCRIPTOR(joined), INTERVAL '1' MINUTE) AS y WHERE x.bidder = y.id AND x.window_start = y.window_start AND x.window_end = y.window_end)
---
Project expressions=(auction, window_end) names=(auction, window_end)
  : auction BIGINT, window_end TIMESTAMP(3) NOT NULL [window end]
  IntervalJoin kind=anti left_keys=(1, 5, 6) right_keys=(0, 7, 8) time=[left window end 6 until 6, right window end 8 until 8]
    WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WindowTable window={kind: tumble, time_column: 3, size_us: 60000000}
      WatermarkAssign time_column=3 watermark=joined
        Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
          Scan person columns=(0, 1, 2, 3, 4, 5)
            : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
# a bounded side is loaded, whatever the times say
SELECT b.auction FROM bid AS b JOIN (SELECT name, TIMESTAMP '2024-01-01 00:00:00' AS at FROM city) AS c ON b.channel = c.name AND b.ts BETWEEN c.at AND c.at + INTERVAL '1' DAY
---
Project expressions=(auction) names=(auction)
  : auction BIGINT
  Join kind=inner left_keys=(3) right_keys=(0) residual=((CAST(ts AS TIMESTAMP(6)) >= at) AND (CAST(ts AS TIMESTAMP(6)) <= (at + INTERVAL '1 00:00:00' DAY TO SECOND)))
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    Project expressions=(name, TIMESTAMP(6) '2024-01-01 00:00:00') names=(name, at)
      Scan city columns=(0, 1, 2)
        : name STRING, country STRING, size INT
