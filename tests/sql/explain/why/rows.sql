# all rows of a group, with file and row
EXPLAIN WHY ROW (customer = 7) FOR SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
orders | path /orders/b.csv, row 0 | 1 | {"id":4,"customer":7,"amount":30,"ts":"2024-01-01 00:00:14.000000"}
====
# a condition on an aggregate: its groups are computed first
EXPLAIN WHY ROW (total = 12) FOR SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING SUM(amount) > 3
---
orders | path /orders/a.csv, row 2 | 1 | {"id":3,"customer":8,"amount":5,"ts":"2024-01-01 00:00:12.000000"}
orders | path /orders/b.csv, row 2 | 1 | {"id":6,"customer":8,"amount":7,"ts":"2024-01-01 00:00:02.000000"}
====
# both sides of a pair; LIMIT is per table
EXPLAIN WHY ROW (name = 'Ada', amount > 10) LIMIT 1 FOR SELECT o.id, name, amount FROM orders o JOIN customers c ON o.customer = c.id
---
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
customers | path /customers/c.csv, row 0 | 1 | {"id":7,"name":"Ada"}
-- 2 rows of the result meet these conditions; orders: 1 more input row
====
# a row without a partner is made by itself alone
EXPLAIN WHY ROW (customer = 9) FOR SELECT o.customer, name FROM orders o LEFT JOIN customers c ON o.customer = c.id
---
orders | path /orders/b.csv, row 1 | 1 | {"id":5,"customer":9,"amount":50,"ts":"2024-01-01 00:00:15.000000"}
====
# EXISTS: the row and its partners
EXPLAIN WHY ROW (id = 1) FOR SELECT id FROM orders WHERE customer IN (SELECT id FROM customers)
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
customers | path /customers/c.csv, row 0 | 1 | {"id":7,"name":"Ada"}
====
# NOT EXISTS: there are no partners
EXPLAIN WHY ROW (id = 5) FOR SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer)
---
orders | path /orders/b.csv, row 1 | 1 | {"id":5,"customer":9,"amount":50,"ts":"2024-01-01 00:00:15.000000"}
====
# both tables of a UNION; equal rows are one
EXPLAIN WHY ROW (id = 7) FOR SELECT customer AS id FROM orders UNION SELECT id FROM customers
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
orders | path /orders/b.csv, row 0 | 1 | {"id":4,"customer":7,"amount":30,"ts":"2024-01-01 00:00:14.000000"}
customers | path /customers/c.csv, row 0 | 1 | {"id":7,"name":"Ada"}
====
# a rank is made by the rows above it
EXPLAIN WHY ROW (rn = 2, customer = 7) FOR SELECT * FROM (SELECT id, customer, amount, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) AS rn FROM orders) WHERE rn <= 2
---
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
orders | path /orders/b.csv, row 0 | 1 | {"id":4,"customer":7,"amount":30,"ts":"2024-01-01 00:00:14.000000"}
====
# Top-N
EXPLAIN WHY ROW (id = 6) FOR SELECT id, amount FROM orders ORDER BY amount LIMIT 2
---
orders | path /orders/a.csv, row 2 | 1 | {"id":3,"customer":8,"amount":5,"ts":"2024-01-01 00:00:12.000000"}
orders | path /orders/b.csv, row 2 | 1 | {"id":6,"customer":8,"amount":7,"ts":"2024-01-01 00:00:02.000000"}
====
# the frame of the row
EXPLAIN WHY ROW (id = 2) FOR SELECT id, SUM(amount) OVER (PARTITION BY customer ORDER BY ts) AS s FROM orders
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
====
# a frame of a distance, and LAG
EXPLAIN WHY ROW (id = 4) FOR SELECT id, LAG(amount) OVER (PARTITION BY customer ORDER BY ts) AS l, COUNT(*) OVER (PARTITION BY customer ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND CURRENT ROW) AS n FROM orders
---
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
orders | path /orders/b.csv, row 0 | 1 | {"id":4,"customer":7,"amount":30,"ts":"2024-01-01 00:00:14.000000"}
====
# a window
EXPLAIN WHY ROW (window_start = TIMESTAMP '2024-01-01 00:00:00', customer = 8) FOR SELECT window_start, customer, SUM(amount) AS total FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY window_start, window_end, customer
---
orders | path /orders/b.csv, row 2 | 1 | {"id":6,"customer":8,"amount":7,"ts":"2024-01-01 00:00:02.000000"}
====
# sessions: two of them have this total
EXPLAIN WHY ROW (total = 30) FOR SELECT customer, SUM(amount) AS total FROM SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '5' SECONDS) GROUP BY window_start, window_end, customer
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
orders | path /orders/b.csv, row 0 | 1 | {"id":4,"customer":7,"amount":30,"ts":"2024-01-01 00:00:14.000000"}
-- 2 rows of the result meet these conditions
====
# the rows of the match
EXPLAIN WHY ROW (customer = 7) FOR SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY customer ORDER BY ts MEASURES A.amount AS a, B.amount AS b PATTERN (A B) DEFINE B AS B.amount > A.amount)
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
====
# a view
EXPLAIN WHY ROW (id = 2) OF VIEW large
---
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
====
# a materialized view is a table; OF VIEW reads its query
EXPLAIN WHY ROW (customer = 8) FOR SELECT * FROM totals
---
totals |  | 1 | {"customer":8,"total":12}
-- EXPLAIN WHY ROW (..) OF VIEW totals has the rows that made rows of the view
====
# OF VIEW reads the tables below a materialized view
EXPLAIN WHY ROW (customer = 8) OF VIEW totals
---
orders | path /orders/a.csv, row 2 | 1 | {"id":3,"customer":8,"amount":5,"ts":"2024-01-01 00:00:12.000000"}
orders | path /orders/b.csv, row 2 | 1 | {"id":6,"customer":8,"amount":7,"ts":"2024-01-01 00:00:02.000000"}
====
# a stream has dropped the late row
SET 'execution.runtime-mode' = 'streaming'; EXPLAIN WHY ROW (customer = 7) FOR SELECT window_start, customer, SUM(amount) AS total FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY window_start, window_end, customer
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
orders | path /orders/b.csv, row 0 | 1 | {"id":4,"customer":7,"amount":30,"ts":"2024-01-01 00:00:14.000000"}
-- 2 rows of the result meet these conditions
====
# rows of VALUES have no position
EXPLAIN WHY ROW (k = 1) FOR SELECT k, COUNT(*) AS n FROM (VALUES (1, 'a'), (1, 'a'), (2, 'b')) AS v (k, s) GROUP BY k
---
VALUES |  | 2 | {"col1":1,"col2":"a"}
====
# no such row
EXPLAIN WHY ROW (id = 99) FOR SELECT id FROM orders
---
error[WHY-7104]: no row of the result meets these conditions
  1 | EXPLAIN WHY ROW (id = 99) FOR SELECT id FROM orders
    |                  ^^^^^^^
