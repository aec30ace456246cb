# the rows that a row of a recursion derives from: of its beginning, and of each step
EXPLAIN WHY ROW (n = 8) FOR WITH RECURSIVE r (n) AS (SELECT id FROM orders WHERE id > 4 UNION SELECT n + 1 FROM r WHERE n < 8) SELECT n FROM r
---
orders | path /orders/b.csv, row 1 | 1 | {"id":5,"customer":9,"amount":50,"ts":"2024-01-01 00:00:15.000000"}
orders | path /orders/b.csv, row 2 | 1 | {"id":6,"customer":8,"amount":7,"ts":"2024-01-01 00:00:02.000000"}
====
# a path: the edges that any way from 2 to 1 has
EXPLAIN WHY ROW (a = 2, b = 1) FOR WITH RECURSIVE r AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges AS e ON r.b = e.a) SELECT a, b FROM r
---
edges | path /edges/e.csv, row 0 | 1 | {"a":1,"b":2}
edges | path /edges/e.csv, row 1 | 1 | {"a":2,"b":3}
edges | path /edges/e.csv, row 2 | 1 | {"a":3,"b":1}
====
# not over a cycle
EXPLAIN WHY ROW (a = 5) FOR WITH RECURSIVE r AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges AS e ON r.b = e.a) SELECT a, b FROM r
---
edges | path /edges/e.csv, row 4 | 1 | {"a":5,"b":6}
====
# a group over a recursion
EXPLAIN WHY ROW (n = 1) FOR WITH RECURSIVE r AS (SELECT a, b FROM edges WHERE a = 5 UNION ALL SELECT r.a, e.b FROM r JOIN edges AS e ON r.b = e.a) SELECT a, COUNT(*) AS n FROM r GROUP BY a
---
edges | path /edges/e.csv, row 4 | 1 | {"a":5,"b":6}
====
EXPLAIN WHY NOT ROW (a = 6) FOR WITH RECURSIVE r AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges AS e ON r.b = e.a) SELECT a, b FROM r
---
1 | RecursiveQuery UNION, until an iteration has no new row, at most 10,000: Project a#0 AS a, b#3 AS b <- Join inner on b = a <- WorkTable | 0 | no row that the recursion begins with or derives has a = 6
-- no row that the recursion begins with or derives has a = 6
====
# a filter above a recursion
EXPLAIN WHY NOT ROW (a = 5) FOR WITH RECURSIVE r AS (SELECT a, b FROM edges UNION SELECT r.a, e.b FROM r JOIN edges AS e ON r.b = e.a) SELECT a, b FROM r WHERE b < 6
---
1 | RecursiveQuery UNION, until an iteration has no new row, at most 10,000: Project a#0 AS a, b#3 AS b <- Join inner on b = a <- WorkTable | 1 | 
2 | Filter b < 6 | 0 | the filter b < 6 drops the only candidate: b is 6
-- the filter b < 6 drops the only candidate: b is 6
====
# all rows of the partition of a function, whatever it keeps of them
EXPLAIN WHY ROW (customer = 7, total = 60) FOR SELECT customer, n, total FROM Totals(TABLE (SELECT customer, CAST(amount AS BIGINT) AS v FROM orders) PARTITION BY customer)
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
orders | path /orders/b.csv, row 0 | 1 | {"id":4,"customer":7,"amount":30,"ts":"2024-01-01 00:00:14.000000"}
====
# the function runs to find the partition
EXPLAIN WHY ROW (total = 12) FOR SELECT n, total FROM Totals(TABLE (SELECT customer, CAST(amount AS BIGINT) AS v FROM orders) PARTITION BY customer)
---
orders | path /orders/a.csv, row 2 | 1 | {"id":3,"customer":8,"amount":5,"ts":"2024-01-01 00:00:12.000000"}
orders | path /orders/b.csv, row 2 | 1 | {"id":6,"customer":8,"amount":7,"ts":"2024-01-01 00:00:02.000000"}
====
# two tables
EXPLAIN WHY ROW (mine = 4) FOR SELECT other, mine FROM Pairs(sent => TABLE (SELECT CAST(id AS BIGINT) AS id, customer FROM orders) PARTITION BY customer, paid => TABLE (SELECT CAST(id + 100 AS BIGINT) AS id, id AS customer FROM customers) PARTITION BY customer)
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
orders | path /orders/b.csv, row 0 | 1 | {"id":4,"customer":7,"amount":30,"ts":"2024-01-01 00:00:14.000000"}
customers | path /customers/c.csv, row 0 | 1 | {"id":7,"name":"Ada"}
====
# row by row: the row itself
EXPLAIN WHY ROW (high = TRUE, id = 5) FOR SELECT id, high FROM Marked(TABLE (SELECT id, CAST(amount AS BIGINT) AS v FROM orders), threshold => 15)
---
orders | path /orders/b.csv, row 1 | 1 | {"id":5,"customer":9,"amount":50,"ts":"2024-01-01 00:00:15.000000"}
====
EXPLAIN WHY NOT ROW (customer = 77) FOR SELECT customer, total FROM Totals(TABLE (SELECT customer, CAST(amount AS BIGINT) AS v FROM orders) PARTITION BY customer)
---
1 | Scan orders | 0 | no row of orders has customer = 77
2 | ProcessTable Totals(input per customer) | 0 | 
-- no row of orders has customer = 77
====
EXPLAIN WHY NOT ROW (customer = 7, total = 1) FOR SELECT customer, total FROM Totals(TABLE (SELECT customer, CAST(amount AS BIGINT) AS v FROM orders) PARTITION BY customer)
---
1 | Scan orders | 3 | 
2 | ProcessTable Totals(input per customer) | 1 | 
3 | Row with total = 1 | 0 | the row is there, but not with total = 1: total is 60
-- the row is there, but not with total = 1: total is 60
