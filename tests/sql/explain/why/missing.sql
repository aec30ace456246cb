# no input row
EXPLAIN WHY NOT ROW (customer = 77) FOR SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer
---
1 | Scan orders | 0 | no row of orders has customer = 77
2 | Aggregate by customer: sum(amount) | 0 | 
-- no row of orders has customer = 77
====
# which part of WHERE
EXPLAIN WHY NOT ROW (id = 3) FOR SELECT id FROM orders WHERE id < 50 AND amount > 10
---
1 | Scan orders | 1 | 
2 | Filter id < 50 | 1 | 
3 | Filter amount > 10 | 0 | the filter amount > 10 drops the only candidate: amount is 5
-- the filter amount > 10 drops the only candidate: amount is 5
====
# HAVING
EXPLAIN WHY NOT ROW (customer = 8) FOR SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer HAVING SUM(amount) > 30
---
1 | Scan orders | 2 | 
2 | Aggregate by customer: sum(amount) | 1 | 
3 | Filter sum(amount) > 30 | 0 | HAVING sum(amount) > 30 drops the only candidate: sum(amount) is 12
-- HAVING sum(amount) > 30 drops the only candidate: sum(amount) is 12
====
# the group is there with another value
EXPLAIN WHY NOT ROW (customer = 7, total = 61) FOR SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer
---
1 | Scan orders | 3 | 
2 | Aggregate by customer: sum(amount) | 1 | 
3 | Row with sum(amount) = 61 | 0 | the group is there, but not with sum(amount) = 61: sum(amount) is 60
-- the group is there, but not with sum(amount) = 61: sum(amount) is 60
====
# no partner
EXPLAIN WHY NOT ROW (id = 5) FOR SELECT o.id, name FROM orders o JOIN customers c ON o.customer = c.id
---
1 | Scan orders | 1 | 
2 | Scan customers | 2 | 
3 | Join inner on customer = id | 0 | no partner on the right for the only candidate: Join inner on customer = id
-- no partner on the right for the only candidate: Join inner on customer = id
====
# a condition on the key holds on the other side too
EXPLAIN WHY NOT ROW (customer = 9) FOR SELECT o.customer, name FROM orders o JOIN customers c ON o.customer = c.id
---
1 | Scan orders | 1 | 
2 | Scan customers | 0 | no row of customers has id = 9
3 | Join inner on customer = id | 0 | 
-- no row of customers has id = 9
====
# a partner that NOT EXISTS excludes
EXPLAIN WHY NOT ROW (id = 1) FOR SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer)
---
1 | Scan orders | 1 | 
2 | Scan customers | 2 | 
3 | Join anti on customer = id | 0 | excluded by a partner on the right: the only candidate
-- excluded by a partner on the right: the only candidate
====
# the rank is too low
EXPLAIN WHY NOT ROW (id = 1) FOR SELECT * FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) AS rn FROM orders) WHERE rn <= 2
---
1 | Scan orders | 1 | 
2 | Over per customer by amount DESC: row_number() AS over1 | 1 | 
3 | Filter rn <= 2 | 0 | the filter rn <= 2 drops the only candidate: rn is 3
-- the filter rn <= 2 drops the only candidate: rn is 3
====
# Top-N
EXPLAIN WHY NOT ROW (id = 1) FOR SELECT id, amount FROM orders ORDER BY amount LIMIT 2
---
1 | Scan orders | 1 | 
2 | TopN 2 by amount | 0 | not among the first 2: the rank of the only candidate is 3
-- not among the first 2: the rank of the only candidate is 3
====
# another window
EXPLAIN WHY NOT ROW (customer = 9, window_start = TIMESTAMP '2024-01-01 00:00:00') FOR SELECT window_start, customer, SUM(amount) AS total FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY window_start, window_end, customer
---
1 | Scan orders | 1 | 
2 | WindowTable tumble(ts, 10 s) | 1 | 
3 | Row with CAST(window_start AS TIMESTAMP(6)) = TIMESTAMP(6) '2024-01-01 00:00:00' | 0 | no candidate falls in a window with CAST(window_start AS TIMESTAMP(6)) = TIMESTAMP(6) '2024-01-01 00:00:00': window_start is 2024-01-01 00:00:10
4 | WindowAggregate attached(window_start, window_end) by customer: sum(amount) | 0 | 
-- no candidate falls in a window with CAST(window_start AS TIMESTAMP(6)) = TIMESTAMP(6) '2024-01-01 00:00:00': window_start is 2024-01-01 00:00:10
====
# late: only a stream drops such rows
SET 'execution.runtime-mode' = 'streaming'; EXPLAIN WHY NOT ROW (customer = 8, window_start = TIMESTAMP '2024-01-01 00:00:00') FOR SELECT window_start, customer, SUM(amount) AS total FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY window_start, window_end, customer
---
1 | Scan orders | 2 | 
2 | WindowTable tumble(ts, 10 s) | 2 | 
3 | Row with CAST(window_start AS TIMESTAMP(6)) = TIMESTAMP(6) '2024-01-01 00:00:00' | 1 | 
4 | Late rows | 0 | late: when the only candidate came, the watermark of the split was 2024-01-01 00:00:12, 2 s past the end of the window, 2024-01-01 00:00:10
5 | WindowAggregate attached(window_start, window_end) by customer: sum(amount) | 0 | 
-- late: when the only candidate came, the watermark of the split was 2024-01-01 00:00:12, 2 s past the end of the window, 2024-01-01 00:00:10
====
# duplicates are removed: the second row is the first
EXPLAIN WHY NOT ROW (customer = 7, n = 2) FOR SELECT customer, COUNT(*) AS n FROM (SELECT DISTINCT customer FROM orders) GROUP BY customer
---
1 | Scan orders | 3 | 
2 | Aggregate by customer | 1 | 
3 | Aggregate by customer: count(*) | 1 | 
4 | Row with count(*) = 2 | 0 | the group is there, but not with count(*) = 2: count(*) is 1
-- the group is there, but not with count(*) = 2: count(*) is 1
====
# no branch of a union
EXPLAIN WHY NOT ROW (id = 10) FOR SELECT customer AS id FROM orders UNION ALL SELECT id FROM customers
---
1 | Scan orders | 0 | no row of orders has customer = 10
2 | Scan customers | 0 | 
3 | Union 2 inputs | 0 | 
-- no row of orders has customer = 10
====
# no match
EXPLAIN WHY NOT ROW (customer = 9) FOR SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY customer ORDER BY ts MEASURES A.amount AS a PATTERN (A B) DEFINE B AS B.amount > A.amount)
---
1 | Scan orders | 1 | 
2 | MatchRecognize (A B) per customer by ts, one row per match, skip past last row, A.amount AS a where B AS B.amount > A.amount | 0 | MatchRecognize (A B) per customer by ts, one row per match, skip past last row, A.amount AS a where B AS B.amount > A.amount drops the only candidate
-- MatchRecognize (A B) per customer by ts, one row per match, skip past last row, A.amount AS a where B AS B.amount > A.amount drops the only candidate
====
# a materialized view
EXPLAIN WHY NOT ROW (customer = 8, total = 13) OF VIEW totals
---
1 | Scan orders | 2 | 
2 | Aggregate by customer: sum(amount) | 1 | 
3 | Row with sum(amount) = 13 | 0 | the group is there, but not with sum(amount) = 13: sum(amount) is 12
-- the group is there, but not with sum(amount) = 13: sum(amount) is 12
====
# the row is there
EXPLAIN WHY NOT ROW (id = 2) FOR SELECT id FROM orders
---
error[WHY-7105]: the result has 1 row that meet these conditions
  1 | EXPLAIN WHY NOT ROW (id = 2) FOR SELECT id FROM orders
    |                      ^^^^^^
