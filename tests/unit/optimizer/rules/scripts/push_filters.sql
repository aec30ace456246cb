# through a projection, with what it computes, into a scan whose connector promises to filter
SELECT n FROM (SELECT UPPER(k) AS n, id FROM people) WHERE n = 'X' AND id > 2
---
Sink to the client [n]
└── Project n
    └── Filter (n = 'X') AND (id > 2)
        └── Project upper(k) AS n, id
            └── Scan people [k, name, age, id]
=>
Sink to the client [n]
└── Project n
    └── Project upper(k) AS n, id
        └── Scan people [k, name, age, id] where (upper(k) = 'X') AND (id > 2)
====
# a filter stays above the watermark: the rows it drops still move event time
SELECT a FROM orders WHERE a > 3
---
Sink to the client [a]
└── Project a
    └── Filter a > 3
        └── WatermarkAssign ts AS ts
            └── Scan orders [ts, k, a, b, u]
(unchanged)
====
# through a window function, if it does not read the window
SELECT k, a, window_end FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE) WHERE a > 3 AND window_end > TIMESTAMP '2024-01-01 00:02:00'
---
Sink to the client [k, a, window_end]
└── Project k, a, window_end
    └── Filter (a > 3) AND (window_end > TIMESTAMP(6) '2024-01-01 00:02:00')
        └── WindowTable tumble(ts, 1 min)
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k, a, window_end]
└── Project k, a, window_end
    └── Filter window_end > TIMESTAMP(6) '2024-01-01 00:02:00'
        └── WindowTable tumble(ts, 1 min)
            └── Filter a > 3
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
====
# below session windows only on the columns sessions are kept by
SELECT * FROM (SELECT k, COUNT(*) AS n, window_start FROM SESSION(TABLE orders PARTITION BY k, DESCRIPTOR(ts), INTERVAL '9' SECOND) GROUP BY k, window_start, window_end) WHERE k = 'x' AND n > 1
---
Sink to the client [k, n, window_start]
└── Filter (k = 'x') AND (n > 1)
    └── Project k, count(*) AS n, window_start
        └── WindowAggregate attached(window_start, window_end) by k: count(*)
            └── WindowTable session(ts, 9 s, per k)
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k, n, window_start]
└── Project k, count(*) AS n, window_start
    └── Filter count(*) > 1
        └── WindowAggregate attached(window_start, window_end) by k: count(*)
            └── WindowTable session(ts, 9 s, per k)
                └── Filter k = 'x'
                    └── WatermarkAssign ts AS ts
                        └── Scan orders [ts, k, a, b, u]
====
# into every branch of a union
SELECT * FROM (SELECT k, id FROM people UNION ALL SELECT k, id FROM arrivals) WHERE id < 3
---
Sink to the client [k, id]
└── Filter id < 3
    └── Union 2 inputs
        ├── Project k, id
        │   └── Scan people [k, name, age, id]
        └── Project k, id
            └── Scan arrivals [k, name, age, id]
=>
Sink to the client [k, id]
└── Union 2 inputs
    ├── Project k, id
    │   └── Scan people [k, name, age, id] where id < 3
    └── Project k, id
        └── Scan arrivals [k, name, age, id] where id < 3
====
# WHERE over an inner join: each part to its side
SELECT o.a, p.name FROM orders AS o JOIN people AS p ON o.k = p.k WHERE o.a > 1 AND p.age > 30 AND o.a < p.age
---
Sink to the client [a, name]
└── Project a, name
    └── Filter ((a > 1) AND (age > 30)) AND (a < age)
        └── Join inner on k = k
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
=>
Sink to the client [a, name]
└── Project a, name
    └── Filter a < age
        └── Join inner on k = k
            ├── Filter a > 1
            │   └── WatermarkAssign ts AS ts
            │       └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id] where age > 30
====
# WHERE over a left join: the left part goes, the right part must see the padded rows
SELECT o.a, p.name FROM orders AS o LEFT JOIN people AS p ON o.k = p.k WHERE o.a > 1 AND p.age IS NULL
---
Sink to the client [a, name]
└── Project a, name
    └── Filter (a > 1) AND is_null(age)
        └── Join left on k = k
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
=>
Sink to the client [a, name]
└── Project a, name
    └── Filter is_null(age)
        └── Join left on k = k
            ├── Filter a > 1
            │   └── WatermarkAssign ts AS ts
            │       └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
====
# ON of a left join: the right part goes, the left part only decides about matches
SELECT o.a, p.name FROM orders AS o LEFT JOIN people AS p ON o.k = p.k AND o.a > 1 AND p.age > 30
---
Sink to the client [a, name]
└── Project a, name
    └── Join left on k = k AND (a > 1) AND (age > 30)
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, a, b, u]
        └── Scan people [k, name, age, id]
=>
Sink to the client [a, name]
└── Project a, name
    └── Join left on k = k AND a > 1
        ├── WatermarkAssign ts AS ts
        │   └── Scan orders [ts, k, a, b, u]
        └── Scan people [k, name, age, id] where age > 30
