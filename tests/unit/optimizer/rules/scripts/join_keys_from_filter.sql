# a comma join with an equality is an equi-join
SELECT o.a, p.name FROM orders AS o, people AS p WHERE o.k = p.k AND o.a < p.age
---
Sink to the client [a, name]
└── Project a, name
    └── Filter (k#1 = k#5) AND (a < age)
        └── Join cross
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
=>
Sink to the client [a, name]
└── Project a, name
    └── Filter a < age
        └── Join inner on k = k
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
====
# three tables
SELECT o.a, p.name, q.age FROM orders AS o, people AS p, arrivals AS q WHERE o.k = p.k AND q.id = p.id
---
Sink to the client [a, name, age]
└── Project a, name#6 AS name, age#11 AS age
    └── Filter id#12 = id#8
        └── Join cross
            ├── Filter k#1 = k#5
            │   └── Join cross
            │       ├── WatermarkAssign ts AS ts
            │       │   └── Scan orders [ts, k, a, b, u]
            │       └── Scan people [k, name, age, id]
            └── Scan arrivals [k, name, age, id]
=>
Sink to the client [a, name, age]
└── Project a, name#6 AS name, age#11 AS age
    └── Join inner on id = id
        ├── Join inner on k = k
        │   ├── WatermarkAssign ts AS ts
        │   │   └── Scan orders [ts, k, a, b, u]
        │   └── Scan people [k, name, age, id]
        └── Scan arrivals [k, name, age, id]
====
# operands that are no columns are computed below the join
SELECT o.a, p.name FROM orders AS o, people AS p WHERE UPPER(o.k) = UPPER(p.k)
---
Sink to the client [a, name]
└── Project a, name
    └── Filter upper(k#1) = upper(k#5)
        └── Join cross
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
=>
Sink to the client [a, name]
└── Project a, name
    └── Project ts, k#1 AS k, a, b, u, k#6 AS k, name, age, id
        └── Join inner on key_0 = key_0
            ├── Project ts, k, a, b, u, upper(k) AS key_0
            │   └── WatermarkAssign ts AS ts
            │       └── Scan orders [ts, k, a, b, u]
            └── Project k, name, age, id, upper(k) AS key_0
                └── Scan people [k, name, age, id]
====
# not for outer joins: WHERE comes after padding
SELECT o.a, p.name FROM orders AS o LEFT JOIN people AS p ON o.k = p.k WHERE o.b = p.id
---
Sink to the client [a, name]
└── Project a, name
    └── Filter b = id
        └── Join left on k = k
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
(unchanged)