hint: EXPLAIN WHY NOT ROW with the same conditions says what let it go
====
# no such column
EXPLAIN WHY ROW (ident = 1) FOR SELECT id FROM orders
---
error[SQL-1042]: column "ident" does not exist
  1 | EXPLAIN WHY ROW (ident = 1) FOR SELECT id FROM orders
    |                  ^^^^^
hint: there is id; a text is written in single quotes: 'ident'
====
# no condition
EXPLAIN WHY ROW (id) FOR SELECT id FROM orders
---
error[SQL-1103]: ROW takes a BOOLEAN, this is INT
  1 | EXPLAIN WHY ROW (id) FOR SELECT id FROM orders
    |                  ^^
hint: compare it with something
====
# a table that is no view
EXPLAIN WHY ROW (id = 2) OF VIEW orders
---
error[SQL-1303]: "orders" is no view
  1 | EXPLAIN WHY ROW (id = 2) OF VIEW orders
    |                                  ^^^^^^
hint: write FOR SELECT * FROM orders
====
# a table without end
EXPLAIN WHY ROW (id = 2) FOR SELECT id FROM endless
---
error[WHY-7103]: table endless never ends, so its rows cannot be read again
  1 | EXPLAIN WHY ROW (id = 2) FOR SELECT id FROM endless
    |                              ^^^^^^^^^^^^^^^^^^^^^^
hint: give it an end: FROM endless /*+ OPTIONS('number-of-rows' = '1000') */
====
# no number of rows
EXPLAIN WHY ROW (id = 1) LIMIT 0 FOR SELECT id FROM orders
---
error[SQL-1001]: LIMIT takes a whole number of rows
  1 | EXPLAIN WHY ROW (id = 1) LIMIT 0 FOR SELECT id FROM orders
    |                                ^
====
# a word is missing
EXPLAIN WHY ROW (id = 1) SELECT id FROM orders
---
error[SQL-1001]: unexpected "SELECT": FOR, LIMIT or OF was expected
  1 | EXPLAIN WHY ROW (id = 1) SELECT id FROM orders
    |                          ^^^^^^
hint: a semicolon ends the statement before it
====
# a recursive query
EXPLAIN WHY ROW (n = 2) FOR WITH RECURSIVE r (n) AS (SELECT id FROM orders UNION SELECT n + 1 FROM r WHERE n < 8) SELECT n FROM r
---
orders | path /orders/a.csv, row 0 | 1 | {"id":1,"customer":7,"amount":10,"ts":"2024-01-01 00:00:01.000000"}
orders | path /orders/a.csv, row 1 | 1 | {"id":2,"customer":7,"amount":20,"ts":"2024-01-01 00:00:05.000000"}
====
# constants
EXPLAIN WHY ROW (x = 2) FOR SELECT explode(ARRAY[1, 2, 3]) AS x
---
-- the query makes the row of constants: no input row is in it
