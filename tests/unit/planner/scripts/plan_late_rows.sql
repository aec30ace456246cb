# a column of another name is NULL, if it may be
INSERT INTO totals SELECT auction, SUM(price), NULL FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY auction, window_start, window_end LATE ROWS INTO stamped
---
error[SQL-1042]: late rows have no column "at"
  1 | (TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY auction, window_start, window_end LATE ROWS INTO stamped
    |                                                                                                            ^^^^^^^
hint: there is auction, bidder, channel, price, ts, watermark, window_end
====
SELECT auction FROM bid LATE ROWS INTO totals
---
error[SQL-1712]: LATE ROWS INTO is the last clause of an INSERT
  1 | SELECT auction FROM bid LATE ROWS INTO totals
    |                                        ^^^^^^
hint: write INSERT INTO .. SELECT .. LATE ROWS INTO ..
====
INSERT INTO totals SELECT auction, price, channel FROM bid LATE ROWS INTO totals
---
error[SQL-1712]: LATE ROWS INTO needs exactly one window, here are none
  1 | INSERT INTO totals SELECT auction, price, channel FROM bid LATE ROWS INTO totals
    |                                                                           ^^^^^^
hint: the query reads rows through one window function, TUMBLE, HOP, CUMULATE or SESSION
====
INSERT INTO totals SELECT auction, price, channel FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) LATE ROWS INTO totls
---
error[SQL-1041]: table "totls" does not exist
  1 | ls SELECT auction, price, channel FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) LATE ROWS INTO totls
    |                                                                                                              ^^^^^
hint: did you mean "totals"?
====
INSERT INTO totals SELECT auction, price, channel FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) LATE ROWS
---
error[SQL-1001]: the statement ends where INTO was expected
  1 | T INTO totals SELECT auction, price, channel FROM TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE) LATE ROWS
    |                                                                                                                   ^
