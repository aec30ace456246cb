# the key of the groups is that of the table
INSERT INTO totals SELECT k, COUNT(*) FROM orders GROUP BY k
---
Sink totals [k, n]
└── Project k, count(*) AS n
    └── Global Aggregate by k: sum0(count(*)) AS count(*)
        └── Local Aggregate by k: count(*)
            └── Scan orders [k]
=>
Sink totals [k, n]
└── Project k, count(*) AS n
    └── Global Aggregate by k: sum0(count(*)) AS count(*), upserts
        └── Local Aggregate by k: count(*)
            └── Scan orders [k]
====
# columns may be computed, and in another order, as long as the key is a column
INSERT INTO totals (n, k) SELECT SUM(b) + 1, k FROM orders GROUP BY k
---
Sink totals [k, n]
└── Project k, sum(b) + 1 AS n
    └── Global Aggregate by k: sum(sum(b)) AS sum(b)
        └── Local Aggregate by k: sum(b)
            └── Scan orders [k, b]
=>
Sink totals [k, n]
└── Project k, sum(b) + 1 AS n
    └── Global Aggregate by k: sum(sum(b)) AS sum(b), upserts
        └── Local Aggregate by k: sum(b)
            └── Scan orders [k, b]
====
# the table has another key than the groups: an update may move a row to another key
INSERT INTO totals SELECT k, MAX(u) FROM orders GROUP BY k, a
---
Sink totals [k, n]
└── Project k, max(u) AS n
    └── Global Aggregate by k, a: max(max(u)) AS max(u)
        └── Local Aggregate by k, a: max(u)
            └── Scan orders [k, a, u]
(unchanged)
====
# a key that is computed may be that of two groups
INSERT INTO totals SELECT UPPER(k), COUNT(*) FROM orders GROUP BY k
---
Sink totals [k, n]
└── Project upper(k) AS k, count(*) AS n
    └── Global Aggregate by k: sum0(count(*)) AS count(*)
        └── Local Aggregate by k: count(*)
            └── Scan orders [k]
(unchanged)
====
# HAVING takes back what it let through
INSERT INTO totals SELECT k, COUNT(*) FROM orders GROUP BY k HAVING COUNT(*) > 3
---
Sink totals [k, n]
└── Project k, count(*) AS n
    └── Filter count(*) > 3
        └── Global Aggregate by k: sum0(count(*)) AS count(*)
            └── Local Aggregate by k: count(*)
                └── Scan orders [k]
(unchanged)
====
# the lower of two aggregates is read by the upper one
INSERT INTO forgotten SELECT 'all', COUNT(*) FROM (SELECT k, MAX(b) AS best FROM orders GROUP BY k) GROUP BY best
---
Sink forgotten [k, n]
└── Project 'all' AS k, count(*) AS n
    └── Aggregate by best: count(*)
        └── Project max(b) AS best
            └── Global Aggregate by k: max(max(b)) AS max(b)
                └── Local Aggregate by k: max(b)
                    └── Scan orders [k, b]
=>
Sink forgotten [k, n]
└── Project 'all' AS k, count(*) AS n
    └── Aggregate by best: count(*), upserts
        └── Project max(b) AS best
            └── Global Aggregate by k: max(max(b)) AS max(b)
                └── Local Aggregate by k: max(b)
                    └── Scan orders [k, b]
====
# print shows both rows of an update
INSERT INTO shown SELECT k, COUNT(*) FROM orders GROUP BY k
---
Sink shown [k, n]
└── Project k, count(*) AS n
    └── Global Aggregate by k: sum0(count(*)) AS count(*)
        └── Local Aggregate by k: count(*)
            └── Scan orders [k]
(unchanged)
====
# files of changes name each row's kind, which an old row decides
INSERT INTO files SELECT k, COUNT(*) FROM orders GROUP BY k
---
Sink files [k, n]
└── Project k, count(*) AS n
    └── Global Aggregate by k: sum0(count(*)) AS count(*)
        └── Local Aggregate by k: count(*)
            └── Scan orders [k]
(unchanged)
====
# the client shows both rows of an update
SELECT k, COUNT(*) AS n FROM orders GROUP BY k
---
Sink to the client [k, n]
└── Project k, count(*) AS n
    └── Global Aggregate by k: sum0(count(*)) AS count(*)
        └── Local Aggregate by k: count(*)
            └── Scan orders [k]
(unchanged)
====
# DISTINCT of inserts is never updated
INSERT INTO forgotten SELECT DISTINCT k, b FROM orders
---
Sink forgotten [k, n]
└── Project k, b AS n
    └── Global Aggregate by k, b
        └── Local Aggregate by k, b
            └── Scan orders [k, b]
(unchanged)
