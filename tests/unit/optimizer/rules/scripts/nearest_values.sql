# by texts, in the order of their bytes
SELECT o.a, p.b FROM orders AS o ASOF JOIN orders AS p ON o.a = p.a AND o.k >= p.k
---
Sink to the client [a, b]
└── Project a, b
    └── Join inner on k = outer1 AND a = outer2
        ├── Project k, a
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project b, outer1, outer2
            └── PartitionTop row_number <= 1 per outer1, outer2 by k DESC
                └── Project k, b, outer1, outer2
                    └── Join inner on outer2 = a AND outer1 >= k
                        ├── Project k AS outer1, a AS outer2
                        │   └── Global Aggregate by k, a
                        │       └── Local Aggregate by k, a
                        │           └── Project k, a
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, k, a, b]
                        └── Project k, a, b
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k, a, b]
=>
Sink to the client [a, b]
└── Project a, b
    └── Join inner on k = outer1 AND a = outer2
        ├── Project k, a
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project b, outer1, outer2
            └── Project k, b, outer1, outer2
                └── NearestJoin inner on outer2 = a, the last k <= outer1
                    ├── Project k AS outer1, a AS outer2
                    │   └── Global Aggregate by k, a
                    │       └── Local Aggregate by k, a
                    │           └── Project k, a
                    │               └── WatermarkAssign ts AS ts
                    │                   └── Scan orders [ts, k, a, b]
                    └── Project k, a, b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, a, b]
====
# values of unlike types, and a key that is cast
SELECT o.a, p.id FROM orders AS o ASOF LEFT JOIN people AS p ON o.a = p.id AND o.u <= p.age
---
Sink to the client [a, id]
└── Project a, id
    └── Join left on a = outer1 AND u = outer2
        ├── Project a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, a, u]
        └── Project id, outer1, outer2
            └── PartitionTop row_number <= 1 per outer1, outer2 by CAST(age AS BIGINT)
                └── Project age, id, outer1, outer2
                    └── Join inner on key1 = id AND outer2 <= CAST(age AS BIGINT)
                        ├── Project a AS outer1, u AS outer2, CAST(a AS BIGINT) AS key1
                        │   └── Global Aggregate by a, u
                        │       └── Local Aggregate by a, u
                        │           └── Project a, u
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, a, u]
                        └── Scan people [age, id]
=>
Sink to the client [a, id]
└── Project a, id
    └── Join left on a = outer1 AND u = outer2
        ├── Project a, u
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, a, u]
        └── Project id, outer1, outer2
            └── Project age, id, outer1, outer2
                └── NearestJoin inner on key1 = id, the first nearest2 >= outer2
                    ├── Project a AS outer1, u AS outer2, CAST(a AS BIGINT) AS key1
                    │   └── Global Aggregate by a, u
                    │       └── Local Aggregate by a, u
                    │           └── Project a, u
                    │               └── WatermarkAssign ts AS ts
                    │                   └── Scan orders [ts, a, u]
                    └── Project age, id, CAST(age AS BIGINT) AS nearest2
                        └── Scan people [age, id]
====
# an expression of each side
SELECT o.a, p.b FROM orders AS o ASOF JOIN orders AS p ON o.k = p.k AND o.ts - INTERVAL '1' MINUTE > p.ts + INTERVAL '1' SECOND
---
Sink to the client [a, b]
└── Project a, b
    └── Join inner on ts = outer1 AND k = outer2
        ├── Project ts, k, a
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project b, outer1, outer2
            └── PartitionTop row_number <= 1 per outer1, outer2 by ts + INTERVAL '0 00:00:01' DAY TO SECOND DESC
                └── Project ts, b, outer1, outer2
                    └── Join inner on outer2 = k AND (outer1 - INTERVAL '0 00:01:00' DAY TO SECOND) > (ts + INTERVAL '0 00:00:01' DAY TO SECOND)
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
                └── NearestJoin inner on outer2 = k, the last nearest3 < nearest2
                    ├── Project outer1, outer2, outer1 - INTERVAL '0 00:01:00' DAY TO SECOND AS nearest2
                    │   └── Project ts AS outer1, k AS outer2
                    │       └── Global Aggregate by ts, k
                    │           └── Local Aggregate by ts, k
                    │               └── Project ts, k
                    │                   └── WatermarkAssign ts AS ts
                    │                       └── Scan orders [ts, k, a, b]
                    └── Project ts, k, b, ts + INTERVAL '0 00:00:01' DAY TO SECOND AS nearest3
                        └── Project ts, k, b
                            └── WatermarkAssign ts AS ts
                                └── Scan orders [ts, k, a, b]
