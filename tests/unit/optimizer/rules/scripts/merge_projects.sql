# what is read once is computed in place
SELECT y + 1 AS z FROM (SELECT a + b AS y, k FROM orders) 
---
Sink to the client [z]
└── Project y + 1 AS z
    └── Project CAST(a AS BIGINT) + b AS y
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, a, b]
=>
Sink to the client [z]
└── Project (CAST(a AS BIGINT) + b) + 1 AS z
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, a, b]
====
# what would be computed twice stays below
SELECT y + 1 AS z, y + 2 AS w FROM (SELECT a + b AS y FROM orders)
---
Sink to the client [z, w]
└── Project y + 1 AS z, y + 2 AS w
    └── Project CAST(a AS BIGINT) + b AS y
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, a, b]
(unchanged)
====
# columns may be read as often as they like
SELECT y AS z, y AS w FROM (SELECT a AS y FROM orders)
---
Sink to the client [z, w]
└── Project y AS z, y AS w
    └── Project a AS y
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, a]
=>
Sink to the client [z, w]
└── Project a AS z, a AS w
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, a]
====
# the clock is read once
SELECT r <> 'never' AS z FROM (SELECT CAST(NOW() AS STRING) AS r FROM orders)
---
Sink to the client [z]
└── Project r <> 'never' AS z
    └── Project CAST(current_timestamp() AS STRING) AS r
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts]
(unchanged)
