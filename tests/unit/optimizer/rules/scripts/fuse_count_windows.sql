# the partition and the window's number are the keys: a window's row is final at its last row
SELECT window_index, k, COUNT(*) AS n, SUM(a + b) AS s FROM TUMBLE(TABLE orders PARTITION BY k ORDER BY ts, 10 ROWS) GROUP BY window_index, k
---
Sink to the client [window_index, k, n, s]
└── Project window_index, k, count(*) AS n, sum((CAST(a AS BIGINT) + b)) AS s
    └── Aggregate by window_index, k: count(*), sum((CAST(a AS BIGINT) + b))
        └── Project k, a, b, (over1 - 1) DIV 10 AS window_index
            └── Over in time per k by ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: count(*) AS over1
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b]
=>
Sink to the client [window_index, k, n, s]
└── Project window_index, k, count(*) AS n, sum((CAST(a AS BIGINT) + b)) AS s
    └── CountWindowAggregate 10 rows by window_index, k: count(*), sum((CAST(a AS BIGINT) + b))
        └── Project k, a, b, (over1 - 1) DIV 10 AS window_index
            └── Over in time per k by ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: count(*) AS over1
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b]
====
# a filter between may drop a window's last row
SELECT window_index, k, COUNT(*) AS n FROM TUMBLE(TABLE orders PARTITION BY k ORDER BY ts, 10 ROWS) WHERE a > 1 GROUP BY window_index, k
---
Sink to the client [window_index, k, n]
└── Project window_index, k, count(*) AS n
    └── Aggregate by window_index, k: count(*)
        └── Project k, (over1 - 1) DIV 10 AS window_index
            └── Filter a > 1
                └── Over in time per k by ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: count(*) AS over1
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k, a]
(unchanged)
====
# another key in GROUP BY holds a part of a window
SELECT window_index, k, u, COUNT(*) AS n FROM TUMBLE(TABLE orders PARTITION BY k ORDER BY ts, 10 ROWS) GROUP BY window_index, k, u
---
Sink to the client [window_index, k, u, n]
└── Project window_index, k, u, count(*) AS n
    └── Aggregate by window_index, k, u: count(*)
        └── Project k, u, (over1 - 1) DIV 10 AS window_index
            └── Over in time per k by ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: count(*) AS over1
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, u]
(unchanged)
====
# numbers by an order that is no time change
SELECT window_index, k, COUNT(*) AS n FROM TUMBLE(TABLE orders PARTITION BY k ORDER BY a, 10 ROWS) GROUP BY window_index, k
---
Sink to the client [window_index, k, n]
└── Project window_index, k, count(*) AS n
    └── Aggregate by window_index, k: count(*)
        └── Project k, (over1 - 1) DIV 10 AS window_index
            └── Over per k by a ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: count(*) AS over1
                └── Project k, a
                    └── Scan orders [k, a]
(unchanged)
====
# the same in one's own words
SELECT k, n DIV 10 AS w, MAX(a) AS m FROM (SELECT k, a, COUNT(*) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) - 1 AS n FROM orders) GROUP BY k, n DIV 10
---
Sink to the client [k, w, m]
└── Project k, n DIV 10 AS w, max(a) AS m
    └── Aggregate by k, (n DIV 10): max(a)
        └── Project k, a, (over1 - 1) DIV 10 AS (n DIV 10)
            └── Over in time per k by ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: count(*) AS over1
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a]
=>
Sink to the client [k, w, m]
└── Project k, n DIV 10 AS w, max(a) AS m
    └── CountWindowAggregate 10 rows by k, (n DIV 10): max(a)
        └── Project k, a, (over1 - 1) DIV 10 AS (n DIV 10)
            └── Over in time per k by ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW: count(*) AS over1
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a]
