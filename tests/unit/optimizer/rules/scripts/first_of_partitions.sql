# the first two of each key; the rank is read above
SELECT k, age, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY age DESC) AS n FROM people) WHERE n <= 2
---
Sink to the client [k, age, n]
└── Project k, age, n
    └── Project k, name, age, id, over1 AS n
        └── Filter over1 <= 2
            └── Over per k by age DESC: row_number() AS over1
                └── Scan people [k, name, age, id]
=>
Sink to the client [k, age, n]
└── Project k, age, n
    └── Project k, name, age, id, over1 AS n
        └── PartitionTop row_number AS over1 <= 2 per k by age DESC
            └── Scan people [k, name, age, id]
====
# the constant on the left, below, and a condition on the key that has gone below already
SELECT id FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY name) AS n FROM people) WHERE 3 > n AND k = 'x'
---
Sink to the client [id]
└── Project id
    └── Project k, name, age, id, over1 AS n
        └── Filter 3 > over1
            └── Over per k by name: rank() AS over1
                └── Scan people [k, name, age, id] where k = 'x'
=>
Sink to the client [id]
└── Project id
    └── Project k, name, age, id, over1 AS n
        └── PartitionTop rank AS over1 <= 2 per k by name
            └── Scan people [k, name, age, id] where k = 'x'
====
# one rank of several: the first two are kept, and the second of them is picked above
SELECT id FROM (SELECT *, DENSE_RANK() OVER (PARTITION BY k ORDER BY name) AS n FROM people) WHERE n = 2 AND age > 20
---
Sink to the client [id]
└── Project id
    └── Project k, name, age, id, over1 AS n
        └── Filter (over1 = 2) AND (age > 20)
            └── Over per k by name: dense_rank() AS over1
                └── Scan people [k, name, age, id]
=>
Sink to the client [id]
└── Project id
    └── Project k, name, age, id, over1 AS n
        └── Filter (over1 = 2) AND (age > 20)
            └── PartitionTop dense_rank AS over1 <= 2 per k by name
                └── Scan people [k, name, age, id]
====
# no bound from above
SELECT id FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY name) AS n FROM people) WHERE n > 2
---
Sink to the client [id]
└── Project id
    └── Project k, name, age, id, over1 AS n
        └── Filter over1 > 2
            └── Over per k by name: rank() AS over1
                └── Scan people [k, name, age, id]
(unchanged)
====
# a rank among other calls is computed with them
SELECT id FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY name) AS n, LAG(age) OVER (PARTITION BY k ORDER BY name) AS l FROM people) WHERE n <= 2 AND l IS NULL
---
Sink to the client [id]
└── Project id
    └── Project k, name, age, id, over1 AS n, over2 AS l
        └── Filter (over1 <= 2) AND is_null(over2)
            └── Over per k by name: rank() AS over1, lag(age, 1, NULL) AS over2
                └── Scan people [k, name, age, id]
(unchanged)
====
# in time ranks are final when they are given
SELECT k, a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM orders) WHERE n = 1
---
Sink to the client [k, a]
└── Project k, a
    └── Project ts, k, a, b, u, over1 AS n
        └── Filter over1 = 1
            └── Over in time per k by ts: row_number() AS over1
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
(unchanged)
====
# the last row of each key
SELECT k, a FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM orders) WHERE n = 1
---
Sink to the client [k, a]
└── Project k, a
    └── Project ts, k, a, b, u, over1 AS n
        └── Filter over1 = 1
            └── Over per k by ts DESC: row_number() AS over1
                └── WatermarkAssign ts AS ts
                    └── Scan orders [ts, k, a, b, u]
=>
Sink to the client [k, a]
└── Project k, a
    └── Project ts, k, a, b, u, over1 AS n
        └── PartitionTop row_number AS over1 <= 1 per k by ts DESC
            └── WatermarkAssign ts AS ts
                └── Scan orders [ts, k, a, b, u]
====
# nothing is ranked 0
SELECT k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY age) AS n FROM people) WHERE n < 1
---
Sink to the client [k]
└── Project k
    └── Project k, name, age, id, over1 AS n
        └── Filter over1 < 1
            └── Over per k by age: row_number() AS over1
                └── Scan people [k, name, age, id]
(unchanged)
