# each order with the last one of its key before it
SELECT o.a, p.b FROM orders AS o ASOF JOIN orders AS p ON o.k = p.k AND o.ts > p.ts
---
Sink to the client [a, b]
└── Project a, b
    └── Join inner on ts = outer1 AND k = outer2
        ├── Project ts, k, a
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project b, outer1, outer2
            └── PartitionTop row_number <= 1 per outer1, outer2 by ts DESC
                └── Project ts, b, outer1, outer2
                    └── Join inner on outer2 = k AND outer1 > ts
                        ├── Project ts AS outer1, k AS outer2
                        │   └── Global Aggregate by ts, k
                        │       └── Local Aggregate by ts, k
                        │           └── Project ts, k
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, k, a, b]
                        └── Project ts, k, b
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k, a, b]
=>
Sink to the client [a, b]
└── Project a, b
    └── Join inner on ts = outer1 AND k = outer2
        ├── Project ts, k, a
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project b, outer1, outer2
            └── Project ts, b, outer1, outer2
                └── NearestJoin inner on outer2 = k, the last ts < outer1
                    ├── Project ts AS outer1, k AS outer2
                    │   └── Global Aggregate by ts, k
                    │       └── Local Aggregate by ts, k
                    │           └── Project ts, k
                    │               └── WatermarkAssign ts AS ts
                    │                   └── Scan orders [ts, k, a, b]
                    └── Project ts, k, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, a, b]
====
# the first row from a value on, with another order behind it
SELECT o.a, (SELECT p.a FROM orders AS p WHERE p.k = o.k AND p.b >= o.u ORDER BY p.b, p.ts DESC LIMIT 1) AS x FROM orders AS o
---
Sink to the client [a, x]
└── Project a, value AS x
    └── Join left on k = key1 AND u = key2
        ├── Project k, a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b, u]
        └── Project outer1 AS key1, outer2 AS key2, a AS value
            └── PartitionTop row_number <= 1 per outer1, outer2 by b, ts DESC
                └── Project ts, a, b, outer1, outer2
                    └── Join inner on outer1 = k AND b >= outer2
                        ├── Project k AS outer1, u AS outer2
                        │   └── Global Aggregate by k, u
                        │       └── Local Aggregate by k, u
                        │           └── Project k, u
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, k, a, b, u]
                        └── Project ts, k, a, b
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a, x]
└── Project a, value AS x
    └── Join left on k = key1 AND u = key2
        ├── Project k, a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b, u]
        └── Project outer1 AS key1, outer2 AS key2, a AS value
            └── Project ts, a, b, outer1, outer2
                └── NearestJoin inner on outer1 = k, the first b >= outer2
                    ├── Project k AS outer1, u AS outer2
                    │   └── Global Aggregate by k, u
                    │       └── Local Aggregate by k, u
                    │           └── Project k, u
                    │               └── WatermarkAssign ts AS ts
                    │                   └── Scan orders [ts, k, a, b, u]
                    └── Project ts, k, a, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, a, b, u]
====
# another order first: the nearest value is not the first row
SELECT o.a, (SELECT p.a FROM orders AS p WHERE p.k = o.k AND p.b >= o.u ORDER BY p.ts DESC LIMIT 1) AS x FROM orders AS o
---
Sink to the client [a, x]
└── Project a, value AS x
    └── Join left on k = key1 AND u = key2
        ├── Project k, a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b, u]
        └── Project outer1 AS key1, outer2 AS key2, a AS value
            └── PartitionTop row_number <= 1 per outer1, outer2 by ts DESC
                └── Project ts, a, outer1, outer2
                    └── Join inner on outer1 = k AND b >= outer2
                        ├── Project k AS outer1, u AS outer2
                        │   └── Global Aggregate by k, u
                        │       └── Local Aggregate by k, u
                        │           └── Project k, u
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, k, a, b, u]
                        └── Project ts, k, a, b
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k, a, b, u]
(unchanged)
====
# two rows of each value
SELECT o.a, x.a FROM orders AS o, LATERAL (SELECT p.a FROM orders AS p WHERE p.k = o.k AND p.b >= o.u ORDER BY p.b LIMIT 2) AS x
---
Sink to the client [a, a]
└── Project a, item1 AS a
    └── Join inner on k = outer1 AND u = outer2
        ├── Project k, a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b, u]
        └── Project outer1, outer2, a AS item1
            └── PartitionTop row_number <= 2 per outer1, outer2 by b
                └── Project a, b, outer1, outer2
                    └── Join inner on outer1 = k AND b >= outer2
                        ├── Project k AS outer1, u AS outer2
                        │   └── Global Aggregate by k, u
                        │       └── Local Aggregate by k, u
                        │           └── Project k, u
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, k, a, b, u]
                        └── Project k, a, b
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k, a, b, u]
(unchanged)
====
# texts are in no order of integers
SELECT o.a, p.b FROM orders AS o ASOF JOIN orders AS p ON o.u = p.u AND o.k >= p.k
---
Sink to the client [a, b]
└── Project a, b
    └── Join inner on k = outer1 AND u = outer2
        ├── Project k, a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b, u]
        └── Project b, outer1, outer2
            └── PartitionTop row_number <= 1 per outer1, outer2 by k DESC
                └── Project k, b, outer1, outer2
                    └── Join inner on outer2 = u AND outer1 >= k
                        ├── Project k AS outer1, u AS outer2
                        │   └── Global Aggregate by k, u
                        │       └── Local Aggregate by k, u
                        │           └── Project k, u
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, k, a, b, u]
                        └── Project k, b, u
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k, a, b, u]
(unchanged)
