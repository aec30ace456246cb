# texts sort on backends as they do here
SELECT o.a, p.b FROM orders AS o ASOF JOIN orders AS p ON o.u = p.u AND o.k >= p.k
---
Sink to the client [a, b]
└── Project a, b
    └── Join inner on k = outer1 AND u = outer2
        ├── Project k, a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, u]
        └── Project b, outer1, outer2
            └── PartitionTop row_number <= 1 per outer1, outer2 by k DESC
                └── Project k, b, outer1, outer2
                    └── Join inner on outer2 = u AND outer1 >= k
                        ├── Project k AS outer1, u AS outer2
                        │   └── Aggregate by k, u
                        │       └── Project k, u
                        │           └── WatermarkAssign ts AS ts
                        │               └── Scan orders [ts, k, u]
                        └── Project k, b, u
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k, b, u]
=>
Sink to the client [a, b]
└── Project a, b
    └── Join inner on k = outer1 AND u = outer2
        ├── Project k, a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, u]
        └── Project b, outer1, outer2
            └── Project k, b, outer1, outer2
                └── NearestJoin inner on outer2 = u, the last k <= outer1
                    ├── Project k AS outer1, u AS outer2
                    │   └── Aggregate by k, u
                    │       └── Project k, u
                    │           └── WatermarkAssign ts AS ts
                    │               └── Scan orders [ts, k, u]
                    └── Project k, b, u
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, b, u]
====
# an order that is not that of the value
SELECT o.a, (SELECT p.a FROM orders AS p WHERE p.k = o.k AND p.b >= o.u ORDER BY p.ts DESC LIMIT 1) AS x FROM orders AS o
---
Sink to the client [a, x]
└── Project a, value AS x
    └── Join left on k = key1 AND u = key2
        ├── Project k, a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, u]
        └── Project outer1 AS key1, outer2 AS key2, a AS value
            └── PartitionTop row_number <= 1 per outer1, outer2 by ts DESC
                └── Project ts, a, outer1, outer2
                    └── Join inner on outer1 = k AND b >= outer2
                        ├── Project k AS outer1, u AS outer2
                        │   └── Aggregate by k, u
                        │       └── Project k, u
                        │           └── WatermarkAssign ts AS ts
                        │               └── Scan orders [ts, k, u]
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, a, b]
(unchanged)
