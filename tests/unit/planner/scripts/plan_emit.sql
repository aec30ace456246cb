SELECT window_end, COUNT(*) FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end EMIT CHANGES EVERY INTERVAL '10' SECONDS WITH LATENESS INTERVAL '1' HOUR
---
Emit kind=changes emission={early: True, every_us: 10000000, lateness_us: 3600000000}
  : window_end TIMESTAMP(3) NOT NULL, count(*) BIGINT NOT NULL
  Project expressions=(window_end, count(*)) names=(window_end, count(*))
    WindowAggregate window={start_column: 5, end_column: 6} aggregates=(count(*)) names=(count(*)) phase=single emission={early: True, every_us: 10000000, lateness_us: 3600000000}
      : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
      WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a query within keeps to its own clause
SELECT n, COUNT(*) AS c FROM (SELECT window_end, COUNT(*) AS n FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end EMIT ON WINDOW CLOSE) GROUP BY n EMIT CHANGES
---
Emit kind=changes emission={early: True}
  : n BIGINT NOT NULL, c BIGINT NOT NULL
  Project expressions=(n, count(*)) names=(n, c)
    Aggregate keys=(1) aggregates=(count(*)) names=(count(*)) phase=single
      : n BIGINT NOT NULL, count(*) BIGINT NOT NULL
      Emit kind=on window close
        Project expressions=(window_end, count(*)) names=(window_end, n)
          WindowAggregate window={start_column: 5, end_column: 6} aggregates=(count(*)) names=(count(*)) phase=single
            : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
            WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
              WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
                Scan bid columns=(0, 1, 2, 3, 4)
                  : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT channel, COUNT(*) FROM bid GROUP BY channel EMIT FINAL
---
Emit kind=final
  : channel STRING, count(*) BIGINT NOT NULL
  Aggregate keys=(3) aggregates=(count(*)) names=(count(*)) phase=single
    : channel STRING, count(*) BIGINT NOT NULL
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT channel, COUNT(*) FROM bid GROUP BY channel EMIT FINAL WITH LATENESS INTERVAL '1' HOUR
---
error[SQL-1710]: WITH LATENESS keeps windows open for late rows, and this query aggregates in none
  1 | SELECT channel, COUNT(*) FROM bid GROUP BY channel EMIT FINAL WITH LATENESS INTERVAL '1' HOUR
    |                                                                             ^^^^^^^^^^^^^^^^^
hint: aggregate within windows, or leave WITH LATENESS out
====
SELECT auction FROM bid EMIT ON WINDOW
---
error[SQL-1001]: the statement ends where CLOSE was expected
  1 | SELECT auction FROM bid EMIT ON WINDOW
    |                                       ^
====
SELECT auction FROM bid AS b EMIT LATER
---
error[SQL-1001]: unexpected "LATER": ON WINDOW CLOSE, CHANGES or FINAL was expected
  1 | SELECT auction FROM bid AS b EMIT LATER
    |                                   ^^^^^
====
SELECT auction FROM bid EMIT CHANGES EVERY 5
---
error[SQL-1001]: unexpected "5": INTERVAL was expected
  1 | SELECT auction FROM bid EMIT CHANGES EVERY 5
    |                                            ^
====
SELECT auction FROM bid EMIT CHANGES EVERY INTERVAL '1' MONTH
---
error[SQL-1705]: EVERY is an interval longer than nothing, of days or less
  1 | SELECT auction FROM bid EMIT CHANGES EVERY INTERVAL '1' MONTH
    |                                            ^^^^^^^^^^^^^^^^^^
hint: write INTERVAL '10' SECONDS; months and years have no fixed length
====
INSERT INTO totals SELECT auction, SUM(price), NULL FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY auction, window_start, window_end EMIT ON WINDOW CLOSE WITH LATENESS INTERVAL '5' SECONDS
---
Sink totals
  : id BIGINT, total DECIMAL(20, 2), label STRING
  Project expressions=(auction, sum(price), CAST(NULL AS STRING)) names=(id, total, label)
    Emit kind=on window close emission={lateness_us: 5000000}
      Project expressions=(auction, sum(price), NULL) names=(auction, sum(price), NULL)
        WindowAggregate window={start_column: 5, end_column: 6} keys=(0) aggregates=(sum(price)) names=(sum(price)) phase=single emission={lateness_us: 5000000}
          : auction BIGINT, sum(price) DECIMAL(20, 2), window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
          WindowTable window={kind: tumble, time_column: 4, size_us: 60000000}
            WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
              Scan bid columns=(0, 1, 2, 3, 4)
                : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction, count(*) FROM bid GROUP BY auction EMIT CHANGES AFTER 100 ROWS OR INTERVAL '5' SECONDS
---
Emit kind=changes emission={early: True, every_us: 5000000, every_rows: 100}
  : auction BIGINT, count(*) BIGINT NOT NULL
  Aggregate keys=(0) aggregates=(count(*)) names=(count(*)) phase=single
    : auction BIGINT, count(*) BIGINT NOT NULL
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
