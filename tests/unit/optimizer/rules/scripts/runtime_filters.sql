# a stream is pruned by the keys of a bounded table, whichever side it stands on
SELECT o.a, p.name FROM orders AS o JOIN people AS p ON o.k = p.k
---
Sink to the client [a, name]
└── Project a, name
    └── Join inner on k = k
        ├── Scan orders [k, a]
        └── Scan people [k, name]
=>
Sink to the client [a, name]
└── Project a, name
    └── Join inner on k = k, runtime filter on k of orders
        ├── Scan orders [k, a]
        └── Scan people [k, name]
====
# the other way round
SELECT o.a, p.name FROM people AS p JOIN orders AS o ON o.k = p.k
---
Sink to the client [a, name]
└── Project a, name
    └── Join inner on k = k
        ├── Scan people [k, name]
        └── Scan orders [k, a]
=>
Sink to the client [a, name]
└── Project a, name
    └── Join inner on k = k, runtime filter on k of orders
        ├── Scan people [k, name]
        └── Scan orders [k, a]
====
# IN is a semi join
SELECT a FROM orders WHERE k IN (SELECT k FROM people)
---
Sink to the client [a]
└── Project a
    └── Join semi on k = k
        ├── Scan orders [k, a]
        └── Scan people [k]
=>
Sink to the client [a]
└── Project a
    └── Join semi on k = k, runtime filter on k of orders
        ├── Scan orders [k, a]
        └── Scan people [k]
====
# rows without a partner are seen: nothing may be pruned
SELECT o.a, p.name FROM orders AS o LEFT JOIN people AS p ON o.k = p.k
---
Sink to the client [a, name]
└── Project a, name
    └── Join left on k = k
        ├── Scan orders [k, a]
        └── Scan people [k, name]
(unchanged)
====
# those of the loaded side are seen anyway
SELECT o.a, p.name FROM orders AS o RIGHT JOIN people AS p ON o.k = p.k
---
Sink to the client [a, name]
└── Project a, name
    └── Join right on k = k
        ├── Scan orders [k, a]
        └── Scan people [k, name]
=>
Sink to the client [a, name]
└── Project a, name
    └── Join right on k = k, runtime filter on k of orders
        ├── Scan orders [k, a]
        └── Scan people [k, name]
====
# NOT IN gives rows without a partner
SELECT a FROM orders WHERE NOT EXISTS (SELECT * FROM people WHERE people.k = orders.k)
---
Sink to the client [a]
└── Project a
    └── Join anti on k = k
        ├── Scan orders [k, a]
        └── Scan people [k]
(unchanged)
====
# no side is loaded first
SELECT o.a, p.name FROM orders AS o JOIN arrivals AS p ON o.k = p.k
---
Sink to the client [a, name]
└── Project a, name
    └── Join inner on k = k
        ├── Scan orders [k, a]
        └── Scan arrivals [k, name]
(unchanged)
====
# rows of an aggregate are few
SELECT o.n, p.name FROM (SELECT k, COUNT(*) AS n FROM orders GROUP BY k) AS o JOIN people AS p ON o.k = p.k
---
Sink to the client [n, name]
└── Project n, name
    └── Join inner on k = k
        ├── Project k, count(*) AS n
        │   └── Global Aggregate by k: sum0(count(*)) AS count(*)
        │       └── Local Aggregate by k: count(*)
        │           └── Scan orders [k]
        └── Scan people [k, name]
(unchanged)
====
# of two loaded sides each prunes
SELECT o.a, p.name, a.name FROM orders AS o JOIN people AS p ON o.k = p.k JOIN people AS a ON p.age = a.age
---
Sink to the client [a, name, name]
└── Project a, name#1 AS name, name#3 AS name
    └── Join inner on age = age
        ├── Project a, name, age
        │   └── Join inner on k = k
        │       ├── Project k, a
        │       │   └── WatermarkAssign ts AS ts
        │       │       └── Scan orders [ts, k, a]
        │       └── Scan people [k, name, age]
        └── Project name, age
            └── Scan people [k, name, age]
=>
Sink to the client [a, name, name]
└── Project a, name#1 AS name, name#3 AS name
    └── Join inner on age = age, runtime filter on age of orders, people
        ├── Project a, name, age
        │   └── Join inner on k = k, runtime filter on k of orders
        │       ├── Project k, a
        │       │   └── WatermarkAssign ts AS ts
        │       │       └── Scan orders [ts, k, a]
        │       └── Scan people [k, name, age]
        └── Project name, age
            └── Scan people [k, name, age]
