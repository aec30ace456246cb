# TRUE and FALSE in AND and OR
SELECT a FROM orders WHERE (a > 1 AND TRUE) OR FALSE
---
Sink to the client [a]
└── Project a
    └── Filter ((a > 1) AND TRUE) OR FALSE
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a]
└── Project a
    └── Filter a > 1
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
====
# a filter that is never true leaves no rows
SELECT a FROM orders WHERE a > 1 AND FALSE
---
Sink to the client [a]
└── Project a
    └── Filter (a > 1) AND FALSE
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a]
└── Project a
    └── Values 0 rows [ts, k, a, b, u]
====
# NULL is not TRUE
SELECT a FROM orders WHERE a > 1 AND CAST(NULL AS BOOLEAN)
---
Sink to the client [a]
└── Project a
    └── Filter (a > 1) AND NULL
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a]
└── Project a
    └── Values 0 rows [ts, k, a, b, u]
====
# x = x is true only where x cannot be NULL: b is NOT NULL, a may be
SELECT a FROM orders WHERE b = b AND a = a
---
Sink to the client [a]
└── Project a
    └── Filter (b = b) AND (a = a)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a]
└── Project a
    └── Filter a = a
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
====
# NOT NULL columns are never NULL; those of an outer join's other side may be
SELECT o.a FROM orders AS o LEFT JOIN people AS p ON o.k = p.k WHERE o.b IS NOT NULL AND p.id IS NULL
---
Sink to the client [a]
└── Project a
    └── Filter is_not_null(b) AND is_null(id)
        └── Join left on k = k
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
=>
Sink to the client [a]
└── Project a
    └── Filter is_null(id)
        └── Join left on k = k
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
====
# negations cancel
SELECT a FROM orders WHERE NOT (NOT (a > 1)) AND NOT (a = 2) AND NOT (k IS NULL)
---
Sink to the client [a]
└── Project a
    └── Filter (not(not((a > 1))) AND not((a = 2))) AND not(is_null(k))
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a]
└── Project a
    └── Filter ((a > 1) AND (a <> 2)) AND is_not_null(k)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
====
# filters that follow each other become one, what is said twice is said once
SELECT a FROM (SELECT * FROM orders WHERE a > 1) WHERE a > 1 AND b > 2
---
Sink to the client [a]
└── Project a
    └── Filter (a > 1) AND (b > 2)
        └── Filter a > 1
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [a]
└── Project a
    └── Filter (a > 1) AND (b > 2)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
====
# inside an outer join's condition
SELECT o.a, p.name FROM orders AS o LEFT JOIN people AS p ON o.k = p.k AND (p.age > 30 OR TRUE)
---
Sink to the client [a, name]
└── Project a, name
    └── Join left on k = k AND (age > 30) OR TRUE
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, a, b, u]
        └── Scan people [k, name, age, id]
=>
Sink to the client [a, name]
└── Project a, name
    └── Join left on k = k
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, a, b, u]
        └── Scan people [k, name, age, id]
====
# nothing to simplify: a condition that may be NULL is neither true nor false
SELECT a FROM orders WHERE a > 1 AND (b > 2 OR k = 'x') AND u <> 3
---
Sink to the client [a]
└── Project a
    └── Filter ((a > 1) AND ((b > 2) OR (k = 'x'))) AND (u <> 3)
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
(unchanged)
