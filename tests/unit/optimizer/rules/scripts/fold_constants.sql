# arithmetic of integers is done once
SELECT a FROM orders WHERE a > 1 + 2 * 3
---
Sink to the client [a]
└── Project a
    └── Filter a > (1 + (2 * 3))
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a]
└── Project a
    └── Filter a > 7
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
====
# casts of constants that always have a value; divisions that would fail stay to fail at run time
SELECT a, CAST(7 AS BIGINT) AS seven, 7 DIV 2 AS half, 1 % 0 AS never FROM orders
---
Sink to the client [a, seven, half, never]
└── Project a, CAST(7 AS BIGINT) AS seven, 7 DIV 2 AS half, 1 % 0 AS never
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a, seven, half, never]
└── Project a, 7 AS seven, 3 AS half, 1 % 0 AS never
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a, b, u]
====
# an overflow is not folded
SELECT 2147483647 + 1 AS never, a FROM orders
---
Sink to the client [never, a]
└── Project 2147483647 + 1 AS never, a
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a, b, u]
(unchanged)
====
# NULL in, NULL out
SELECT a = NULL AS nothing, 1 + CAST(NULL AS INT) AS none FROM orders
---
Sink to the client [nothing, none]
└── Project a = NULL AS nothing, 1 + CAST(NULL AS INT) AS none
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [nothing, none]
└── Project NULL AS nothing, NULL AS none
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a, b, u]
====
# branches with constant conditions are taken or dropped
SELECT CASE WHEN FALSE THEN 1 WHEN a = 1 THEN 2 WHEN TRUE THEN 3 ELSE 4 END AS c, CASE WHEN 1 = 1 THEN k END AS d FROM orders
---
Sink to the client [c, d]
└── Project CASE WHEN FALSE THEN 1 WHEN (a = 1) THEN 2 WHEN TRUE THEN 3 ELSE 4 END AS c, CASE WHEN (1 = 1) THEN k ELSE NULL END AS d
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [c, d]
└── Project CASE WHEN (a = 1) THEN 2 ELSE 3 END AS c, k AS d
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a, b, u]
====
# comparing constants: also dates and texts
SELECT k FROM orders WHERE 'a' < 'b' AND DATE '2024-01-01' < DATE '2024-01-02' AND a > 0
---
Sink to the client [k]
└── Project k
    └── Filter (('a' < 'b') AND (DATE '2024-01-01' < DATE '2024-01-02')) AND (a > 0)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k]
└── Project k
    └── Filter (TRUE AND TRUE) AND (a > 0)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
