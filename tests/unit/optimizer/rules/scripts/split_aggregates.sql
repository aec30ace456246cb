# counts merge by sums, sums, minima and maxima by themselves
SELECT k, COUNT(*) AS n, COUNT(a) AS m, SUM(b) AS s, MIN(a) AS lo, MAX(a) AS hi FROM orders GROUP BY k
---
Sink to the client [k, n, m, s, lo, hi]
└── Project k, count(*) AS n, count(a) AS m, sum(b) AS s, min(a) AS lo, max(a) AS hi
    └── Aggregate by k: count(*), count(a), sum(b), min(a), max(a)
        └── Project k, a, b
            └── Scan orders [k, a, b]
=>
Sink to the client [k, n, m, s, lo, hi]
└── Project k, count(*) AS n, count(a) AS m, sum(b) AS s, min(a) AS lo, max(a) AS hi
    └── Global Aggregate by k: sum0(count(*)) AS count(*), sum0(count(a)) AS count(a), sum(sum(b)) AS sum(b), min(min(a)) AS min(a), max(max(a)) AS max(a)
        └── Local Aggregate by k: count(*), count(a), sum(b), min(a), max(a)
            └── Project k, a, b
                └── Scan orders [k, a, b]
====
# an average is a sum and a count, divided above
SELECT k, AVG(a) AS mean, COUNT(*) AS n FROM orders GROUP BY k
---
Sink to the client [k, mean, n]
└── Project k, avg(a) AS mean, count(*) AS n
    └── Aggregate by k: avg(a), count(*)
        └── Project k, a
            └── Scan orders [k, a]
=>
Sink to the client [k, mean, n]
└── Project k, avg(a) AS mean, count(*) AS n
    └── Project k, CAST(sum(a) AS DOUBLE) / CASE WHEN (count(a) = 0) THEN NULL ELSE CAST(count(a) AS DOUBLE) END AS avg(a), count(*)
        └── Global Aggregate by k: sum(sum(a)) AS sum(a), sum0(count(a)) AS count(a), sum0(count(*)) AS count(*)
            └── Local Aggregate by k: sum(a), count(a), count(*)
                └── Project k, a
                    └── Scan orders [k, a]
====
# windows by slices
SELECT window_start, k, COUNT(*) AS n, AVG(a) AS mean FROM HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE) GROUP BY window_start, window_end, k
---
Sink to the client [window_start, k, n, mean]
└── Project window_start, k, count(*) AS n, avg(a) AS mean
    └── WindowAggregate hop(ts, 30 s, 1 min) by k: count(*), avg(a)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a]
=>
Sink to the client [window_start, k, n, mean]
└── Project window_start, k, count(*) AS n, avg(a) AS mean
    └── Project k, count(*), CAST(sum(a) AS DOUBLE) / CASE WHEN (count(a) = 0) THEN NULL ELSE CAST(count(a) AS DOUBLE) END AS avg(a), window_start, window_end, window_time
        └── Global WindowAggregate hop(slice_end, 30 s, 1 min) by k: sum0(count(*)) AS count(*), sum(sum(a)) AS sum(a), sum0(count(a)) AS count(a)
            └── Local WindowAggregate hop(ts, 30 s, 1 min) by k: count(*), sum(a), count(a)
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a]
====
# FILTER is applied before the exchange
SELECT k, COUNT(*) FILTER (WHERE a > 2) AS n FROM orders GROUP BY k
---
Sink to the client [k, n]
└── Project k, count(*) FILTER (WHERE (a > 2)) AS n
    └── Aggregate by k: count(*) FILTER (WHERE (a > 2))
        └── Project k, a
            └── Scan orders [k, a]
=>
Sink to the client [k, n]
└── Project k, count(*) FILTER (WHERE (a > 2)) AS n
    └── Global Aggregate by k: sum0(count(*) FILTER (WHERE (a > 2))) AS count(*) FILTER (WHERE (a > 2))
        └── Local Aggregate by k: count(*) FILTER (WHERE (a > 2))
            └── Project k, a
                └── Scan orders [k, a]
====
# no keys
SELECT COUNT(*) AS n, SUM(a) AS s FROM orders
---
Sink to the client [n, s]
└── Project count(*) AS n, sum(a) AS s
    └── Aggregate: count(*), sum(a)
        └── Project a
            └── Scan orders [a]
=>
Sink to the client [n, s]
└── Project count(*) AS n, sum(a) AS s
    └── Global Aggregate: sum0(count(*)) AS count(*), sum(sum(a)) AS sum(a)
        └── Local Aggregate: count(*), sum(a)
            └── Project a
                └── Scan orders [a]
====
# DISTINCT rows
SELECT DISTINCT k FROM orders
---
Sink to the client [k]
└── Aggregate by k
    └── Project k
        └── Scan orders [k]
=>
Sink to the client [k]
└── Global Aggregate by k
    └── Local Aggregate by k
        └── Project k
            └── Scan orders [k]
====
# DISTINCT within an aggregate does not merge
SELECT k, COUNT(DISTINCT a) AS n FROM orders GROUP BY k
---
Sink to the client [k, n]
└── Project k, count(DISTINCT a) AS n
    └── Aggregate by k: count(DISTINCT a)
        └── Project k, a
            └── Scan orders [k, a]
(unchanged)
====
# sums of floating-point numbers would depend on where batches are cut
SELECT k, SUM(CAST(a AS DOUBLE)) AS s FROM orders GROUP BY k
---
Sink to the client [k, s]
└── Project k, sum(CAST(a AS DOUBLE)) AS s
    └── Aggregate by k: sum(CAST(a AS DOUBLE))
        └── Project k, a
            └── Scan orders [k, a]
(unchanged)
====
# sessions are merged whole
SELECT k, COUNT(*) AS n FROM SESSION(TABLE orders PARTITION BY k, DESCRIPTOR(ts), INTERVAL '9' SECOND) GROUP BY k, window_start, window_end
---
Sink to the client [k, n]
└── Project k, count(*) AS n
    └── WindowAggregate session(ts, 9 s, per k) by k: count(*)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k]
(unchanged)
====
# an aggregate of an aggregate takes back rows, which partials cannot
SELECT n, COUNT(*) AS keys FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k) GROUP BY n
---
Sink to the client [n, keys]
└── Project n, count(*) AS keys
    └── Aggregate by n: count(*)
        └── Project count(*) AS n
            └── Aggregate by k: count(*)
                └── Project k
                    └── Scan orders [k]
=>
Sink to the client [n, keys]
└── Project n, count(*) AS keys
    └── Aggregate by n: count(*)
        └── Project count(*) AS n
            └── Global Aggregate by k: sum0(count(*)) AS count(*)
                └── Local Aggregate by k: count(*)
                    └── Project k
                        └── Scan orders [k]