====
# without keys: all rows have one
SELECT o.a, p.b FROM orders AS o ASOF JOIN orders AS p ON o.b > p.b
---
Sink to the client [a, b]
└── Project a, b#2 AS b
    └── Join inner on b = outer1
        ├── Project a, b
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, a, b]
        └── PartitionTop row_number <= 1 per outer1 by b DESC
            └── Project b, outer1
                └── Join inner on outer1 > b
                    ├── Project b AS outer1
                    │   └── Global Aggregate by b
                    │       └── Local Aggregate by b
                    │           └── Project b
                    │               └── WatermarkAssign ts AS ts
                    │                   └── Scan orders [ts, a, b]
                    └── Project b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, a, b]
=>
Sink to the client [a, b]
└── Project a, b#2 AS b
    └── Join inner on b = outer1
        ├── Project a, b
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, a, b]
        └── Project b, outer1
            └── NearestJoin inner on nearest1 = nearest1, the last b < outer1
                ├── Project outer1, 0 AS nearest1
                │   └── Project b AS outer1
                │       └── Global Aggregate by b
                │           └── Local Aggregate by b
                │               └── Project b
                │                   └── WatermarkAssign ts AS ts
                │                       └── Scan orders [ts, a, b]
                └── Project b, 0 AS nearest1
                    └── Project b
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, a, b]
====
# the last text before that of the row, with another order behind it
SELECT o.a, (SELECT p.a FROM orders AS p WHERE p.b = o.b AND p.k < o.k ORDER BY p.k DESC NULLS LAST, p.ts DESC LIMIT 1) AS x FROM orders AS o
---
Sink to the client [a, x]
└── Project a, value AS x
    └── Join left on k = key1 AND b = key2
        ├── Project k, a, b
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project outer1 AS key1, outer2 AS key2, a AS value
            └── PartitionTop row_number <= 1 per outer1, outer2 by k DESC, ts DESC
                └── Project ts, k, a, outer1, outer2
                    └── Join inner on outer2 = b AND k < outer1
                        ├── Project k AS outer1, b AS outer2
                        │   └── Global Aggregate by k, b
                        │       └── Local Aggregate by k, b
                        │           └── Project k, b
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, k, a, b]
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, a, b]
=>
Sink to the client [a, x]
└── Project a, value AS x
    └── Join left on k = key1 AND b = key2
        ├── Project k, a, b
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project outer1 AS key1, outer2 AS key2, a AS value
            └── Project ts, k, a, outer1, outer2
                └── NearestJoin inner on outer2 = b, the last k < outer1
                    ├── Project k AS outer1, b AS outer2
                    │   └── Global Aggregate by k, b
                    │       └── Local Aggregate by k, b
                    │           └── Project k, b
                    │               └── WatermarkAssign ts AS ts
                    │                   └── Scan orders [ts, k, a, b]
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k, a, b]
====
# what nearest_rows has made stays
SELECT o.a, p.b FROM orders AS o ASOF JOIN orders AS p ON o.k = p.k AND o.ts > p.ts
---
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
(unchanged)
====
# order by another column than the one compared: a Top-1
SELECT o.a, (SELECT p.a FROM orders AS p WHERE p.b = o.b AND p.k < o.k ORDER BY p.ts DESC NULLS LAST LIMIT 1) AS x FROM orders AS o
---
Sink to the client [a, x]
└── Project a, value AS x
    └── Join left on k = key1 AND b = key2
        ├── Project k, a, b
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a, b]
        └── Project outer1 AS key1, outer2 AS key2, a AS value
            └── PartitionTop row_number <= 1 per outer1, outer2 by ts DESC
                └── Project ts, a, outer1, outer2
                    └── Join inner on outer2 = b AND k < outer1
                        ├── Project k AS outer1, b AS outer2
                        │   └── Global Aggregate by k, b
                        │       └── Local Aggregate by k, b
                        │           └── Project k, b
                        │               └── WatermarkAssign ts AS ts
                        │                   └── Scan orders [ts, k, a, b]
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, a, b]
(unchanged)
