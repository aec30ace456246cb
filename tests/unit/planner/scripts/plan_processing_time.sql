# PROCTIME() alone in a column is processing time; the clock stands below the window
SELECT window_start, window_end, COUNT(*) AS n FROM TUMBLE(TABLE (SELECT *, PROCTIME() AS p FROM bid), DESCRIPTOR(p), INTERVAL '10' SECONDS) GROUP BY window_start, window_end
---
Project expressions=(window_start, window_end, count(*)) names=(window_start, window_end, n)
  : window_start TIMESTAMP_LTZ(3) NOT NULL [window start], window_end TIMESTAMP_LTZ(3) NOT NULL [window end], n BIGINT NOT NULL
  WindowAggregate window={start_column: 6, end_column: 7} aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL, window_start TIMESTAMP_LTZ(3) NOT NULL [window start], window_end TIMESTAMP_LTZ(3) NOT NULL [window end], window_time TIMESTAMP_LTZ(3) NOT NULL [window time]
    WindowTable window={kind: tumble, time_column: 5, size_us: 10000000}
      ProcessingTime time_column=5
        Project expressions=(auction, bidder, price, channel, ts, proctime()) names=(auction, bidder, price, channel, ts, p)
          WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
            Scan bid columns=(0, 1, 2, 3, 4)
              : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# OVER by the clock is settled by time; the event time ends there
SELECT p, ts, ROW_NUMBER() OVER (PARTITION BY channel ORDER BY p) AS n FROM (SELECT *, PROCTIME() AS p FROM bid)
---
Project expressions=(p, ts, over1) names=(p, ts, n)
  : p TIMESTAMP_LTZ(3) NOT NULL [event time], ts TIMESTAMP(3), n INT NOT NULL
  Over partition=(3) order=(p NULLS FIRST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(row_number()) names=(over1) timely=True
    ProcessingTime time_column=5
      Project expressions=(auction, bidder, price, channel, ts, proctime()) names=(auction, bidder, price, channel, ts, p)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# it lasts through joins and unions, and ends in expressions
SELECT b.p, b.p + INTERVAL '1' SECOND AS later, c.id FROM (SELECT *, PROCTIME() AS p FROM bid) AS b JOIN person AS c ON b.auction = c.id
---
Project expressions=(p, (p + INTERVAL '0 00:00:01' DAY TO SECOND), id) names=(p, later, id)
  : p TIMESTAMP_LTZ(3) NOT NULL [processing time], later TIMESTAMP_LTZ(3) NOT NULL, id BIGINT NOT NULL
  Join kind=inner left_keys=(0) right_keys=(0)
    Project expressions=(auction, bidder, price, channel, ts, proctime()) names=(auction, bidder, price, channel, ts, p)
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
    WatermarkAssign time_column=3 watermark=joined
      Project expressions=(id, name, city, joined, born, score, CAST(joined AS DATE)) names=(id, name, city, joined, born, score, joined_day)
        Scan person columns=(0, 1, 2, 3, 4, 5)
          : id BIGINT NOT NULL, name STRING, city STRING, joined TIMESTAMP(3), born DATE, score DOUBLE
====
SELECT TUMBLE_START(p, INTERVAL '1' MINUTE), TUMBLE_PROCTIME(p, INTERVAL '1' MINUTE), COUNT(*) FROM (SELECT PROCTIME() AS p FROM log) GROUP BY TUMBLE(p, INTERVAL '1' MINUTE)
---
Project expressions=(window_start, proctime(), count(*)) names=(window_start, proctime(), count(*))
  : window_start TIMESTAMP_LTZ(3) NOT NULL [window start], proctime() TIMESTAMP_LTZ(3) NOT NULL [processing time], count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 1, end_column: 2} aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL, window_start TIMESTAMP_LTZ(3) NOT NULL [window start], window_end TIMESTAMP_LTZ(3) NOT NULL [window end], window_time TIMESTAMP_LTZ(3) NOT NULL [window time]
    WindowTable window={kind: tumble, size_us: 60000000}
      ProcessingTime time_column=0
        Project expressions=(proctime()) names=(p)
          Scan log columns=(0, 1, 2)
            : line STRING, at BIGINT, noticed TIMESTAMP(3)
====
# what has been computed on is no time any more
SELECT * FROM TUMBLE(TABLE (SELECT PROCTIME() + INTERVAL '1' SECOND AS p FROM log), DESCRIPTOR(p), INTERVAL '10' SECONDS)
---
error[SQL-1701]: "p" is no time attribute, so no window can be cut on it
  1 | * FROM TUMBLE(TABLE (SELECT PROCTIME() + INTERVAL '1' SECOND AS p FROM log), DESCRIPTOR(p), INTERVAL '10' SECONDS)
    |                                                                                         ^
hint: add WATERMARK FOR p AS p - INTERVAL '5' SECOND to CREATE TABLE log
====
SELECT PROCTIME(3) FROM log
---
error[SQL-1102]: proctime takes 0 arguments, not 1
  1 | SELECT PROCTIME(3) FROM log
    |        ^^^^^^^^^^^
hint: write proctime()
