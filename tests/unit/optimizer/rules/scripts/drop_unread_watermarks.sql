# nobody reads the time
SELECT k, a FROM orders
---
Sink to the client [k, a]
└── Project k, a
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a]
=>
Sink to the client [k, a]
└── Project k, a
    └── Scan orders [k, a]
====
# a filter goes on into the scan
SELECT k FROM orders WHERE a > 3
---
Sink to the client [k]
└── Project k
    └── Filter a > 3
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a]
=>
Sink to the client [k]
└── Project k
    └── Filter a > 3
        └── Scan orders [k, a]
====
# the time is read, so it is decoded anyway: its watermark stays
SELECT ts, k FROM orders WHERE a > 3
---
Sink to the client [ts, k]
└── Project ts, k
    └── Filter a > 3
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a]
(unchanged)
====
# groups and joins are not driven by time
SELECT p.id, COUNT(*) AS n FROM orders AS o JOIN people AS p ON o.k = p.k GROUP BY p.id
---
Sink to the client [id, n]
└── Project id, count(*) AS n
    └── Aggregate by id: count(*)
        └── Project id
            └── Join inner on k = k
                ├── Project k
                │   └── WatermarkAssign ts AS ts
                │       └── Scan orders [ts, k]
                └── Scan people [k, id]
=>
Sink to the client [id, n]
└── Project id, count(*) AS n
    └── Aggregate by id: count(*)
        └── Project id
            └── Join inner on k = k
                ├── Project k
                │   └── Scan orders [k]
                └── Scan people [k, id]
====
# windows are
SELECT k, COUNT(*) AS n FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY k, window_start, window_end
---
Sink to the client [k, n]
└── Project k, count(*) AS n
    └── WindowAggregate tumble(ts, 1 min) by k: count(*)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k]
(unchanged)
====
# two readers of one table keep one scan
SELECT x.k FROM orders AS x JOIN orders AS y ON x.a = y.a
---
Sink to the client [k]
└── Project k
    └── Join inner on a = a
        ├── Project k, a
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a]
        └── Project a
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, a]
(unchanged)
