# the sides change places, the columns do not
SELECT o.a, p.name, p.id FROM orders AS o RIGHT JOIN people AS p ON o.k = p.k AND o.a > p.age
---
Sink to the client [a, name, id]
└── Project a, name, id
    └── Join right on k = k AND a > age
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, a, b, u]
        └── Scan people [k, name, age, id]
=>
Sink to the client [a, name, id]
└── Project a, name, id
    └── Project ts, k#5 AS k, a, b, u, k#0 AS k, name, age, id
        └── Join left on k = k AND a > age
            ├── Scan people [k, name, age, id]
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
====
# other joins stay
SELECT o.a, p.name FROM orders AS o LEFT JOIN people AS p ON o.k = p.k
---
Sink to the client [a, name]
└── Project a, name
    └── Join left on k = k
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, a, b, u]
        └── Scan people [k, name, age, id]
(unchanged)
