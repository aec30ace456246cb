# a window function under its GROUP BY
SELECT window_start, k, COUNT(*) AS n, SUM(a) AS s FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, k
---
Sink to the client [window_start, k, n, s]
└── Project window_start, k, count(*) AS n, sum(a) AS s
    └── WindowAggregate attached(window_start, window_end) by k: count(*), sum(a)
        └── WindowTable tumble(ts, 1 min)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [window_start, k, n, s]
└── Project window_start, k, count(*) AS n, sum(a) AS s
    └── WindowAggregate tumble(ts, 1 min) by k: count(*), sum(a)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
====
# filters on columns go below, filters on the window above
SELECT window_end, COUNT(*) AS n FROM HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE) WHERE a > 2 AND window_end > TIMESTAMP '2024-01-01 00:02:00' GROUP BY window_start, window_end
---
Sink to the client [window_end, n]
└── Project window_end, count(*) AS n
    └── WindowAggregate attached(window_start, window_end): count(*)
        └── Filter window_end > TIMESTAMP(6) '2024-01-01 00:02:00'
            └── WindowTable hop(ts, 30 s, 1 min)
                └── Filter a > 2
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [window_end, n]
└── Project window_end, count(*) AS n
    └── Filter window_end > TIMESTAMP(6) '2024-01-01 00:02:00'
        └── WindowAggregate hop(ts, 30 s, 1 min): count(*)
            └── Filter a > 2
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
====
# projections between are kept below
SELECT w, COUNT(*) AS n, MAX(u2) AS m FROM (SELECT window_start AS w, window_end AS e, window_start, window_end, u + 1 AS u2 FROM CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE)) GROUP BY window_start, window_end, w
---
Sink to the client [w, n, m]
└── Project w, count(*) AS n, max(u2) AS m
    └── WindowAggregate attached(window_start, window_end) by w: count(*), max(u2)
        └── Project window_start AS w, window_end AS e, window_start, window_end, u + 1 AS u2
            └── WindowTable cumulate(ts, 30 s, 2 min)
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [w, n, m]
└── Project w, count(*) AS n, max(u2) AS m
    └── Project window_start AS w, count(*), max(u2), window_start, window_end, window_time
        └── WindowAggregate cumulate(ts, 30 s, 2 min): count(*), max(u2)
            └── Project u + 1 AS u2, ts
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
====
# grouped by window_time as well: it is a column of the result
SELECT window_time, k, COUNT(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, window_time, k
---
Sink to the client [window_time, k, n]
└── Project window_time, k, count(*) AS n
    └── WindowAggregate attached(window_start, window_end) by k: count(*)
        └── WindowTable tumble(ts, 1 min)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [window_time, k, n]
└── Project window_time, k, count(*) AS n
    └── WindowAggregate tumble(ts, 1 min) by k: count(*)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
====
# an aggregate that reads the window keeps the rows per window
SELECT k, MAX(window_end) AS e FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, k
---
Sink to the client [k, e]
└── Project k, max(window_end) AS e
    └── WindowAggregate attached(window_start, window_end) by k: max(window_end)
        └── WindowTable tumble(ts, 1 min)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
(unchanged)
====
# sessions of the group
SELECT k, window_start, COUNT(*) AS n FROM SESSION(TABLE orders PARTITION BY k, DESCRIPTOR(ts), INTERVAL '9' SECOND) GROUP BY k, window_start, window_end
---
Sink to the client [k, window_start, n]
└── Project k, window_start, count(*) AS n
    └── WindowAggregate attached(window_start, window_end) by k: count(*)
        └── WindowTable session(ts, 9 s, per k)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k, window_start, n]
└── Project k, window_start, count(*) AS n
    └── WindowAggregate session(ts, 9 s, per k) by k: count(*)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
====
# the second of two cascaded aggregates has the windows of the first: it stays attached
SELECT window_start, MAX(n) AS m FROM (SELECT window_start, window_end, k, COUNT(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end, k) GROUP BY window_start, window_end
---
Sink to the client [window_start, m]
└── Project window_start, max(n) AS m
    └── WindowAggregate attached(window_start, window_end): max(n)
        └── Project window_start, window_end, k, count(*) AS n
            └── WindowAggregate attached(window_start, window_end) by k: count(*)
                └── WindowTable tumble(ts, 1 min)
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [window_start, m]
└── Project window_start, max(n) AS m
    └── WindowAggregate attached(window_start, window_end): max(n)
        └── Project window_start, window_end, k, count(*) AS n
            └── WindowAggregate tumble(ts, 1 min) by k: count(*)
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
====
# a computed column that reads the window, not used by the aggregate, is dropped
SELECT n FROM (SELECT COUNT(*) AS n FROM (SELECT window_start, window_end, k FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) WHERE k IS NOT NULL) GROUP BY window_start, window_end)
---
Sink to the client [n]
└── Project count(*) AS n
    └── WindowAggregate attached(window_start, window_end): count(*)
        └── Project window_start, window_end, k
            └── WindowTable tumble(ts, 1 min)
                └── Filter is_not_null(k)
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [n]
└── Project count(*) AS n
    └── WindowAggregate tumble(ts, 1 min): count(*)
        └── Project k, ts
            └── Filter is_not_null(k)
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
