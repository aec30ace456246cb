# the scan reads what is asked for
SELECT name FROM people WHERE age > 30
---
Sink to the client [name]
└── Project name
    └── Scan people [k, name, age, id] where age > 30
=>
Sink to the client [name]
└── Project name
    └── Scan people [name, age] where age > 30
====
# event time is kept: the watermark needs it
SELECT k FROM orders
---
Sink to the client [k]
└── Project k
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k]
└── Project k
    └── WatermarkAssign ts AS ts
        └── Scan orders [ts, k]
====
# counting rows reads the cheapest column
SELECT COUNT(*) AS n FROM people
---
Sink to the client [n]
└── Project count(*) AS n
    └── Aggregate: count(*)
        └── Scan people [k, name, age, id]
=>
Sink to the client [n]
└── Project count(*) AS n
    └── Aggregate: count(*)
        └── Scan people [age]
====
# joins keep keys and what is read above
SELECT p.name FROM orders AS o JOIN people AS p ON o.k = p.k AND o.a < p.age
---
Sink to the client [name]
└── Project name
    └── Join inner on k = k AND a < age
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, a, b, u]
        └── Scan people [k, name, age, id]
=>
Sink to the client [name]
└── Project name
    └── Join inner on k = k AND a < age
        ├── Project k, a
        │   └── WatermarkAssign ts AS ts
        │       └── Scan orders [ts, k, a]
        └── Scan people [k, name, age]
====
# aggregates nobody reads go, keys stay
SELECT k, n FROM (SELECT k, u, COUNT(*) AS n, SUM(a) AS s FROM orders GROUP BY k, u)
---
Sink to the client [k, n]
└── Project k, n
    └── Project k, u, count(*) AS n, sum(a) AS s
        └── Aggregate by k, u: count(*), sum(a)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k, n]
└── Project k, n
    └── Project k, count(*) AS n
        └── Aggregate by k, u: count(*)
            └── Project k, u
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, u]
====
# a global aggregate nobody reads keeps one to stand for its row
SELECT 1 AS one FROM (SELECT COUNT(*) AS n, SUM(a) AS s FROM orders)
---
Sink to the client [one]
└── Project 1 AS one
    └── Project count(*) AS n, sum(a) AS s
        └── Aggregate: count(*), sum(a)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [one]
└── Project 1 AS one
    └── Project count(*) AS n
        └── Aggregate: count(*)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts]
====
# branches of a union are cut alike
SELECT id FROM (SELECT k, id, name FROM people UNION ALL SELECT k, id, name FROM arrivals)
---
Sink to the client [id]
└── Project id
    └── Union 2 inputs
        ├── Project k, id, name
        │   └── Scan people [k, name, age, id]
        └── Project k, id, name
            └── Scan arrivals [k, name, age, id]
=>
Sink to the client [id]
└── Project id
    └── Union 2 inputs
        ├── Project id
        │   └── Scan people [id]
        └── Project id
            └── Scan arrivals [id]
====
# TopN breaks ties by all columns and keeps them
SELECT name FROM (SELECT name, age, id, k FROM people ORDER BY age LIMIT 4)
---
Sink to the client [name]
└── Project name
    └── TopN 4 by age
        └── Project name, age, id, k
            └── Scan people [k, name, age, id]
(unchanged)
====
# windows keep their time, sessions their keys
SELECT n FROM (SELECT k, COUNT(*) AS n FROM SESSION(TABLE orders PARTITION BY k, DESCRIPTOR(ts), INTERVAL '9' SECOND) GROUP BY k, window_start, window_end)
---
Sink to the client [n]
└── Project n
    └── Project k, count(*) AS n
        └── WindowAggregate session(ts, 9 s, per k) by k: count(*)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [n]
└── Project n
    └── Project count(*) AS n
        └── WindowAggregate session(ts, 9 s, per k) by k: count(*)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k]
====
# calls nobody reads go; an aggregate over peers needs no other column
SELECT k, s FROM (SELECT *, SUM(age) OVER (PARTITION BY k) AS s, RANK() OVER (PARTITION BY name ORDER BY id) AS r FROM people)
---
Sink to the client [k, s]
└── Project k, s
    └── Project k, name, age, id, over1 AS s, over2 AS r
        └── Over per name by id: rank() AS over2
            └── Over per k: sum(age) AS over1
                └── Scan people [k, name, age, id]
=>
Sink to the client [k, s]
└── Project k, s
    └── Project k, over1 AS s
        └── Over per k: sum(age) AS over1
            └── Scan people [k, age]
====
# what numbers rows reads all columns, for ties
SELECT k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY age) AS n FROM people)
---
Sink to the client [k, n]
└── Project k, n
    └── Project k, name, age, id, over1 AS n
        └── Over per k by age: row_number() AS over1
            └── Scan people [k, name, age, id]
=>
Sink to the client [k, n]
└── Project k, n
    └── Project k, over1 AS n
        └── Over per k by age: row_number() AS over1
            └── Scan people [k, name, age, id]
====
# a rank nobody reads is not kept up to date
SELECT k FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY k ORDER BY age) AS n FROM people) WHERE n <= 2
---
Sink to the client [k]
└── Project k
    └── Project k, name, age, id, over1 AS n
        └── PartitionTop dense_rank AS over1 <= 2 per k by age
            └── Scan people [k, name, age, id]
=>
Sink to the client [k]
└── Project k
    └── Project k
        └── PartitionTop dense_rank <= 2 per k by age
            └── Scan people [k, age]
====
# past a table function what its input decides; the array itself is not kept
SELECT id, e FROM (SELECT id, name, array(age) AS a FROM people) AS t, UNNEST(a) WITH ORDINALITY AS u(e, n) WHERE id > 2 AND e > 3
---
Sink to the client [id, e]
└── Project id, e
    └── Filter e > 3
        └── Unnest unnest(a) AS e, ordinality, keeping id, name, a
            └── Project id, name, array(age) AS a
                └── Scan people [k, name, age, id] where id > 2
=>
Sink to the client [id, e]
└── Project id, e
    └── Filter e > 3
        └── Unnest unnest(a) AS e, keeping id
            └── Project id, array(age) AS a
                └── Scan people [age, id] where id > 2
