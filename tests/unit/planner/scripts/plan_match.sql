# the classic: prices fall, then rise; the pattern's text, the conditions over values by position, what measures read
SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY channel ORDER BY ts MEASURES FIRST(S.ts) AS began, LAST(D.price) AS low, COUNT(U.*) AS ups, MATCH_ROWTIME() AS at AFTER MATCH SKIP TO LAST U PATTERN (S D+ U+?) WITHIN INTERVAL '1' HOUR DEFINE D AS D.price < PREV(D.price), U AS U.price > LAST(D.price) AND U.auction <> 0) AS v
---
MatchRecognize partition=(3) order=(ts NULLS FIRST) pattern=S D+ U+? variables=(S, D, U) definitions=(1 AS (D.price < PREV(D.price, 1)), values=(LAST(price of [1], 0) before 0, LAST(price of [1], 0) before 1), 2 AS ((U.price > D.price) AND (U.auction <> 0)), values=(LAST(price of [2], 0) before 0, LAST(price of [1], 0) before 0, LAST(auction of [2], 0) before 0)) values=(FINAL FIRST(ts of [0], 0) before 0, FINAL LAST(price of [1], 0) before 0, FINAL count(*) of [2], FINAL MATCH_ROWTIME()) measures=(FIRST(S.ts), D.price, count(U.*), MATCH_ROWTIME()) names=(began, low, ups, at) all_rows=False skip=to last skip_rows=frozenset({2}) within_us=3600000000
  : channel STRING, began TIMESTAMP(3), low DECIMAL(10, 2), ups BIGINT NOT NULL, at TIMESTAMP(3) NOT NULL [event time]
  WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
    Scan bid columns=(0, 1, 2, 3, 4)
      : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# all rows: the input's columns lose their time attribute; RUNNING is the default, FINAL looks ahead; subsets and permutations
SELECT auction, c, n, total FROM bid MATCH_RECOGNIZE (ORDER BY ts, auction DESC MEASURES CLASSIFIER() AS c, MATCH_NUMBER() AS n, FINAL SUM(U.price) AS total, SUM(price) AS so_far ALL ROWS PER MATCH PATTERN (PERMUTE(A, B) {- X* -} | (A{2,3})+) SUBSET U = (A, B) DEFINE A AS A.channel = 'a', B AS SUM(U.price) < 100)
---
Project expressions=(auction, c, n, total) names=(auction, c, n, total)
  : auction BIGINT, c STRING NOT NULL, n BIGINT NOT NULL, total DECIMAL(20, 2)
  MatchRecognize order=(ts NULLS FIRST, auction DESC NULLS LAST) pattern=(A B | B A) {- X* -} | (A{2,3})+ variables=(A, B, X) definitions=(0 AS (A.channel = 'a'), values=(LAST(channel of [0], 0) before 0), 1 AS (sum(A|B.price) < 100.00), values=(sum(price) of [0, 1])) values=(CLASSIFIER(), MATCH_NUMBER(), FINAL sum(price) of [0, 1], sum(price) of [0, 1, 2]) measures=(CLASSIFIER(), MATCH_NUMBER(), sum(A|B.price), sum(price)) names=(c, n, total, so_far) all_rows=True skip=past last row skip_rows=frozenset()
    WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
      Scan bid columns=(0, 1, 2, 3, 4)
        : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
# a match's time is a time attribute: windows may follow
SELECT window_end, COUNT(*) FROM TUMBLE(TABLE (SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES MATCH_ROWTIME() AS at PATTERN (A) DEFINE A AS A.price > 1)), DESCRIPTOR(at), INTERVAL '1' HOUR) GROUP BY window_start, window_end
---
Project expressions=(window_end, count(*)) names=(window_end, count(*))
  : window_end TIMESTAMP(3) NOT NULL [window end], count(*) BIGINT NOT NULL
  WindowAggregate window={start_column: 1, end_column: 2} aggregates=(count(*)) names=(count(*)) phase=single
    : count(*) BIGINT NOT NULL, window_start TIMESTAMP(3) NOT NULL [window start], window_end TIMESTAMP(3) NOT NULL [window end], window_time TIMESTAMP(3) NOT NULL [window time]
    WindowTable window={kind: tumble, size_us: 3600000000}
      MatchRecognize order=(ts NULLS FIRST) pattern=A variables=(A) definitions=(0 AS (price > 1.00), values=(LAST(price of [0], 0) before 0)) values=(FINAL MATCH_ROWTIME()) measures=(MATCH_ROWTIME()) names=(at) all_rows=False skip=past last row skip_rows=frozenset()
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
