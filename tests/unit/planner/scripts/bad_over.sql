SELECT auction FROM bid WHERE ROW_NUMBER() OVER (ORDER BY price) = 1
---
error[SQL-1065]: row_number OVER cannot be used in WHERE
  1 | SELECT auction FROM bid WHERE ROW_NUMBER() OVER (ORDER BY price) = 1
    |                                            ^^^^^^^^^^^^^^^^^^^^^
hint: write QUALIFY, behind HAVING, for conditions on calls with OVER
====
SELECT ROW_NUMBER() FROM bid
---
error[SQL-1065]: row_number is allowed only with OVER
  1 | SELECT ROW_NUMBER() FROM bid
    |        ^^^^^^^^^^^^
hint: write OVER (PARTITION BY .. ORDER BY ..) behind it
====
SELECT LAG(price) FROM bid
---
error[SQL-1065]: lag is allowed only with OVER
  1 | SELECT LAG(price) FROM bid
    |        ^^^^^^^^^^
hint: write OVER (PARTITION BY .. ORDER BY ..) behind it
====
SELECT RANK() OVER (PARTITION BY channel) FROM bid
---
error[SQL-1065]: rank needs an ORDER BY
  1 | SELECT RANK() OVER (PARTITION BY channel) FROM bid
    |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write OVER (PARTITION BY .. ORDER BY ..)
====
SELECT ROW_NUMBER(price) OVER (ORDER BY price) FROM bid
---
error[SQL-1102]: row_number takes no argument, not 1
  1 | SELECT ROW_NUMBER(price) OVER (ORDER BY price) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
====
SELECT LAG(price, auction) OVER (ORDER BY ts) FROM bid
---
error[SQL-1102]: lag takes a whole number of rows
  1 | SELECT LAG(price, auction) OVER (ORDER BY ts) FROM bid
    |                   ^^^^^^^
hint: write lag(x, 2)
====
SELECT LAG(price, 1, price) OVER (ORDER BY ts) FROM bid
---
error[SQL-1601]: lag takes a constant default
  1 | SELECT LAG(price, 1, price) OVER (ORDER BY ts) FROM bid
    |                      ^^^^^
hint: wrap the call in COALESCE
====
SELECT UPPER(channel) OVER (ORDER BY ts) FROM bid
---
error[SQL-1065]: upper does not go with OVER
  1 | SELECT UPPER(channel) OVER (ORDER BY ts) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: OVER goes with aggregates, row_number, rank, dense_rank, lag, lead, first_value, last_value and nth_value
====
SELECT FIRST_VALUE(DISTINCT channel) OVER (ORDER BY ts) FROM bid
---
error[SQL-1601]: DISTINCT with OVER is not supported yet
  1 | SELECT FIRST_VALUE(DISTINCT channel) OVER (ORDER BY ts) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: GROUP BY the values first, in a subquery
====
SELECT ROW_NUMBER() FILTER (WHERE price > 1) OVER (ORDER BY ts) FROM bid
---
error[SQL-1601]: FILTER with OVER is not supported yet
  1 | SELECT ROW_NUMBER() FILTER (WHERE price > 1) OVER (ORDER BY ts) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write CASE WHEN .. THEN x END inside the call
====
SELECT SUM(price) OVER (ORDER BY price ROWS BETWEEN CURRENT ROW AND 3 PRECEDING) FROM bid
---
error[SQL-1066]: the frame ends before it begins
  1 | SELECT SUM(price) OVER (ORDER BY price ROWS BETWEEN CURRENT ROW AND 3 PRECEDING) FROM bid
    |                                                                     ^^^^^^^^^^^