hint: EXPLAIN WHY ROW with the same conditions lists the input rows that made them
====
# a recursive query
EXPLAIN WHY NOT ROW (n = 20) FOR WITH RECURSIVE r (n) AS (SELECT id FROM orders UNION SELECT n + 1 FROM r WHERE n < 8) SELECT n FROM r
---
1 | RecursiveQuery UNION, until an iteration has no new row, at most 10,000: Project n + 1 <- Filter n < 8 <- WorkTable | 0 | no row that the recursion begins with or derives has n = 20
-- no row that the recursion begins with or derives has n = 20
====
# EXCEPT
EXPLAIN WHY NOT ROW (id = 7) FOR SELECT customer AS id FROM orders EXCEPT SELECT id FROM customers
---
1 | Scan orders | 3 | 
2 | Scan customers | 1 | 
3 | Union 2 inputs | 4 | 
4 | Aggregate by id: count(*) FILTER (WHERE side) AS left_rows, count(*) FILTER (WHERE not(side)) AS right_rows | 1 | 
5 | Filter CASE WHEN (right_rows = 0) THEN left_rows ELSE 0 END > 0 | 0 | HAVING CASE WHEN (right_rows = 0) THEN left_rows ELSE 0 END > 0 drops the only candidate: CASE WHEN (right_rows = 0) THEN left_rows ELSE 0 END is 0
-- HAVING CASE WHEN (right_rows = 0) THEN left_rows ELSE 0 END > 0 drops the only candidate: CASE WHEN (right_rows = 0) THEN left_rows ELSE 0 END is 0
