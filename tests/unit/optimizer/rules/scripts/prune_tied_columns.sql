# the last row of each key, with an order that leaves no ties
SELECT k, a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC, a) AS n FROM orders) WHERE n = 1
---
Sink to the client [k, a]
└── Project k, a
    └── Project k, a
        └── PartitionTop row_number <= 1 per k by ts DESC, a
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k, a]
└── Project k, a
    └── Project k, a
        └── PartitionTop row_number <= 1 per k by ts DESC, a
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a]
====
# the whole row is read: nothing to prune
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM orders) WHERE n <= 2
---
Sink to the client [ts, k, a, b, u, n]
└── Project ts, k, a, b, u, over1 AS n
    └── PartitionTop row_number AS over1 <= 2 per k by ts DESC
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
(unchanged)
====
# LAG reads its argument
SELECT k, LAG(u) OVER (PARTITION BY k ORDER BY a, u) AS before FROM orders
---
Sink to the client [k, before]
└── Project k, over1 AS before
    └── Over per k by a, u: lag(u, 1, NULL) AS over1
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k, before]
└── Project k, over1 AS before
    └── Over per k by a, u: lag(u, 1, NULL) AS over1
        └── Project k, a, u
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, u]
====
# RANK has no ties to break: prune_columns has pruned it
SELECT k, a FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY a) AS n FROM orders) WHERE n = 1
---
Sink to the client [k, a]
└── Project k, a
    └── Project k, a
        └── PartitionTop rank <= 1 per k by a
            └── Project k, a
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a]
(unchanged)
====
# below a join: the rows of the join are narrower, and so are its inputs
SELECT id, a FROM (
  SELECT p.id, o.a, ROW_NUMBER() OVER (PARTITION BY p.id ORDER BY o.b DESC, o.a) AS n
  FROM orders AS o JOIN people AS p ON o.k = p.k
) WHERE n = 1
---
Sink to the client [id, a]
└── Project id, a
    └── Project id, a
        └── PartitionTop row_number <= 1 per id by b DESC, a
            └── Join inner on k = k
                ├── WatermarkAssign ts AS ts
                │   └── Scan orders [ts, k, a, b, u]
                └── Scan people [k, name, age, id]
=>
Sink to the client [id, a]
└── Project id, a
    └── Project id, a
        └── PartitionTop row_number <= 1 per id by b DESC, a
            └── Project a, b, id
                └── Join inner on k = k
                    ├── Project k, a, b
                    │   └── WatermarkAssign ts AS ts
                    │       └── Scan orders [ts, k, a, b]
                    └── Scan people [k, id]
====
# each branch of a statement is pruned by what it reads itself
SELECT a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC, a) AS n FROM orders) WHERE n = 1
UNION ALL
SELECT b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC, b) AS n FROM orders) WHERE n = 1
---
Sink to the client [a]
└── Union 2 inputs
    ├── Project CAST(a AS BIGINT) AS a
    │   └── Project a
    │       └── Project a
    │           └── PartitionTop row_number <= 1 per k by ts DESC, a
    │               └── WatermarkAssign ts AS ts
    │                   └── Scan orders [ts, k, a, b, u]
    └── Project b
        └── Project b
            └── PartitionTop row_number <= 1 per k by ts DESC, b
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a]
└── Union 2 inputs
    ├── Project CAST(a AS BIGINT) AS a
    │   └── Project a
    │       └── Project a
    │           └── PartitionTop row_number <= 1 per k by ts DESC, a
    │               └── WatermarkAssign ts AS ts
    │                   └── Scan orders [ts, k, a]
    └── Project b
        └── Project b
            └── PartitionTop row_number <= 1 per k by ts DESC, b
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, b]
