# the sum of BIGINT is wider than BIGINT: a mean is no overflow where its sum would be one
SELECT k, AVG(CAST(a AS BIGINT)) AS mean, SUM(CAST(a AS BIGINT)) AS s FROM orders GROUP BY k
---
Sink to the client [k, mean, s]
└── Project k, avg(CAST(a AS BIGINT)) AS mean, sum(CAST(a AS BIGINT)) AS s
    └── Aggregate by k: avg(CAST(a AS BIGINT)), sum(CAST(a AS BIGINT))
        └── Project k, a
            └── Scan orders [k, a]
=>
Sink to the client [k, mean, s]
└── Project k, avg(CAST(a AS BIGINT)) AS mean, sum(CAST(a AS BIGINT)) AS s
    └── Project k, CAST(sum(CAST(a AS BIGINT))#1 AS DOUBLE) / CASE WHEN (count(CAST(a AS BIGINT)) = 0) THEN NULL ELSE CAST(count(CAST(a AS BIGINT)) AS DOUBLE) END AS avg(CAST(a AS BIGINT)), sum(CAST(a AS BIGINT))#3 AS sum(CAST(a AS BIGINT))
        └── Global Aggregate by k: sum(sum(CAST(a AS BIGINT))) AS sum(CAST(a AS BIGINT)), sum0(count(CAST(a AS BIGINT))) AS count(CAST(a AS BIGINT)), sum(sum(CAST(a AS BIGINT))) AS sum(CAST(a AS BIGINT))
            └── Local Aggregate by k: sum(CAST(a AS BIGINT)), count(CAST(a AS BIGINT)), sum(CAST(a AS BIGINT))
                └── Project k, a
                    └── Scan orders [k, a]
====
# windows, and a FILTER of the mean alone
SELECT window_start, AVG(CAST(a AS BIGINT)) FILTER (WHERE a > 1) AS mean FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY window_start, window_end
---
Sink to the client [window_start, mean]
└── Project window_start, avg(CAST(a AS BIGINT)) FILTER (WHERE (a > 1)) AS mean
    └── WindowAggregate tumble(ts, 1 min): avg(CAST(a AS BIGINT)) FILTER (WHERE (a > 1))
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, a]
=>
Sink to the client [window_start, mean]
└── Project window_start, avg(CAST(a AS BIGINT)) FILTER (WHERE (a > 1)) AS mean
    └── Project CAST(sum(CAST(a AS BIGINT)) FILTER (WHERE (a > 1)) AS DOUBLE) / CASE WHEN (count(CAST(a AS BIGINT)) FILTER (WHERE (a > 1)) = 0) THEN NULL ELSE CAST(count(CAST(a AS BIGINT)) FILTER (WHERE (a > 1)) AS DOUBLE) END AS avg(CAST(a AS BIGINT)) FILTER (WHERE (a > 1)), window_start, window_end, window_time
        └── Global WindowAggregate tumble(slice_end, 1 min): sum(sum(CAST(a AS BIGINT)) FILTER (WHERE (a > 1))) AS sum(CAST(a AS BIGINT)) FILTER (WHERE (a > 1)), sum0(count(CAST(a AS BIGINT)) FILTER (WHERE (a > 1))) AS count(CAST(a AS BIGINT)) FILTER (WHERE (a > 1))
            └── Local WindowAggregate tumble(ts, 1 min): sum(CAST(a AS BIGINT)) FILTER (WHERE (a > 1)), count(CAST(a AS BIGINT)) FILTER (WHERE (a > 1))
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, a]
====
# two subtasks may see one distinct value
SELECT k, AVG(DISTINCT CAST(a AS BIGINT)) AS mean FROM orders GROUP BY k
---
Sink to the client [k, mean]
└── Project k, avg(DISTINCT CAST(a AS BIGINT)) AS mean
    └── Aggregate by k: avg(DISTINCT CAST(a AS BIGINT))
        └── Project k, a
            └── Scan orders [k, a]
(unchanged)
====
# the digits of a sum of DOUBLE depend on where batches are cut
SELECT k, AVG(CAST(a AS BIGINT)) AS mean, AVG(CAST(a AS DOUBLE)) AS rough FROM orders GROUP BY k
---
Sink to the client [k, mean, rough]
└── Project k, avg(CAST(a AS BIGINT)) AS mean, avg(CAST(a AS DOUBLE)) AS rough
    └── Aggregate by k: avg(CAST(a AS BIGINT)), avg(CAST(a AS DOUBLE))
        └── Project k, a
            └── Scan orders [k, a]
(unchanged)