====
# a full join takes nothing
SELECT o.a, p.name FROM orders AS o FULL JOIN people AS p ON o.k = p.k AND p.age > 30 WHERE o.a > 1
---
Sink to the client [a, name]
└── Project a, name
    └── Filter a > 1
        └── Join full on k = k AND age > 30
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
(unchanged)
====
# HAVING on group keys drops whole groups early, on aggregates it cannot
SELECT k, COUNT(*) AS n FROM people GROUP BY k HAVING k <> 'x' AND COUNT(*) > 1
---
Sink to the client [k, n]
└── Project k, count(*) AS n
    └── Filter (k <> 'x') AND (count(*) > 1)
        └── Aggregate by k: count(*)
            └── Scan people [k, name, age, id]
=>
Sink to the client [k, n]
└── Project k, count(*) AS n
    └── Filter count(*) > 1
        └── Aggregate by k: count(*)
            └── Scan people [k, name, age, id] where k <> 'x'
====
# a global aggregate gives a row even over no rows, so nothing passes it
SELECT * FROM (SELECT COUNT(*) AS n FROM people) WHERE n > 100
---
Sink to the client [n]
└── Filter n > 100
    └── Project count(*) AS n
        └── Aggregate: count(*)
            └── Scan people [k, name, age, id]
=>
Sink to the client [n]
└── Project count(*) AS n
    └── Filter count(*) > 100
        └── Aggregate: count(*)
            └── Scan people [k, name, age, id]
====
# what may raise does not meet rows the join would have dropped
SELECT o.a, p.name FROM orders AS o JOIN people AS p ON o.k = p.k WHERE 100 DIV p.age > 3 AND p.id > 1
---
Sink to the client [a, name]
└── Project a, name
    └── Filter ((100 DIV CAST(age AS BIGINT)) > 3) AND (id > 1)
        └── Join inner on k = k
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id]
=>
Sink to the client [a, name]
└── Project a, name
    └── Filter (100 DIV CAST(age AS BIGINT)) > 3
        └── Join inner on k = k
            ├── WatermarkAssign ts AS ts
            │   └── Scan orders [ts, k, a, b, u]
            └── Scan people [k, name, age, id] where id > 1
====
# nor rows an earlier filter drops
SELECT id FROM (SELECT id, age FROM people WHERE age > 0) WHERE 100 DIV age > 3
---
Sink to the client [id]
└── Project id
    └── Filter (100 DIV CAST(age AS BIGINT)) > 3
        └── Project id, age
            └── Filter age > 0
                └── Scan people [k, name, age, id]
=>
Sink to the client [id]
└── Project id
    └── Project id, age
        └── Filter (100 DIV CAST(age AS BIGINT)) > 3
            └── Scan people [k, name, age, id] where age > 0
====
# not below LIMIT
SELECT id FROM (SELECT id FROM people ORDER BY id LIMIT 3) WHERE id > 1
---
Sink to the client [id]
└── Filter id > 1
    └── TopN 3 by id
        └── Project id
            └── Scan people [k, name, age, id]
(unchanged)
====
# what reads the clock is not moved
SELECT id FROM (SELECT id, CAST(NOW() AS STRING) AS r FROM people) WHERE r <> 'never' AND id > 3
---
Sink to the client [id]
└── Project id
    └── Filter (r <> 'never') AND (id > 3)
        └── Project id, CAST(current_timestamp() AS STRING) AS r
            └── Scan people [k, name, age, id]
=>
Sink to the client [id]
└── Project id
    └── Filter r <> 'never'
        └── Project id, CAST(current_timestamp() AS STRING) AS r
            └── Scan people [k, name, age, id] where id > 3
====
# below OVER, if it reads the partition alone: then whole partitions go
SELECT id FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY age) AS r FROM people) WHERE k = 'x' AND id > 2
---
Sink to the client [id]
└── Project id
    └── Filter (k = 'x') AND (id > 2)
        └── Project k, name, age, id, over1 AS r
            └── Over per k by age: rank() AS over1
                └── Scan people [k, name, age, id]
=>
Sink to the client [id]
└── Project id
    └── Project k, name, age, id, over1 AS r
        └── Filter id > 2
            └── Over per k by age: rank() AS over1
                └── Scan people [k, name, age, id] where k = 'x'
====
# not below OVER, if it reads anything else
SELECT id FROM (SELECT *, SUM(age) OVER () AS s FROM people) WHERE k = 'x' AND s > 2
---
Sink to the client [id]
└── Project id
    └── Filter (k = 'x') AND (s > 2)
        └── Project k, name, age, id, over1 AS s
            └── Over: sum(age) AS over1
                └── Scan people [k, name, age, id]
=>
Sink to the client [id]
└── Project id
    └── Project k, name, age, id, over1 AS s
        └── Filter (k = 'x') AND (over1 > 2)
            └── Over: sum(age) AS over1
                └── Scan people [k, name, age, id]
====
# past a table function what its input decides; the array itself is not kept
SELECT id, e FROM (SELECT id, name, array(age) AS a FROM people) AS t, UNNEST(a) WITH ORDINALITY AS u(e, n) WHERE id > 2 AND e > 3
---
Sink to the client [id, e]
└── Project id, e
    └── Filter (id > 2) AND (e > 3)
        └── Unnest unnest(a) AS e, ordinality, keeping id, name, a
            └── Project id, name, array(age) AS a
                └── Scan people [k, name, age, id]
=>
Sink to the client [id, e]
└── Project id, e
    └── Filter e > 3
        └── Unnest unnest(a) AS e, ordinality, keeping id, name, a
            └── Project id, name, array(age) AS a
                └── Scan people [k, name, age, id] where id > 2
