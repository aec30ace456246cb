# grouping sets read what all of them need once
SELECT k, u, count(*) AS n FROM orders GROUP BY GROUPING SETS ((k), (u))
---
Sink to the client [k, u, n]
└── Project k, u, count(*) AS n
    └── Union 2 inputs
        ├── Project k, NULL AS u, count(*)
        │   └── Aggregate by k: count(*)
        │       └── Project k
        │           └── WatermarkAssign ts AS ts
        │               └── Scan orders [ts, k]
        └── Project NULL AS k, u, count(*)
            └── Aggregate by u: count(*)
                └── Project u
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, u]
=>
Sink to the client [k, u, n]
└── Project k, u, count(*) AS n
    └── Union 2 inputs
        ├── Project k, NULL AS u, count(*)
        │   └── Aggregate by k: count(*)
        │       └── Project k
        │           └── Project ts, k
        │               └── WatermarkAssign ts AS ts
        │                   └── Scan orders [ts, k, u]
        └── Project NULL AS k, u, count(*)
            └── Aggregate by u: count(*)
                └── Project u
                    └── Project ts, u
                        └── WatermarkAssign ts AS ts
                            └── Scan orders [ts, k, u]
====
# different columns of one table in two branches
SELECT b FROM orders WHERE a > 1 UNION ALL SELECT u FROM orders
---
Sink to the client [b]
└── Union 2 inputs
    ├── Project b
    │   └── Filter a > 1
    │       └── WatermarkAssign ts AS ts
    │           └── Scan orders [ts, a, b]
    └── Project u
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, u]
=>
Sink to the client [b]
└── Union 2 inputs
    ├── Project b
    │   └── Filter a > 1
    │       └── Project ts, a, b
    │           └── WatermarkAssign ts AS ts
    │               └── Scan orders [ts, a, b, u]
    └── Project u
        └── Project ts, u
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, a, b, u]
====
SELECT o.k, (SELECT sum(b) FROM orders) AS total FROM orders AS o WHERE o.u IN (SELECT a FROM orders)
---
Sink to the client [k, total]
└── Project k, sum(b) AS total
    └── Join cross
        ├── Project k
        │   └── Join semi on u = key1
        │       ├── Project k, u
        │       │   └── WatermarkAssign ts AS ts
        │       │       └── Scan orders [ts, k, u]
        │       └── Project CAST(a AS BIGINT) AS key1
        │           └── WatermarkAssign ts AS ts
        │               └── Scan orders [ts, a]
        └── Aggregate: sum(b)
            └── Project b
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, b]
=>
Sink to the client [k, total]
└── Project k, sum(b) AS total
    └── Join cross
        ├── Project k
        │   └── Join semi on u = key1
        │       ├── Project k, u
        │       │   └── Project ts, k, u
        │       │       └── WatermarkAssign ts AS ts
        │       │           └── Scan orders [ts, k, a, b, u]
        │       └── Project CAST(a AS BIGINT) AS key1
        │           └── Project ts, a
        │               └── WatermarkAssign ts AS ts
        │                   └── Scan orders [ts, k, a, b, u]
        └── Aggregate: sum(b)
            └── Project b
                └── Project ts, b
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k, a, b, u]
====
# the same columns need no widening
SELECT k FROM orders UNION ALL SELECT k FROM orders WHERE k = 'x'
---
Sink to the client [k]
└── Union 2 inputs
    ├── Project k
    │   └── WatermarkAssign ts AS ts
    │       └── Scan orders [ts, k]
    └── Project k
        └── Filter k = 'x'
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k]
(unchanged)
====
# bounded tables too
SELECT p.name FROM people AS p JOIN people AS q ON p.id = q.age
---
Sink to the client [name]
└── Project name
    └── Join inner on id = key1
        ├── Scan people [name, id]
        └── Project CAST(age AS BIGINT) AS key1
            └── Scan people [age]
=>
Sink to the client [name]
└── Project name
    └── Join inner on id = key1
        ├── Project name, id
        │   └── Scan people [name, age, id]
        └── Project CAST(age AS BIGINT) AS key1
            └── Project age
                └── Scan people [name, age, id]