hint: put the earlier bound first
====
SELECT SUM(price) OVER (ORDER BY price ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM bid
---
error[SQL-1066]: a frame cannot begin at UNBOUNDED FOLLOWING
  1 | SELECT SUM(price) OVER (ORDER BY price ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW) FROM bid
    |                                                     ^^^^^^^^^^^^^^^^^^^
====
SELECT SUM(price) OVER (ORDER BY price * 1E0 RANGE 3 PRECEDING) FROM bid
---
error[SQL-1066]: this is no RANGE distance of a key of type DOUBLE
  1 | SELECT SUM(price) OVER (ORDER BY price * 1E0 RANGE 3 PRECEDING) FROM bid
    |                                                    ^
hint: TIMESTAMP keys take INTERVAL '10' MINUTES, integer keys take 10, DECIMAL keys of up to 18 digits take 0.5; order by one of these, or use ROWS
====
SELECT SUM(price) OVER (ORDER BY ts, price RANGE INTERVAL '3' SECONDS PRECEDING) FROM bid
---
error[SQL-1066]: a RANGE distance goes with exactly one ORDER BY key
  1 | SELECT SUM(price) OVER (ORDER BY ts, price RANGE INTERVAL '3' SECONDS PRECEDING) FROM bid
    |                                                  ^^^^^^^^^^^^^^^^^^^^
hint: order by one column, or use ROWS
====
SELECT SUM(price) OVER (ORDER BY ts ROWS INTERVAL '3' SECONDS PRECEDING) FROM bid
---
error[SQL-1066]: ROWS takes a whole number of rows
  1 | SELECT SUM(price) OVER (ORDER BY ts ROWS INTERVAL '3' SECONDS PRECEDING) FROM bid
    |                                          ^^^^^^^^^^^^^^^^^^^^
hint: write ROWS 10 PRECEDING
====
SELECT RANK() OVER (ORDER BY ts ROWS 3 PRECEDING) FROM bid
---
error[SQL-1066]: rank takes no frame
  1 | SELECT RANK() OVER (ORDER BY ts ROWS 3 PRECEDING) FROM bid
    |                                      ^^^^^^^^^^^
hint: leave ROWS or RANGE out
====
SELECT SUM(price) OVER w FROM bid
---
error[SQL-1067]: there is no window "w"
  1 | SELECT SUM(price) OVER w FROM bid
    |                        ^
hint: write WINDOW w AS (PARTITION BY .. ORDER BY ..) behind the query, or OVER (..)
====
SELECT SUM(price) OVER (PARTITON BY channel) FROM bid
---
error[SQL-1001]: unexpected "PARTITON"
  1 | SELECT SUM(price) OVER (PARTITON BY channel) FROM bid
    |                         ^^^^^^^^
hint: did you mean "PARTITION"?
====
SELECT SUM(price) OVER (PARTITION BY chanel) FROM bid
---
error[SQL-1042]: column "chanel" does not exist in bid
  1 | SELECT SUM(price) OVER (PARTITION BY chanel) FROM bid
    |                                      ^^^^^^
hint: did you mean "channel"?
====
SELECT channel, RANK() OVER (ORDER BY price) FROM bid GROUP BY channel
---
error[SQL-1061]: column "price" is neither in GROUP BY nor in an aggregate
  1 | SELECT channel, RANK() OVER (ORDER BY price) FROM bid GROUP BY channel
    |                                       ^^^^^
hint: add it to GROUP BY, or write any_value(price)
====
SELECT auction FROM bid ORDER BY ROW_NUMBER() OVER (ORDER BY price) LIMIT 3
---
error[SQL-1065]: row_number OVER cannot be used in ORDER BY
  1 | SELECT auction FROM bid ORDER BY ROW_NUMBER() OVER (ORDER BY price) LIMIT 3
    |                                               ^^^^^^^^^^^^^^^^^^^^^
hint: compute it in the select list of a subquery, give it a name, and use that name here
====
SELECT RNAK() OVER (ORDER BY price) FROM bid
---
error[SQL-1101]: there is no function rnak
  1 | SELECT RNAK() OVER (ORDER BY price) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: did you mean "rank"?
====
SELECT SUM(RANK() OVER (ORDER BY ts)) FROM bid
---
error[SQL-1065]: rank OVER cannot be used in an aggregate
  1 | SELECT SUM(RANK() OVER (ORDER BY ts)) FROM bid
    |                   ^^^^^^^^^^^^^^^^^^
hint: compute it in the select list of a subquery, give it a name, and use that name here
====
SELECT NTH_VALUE(price, 0) OVER (ORDER BY ts) FROM bid
---
error[SQL-1102]: nth_value takes a whole number of rows, from 1
  1 | SELECT NTH_VALUE(price, 0) OVER (ORDER BY ts) FROM bid
    |                         ^
hint: write nth_value(x, 2)
====
SELECT SUM(price) OVER (GROUPS 2 PRECEDING) FROM bid
---
error[SQL-1066]: a frame of GROUPS needs an ORDER BY
  1 | SELECT SUM(price) OVER (GROUPS 2 PRECEDING) FROM bid
    |                                ^^^^^^^^^^^
hint: rows equal in the ORDER BY are a group
====
SELECT RANK() IGNORE NULLS OVER (ORDER BY ts) FROM bid
---
error[SQL-1105]: IGNORE NULLS does not go with rank
  1 | SELECT RANK() IGNORE NULLS OVER (ORDER BY ts) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: lag, lead, first_value, last_value and nth_value take it
====
SELECT SUM(price) OVER (ORDER BY ts ROWS 2 PRECEDING EXCLUDE ME) FROM bid
---
error[SQL-1001]: unexpected "ME": CURRENT ROW, GROUP, TIES or NO OTHERS was expected
  1 | SELECT SUM(price) OVER (ORDER BY ts ROWS 2 PRECEDING EXCLUDE ME) FROM bid
    |                                                              ^^
====
SELECT SUM(price) OVER (ORDER BY ts GROUPS 1.5 PRECEDING) FROM bid
---
error[SQL-1066]: GROUPS takes a whole number of groups
  1 | SELECT SUM(price) OVER (ORDER BY ts GROUPS 1.5 PRECEDING) FROM bid
    |                                            ^^^
hint: write GROUPS 10 PRECEDING
