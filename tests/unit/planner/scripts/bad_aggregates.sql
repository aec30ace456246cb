SELECT MAX(price ORDER BY ts) FROM bid
---
error[SQL-1064]: max takes no ORDER BY
  1 | SELECT MAX(price ORDER BY ts) FROM bid
    |                           ^^
hint: first_value, last_value, collect_list and listagg take one
====
SELECT LISTAGG(channel, auction) FROM bid
---
error[SQL-1103]: listagg: the separator must be a constant text
  1 | SELECT LISTAGG(channel, auction) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write listagg(x, ', ')
====
SELECT LISTAGG(DISTINCT channel) WITHIN GROUP (ORDER BY price) FROM bid
---
error[SQL-1064]: DISTINCT values have no order by another column
  1 | SELECT LISTAGG(DISTINCT channel) WITHIN GROUP (ORDER BY price) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: order by channel, or leave DISTINCT out
====
SELECT PERCENTILE(price, 50) FROM bid
---
error[SQL-1103]: percentile: the percentage must be a constant between 0 and 1
  1 | SELECT PERCENTILE(price, 50) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^
hint: write 0.5 for the median
====
SELECT ARRAY_AGG(price ORDER BY ts) WITHIN GROUP (ORDER BY ts) FROM bid
---
error[SQL-1064]: array_agg is ordered twice
  1 | SELECT ARRAY_AGG(price ORDER BY ts) WITHIN GROUP (ORDER BY ts) FROM bid
    |                                 ^^
hint: leave one ORDER BY out
====
SELECT SUM(price) IGNORE NULLS FROM bid
---
error[SQL-1105]: IGNORE NULLS does not go with sum
  1 | SELECT SUM(price) IGNORE NULLS FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^
hint: only FIRST_VALUE and LAST_VALUE take it
====
SELECT BIT_AND(price) FROM bid
---
error[SQL-1103]: bit_and: argument 1 is DECIMAL(10, 2), wanted an integer
  1 | SELECT BIT_AND(price) FROM bid
    |        ^^^^^^^^^^^^^^
hint: usage: bit_and(x)
====
SELECT LISTAGG(channel) WITHIN GROUP (price) FROM bid
---
error[SQL-1001]: unexpected "price": ORDER BY was expected
  1 | SELECT LISTAGG(channel) WITHIN GROUP (price) FROM bid
    |                                       ^^^^^
====
SELECT UPPER(channel ORDER BY ts) FROM bid
---
error[SQL-1105]: ORDER BY goes with aggregate functions, upper is none
  1 | SELECT UPPER(channel ORDER BY ts) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^
====
SELECT ARRAY_AGG(price ORDER BY ts) OVER (PARTITION BY channel) FROM bid
---
error[SQL-1601]: ORDER BY inside a call with OVER is not supported yet
  1 | SELECT ARRAY_AGG(price ORDER BY ts) OVER (PARTITION BY channel) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: order the rows in OVER
====
SELECT COLLECT_LIST(MAP[channel, price]) FROM bid
---
error[SQL-1103]: collect_list: argument 1 is MAP<STRING, DECIMAL(10, 2)>, and a MAP has no order
  1 | SELECT COLLECT_LIST(MAP[channel, price]) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: use map_entries(m), an array of rows, or one of its values
====
SELECT ANY_VALUE(MAP[channel, price]) FROM bid
---
error[SQL-1103]: any_value: MAP<STRING, DECIMAL(10, 2)> has no order
  1 | SELECT ANY_VALUE(MAP[channel, price]) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: usage: any_value(x)
====
SELECT FIRST_VALUE(channel ORDER BY MAP[channel, price]) FROM bid
---
error[SQL-1103]: ORDER BY cannot compare MAP<STRING, DECIMAL(10, 2)>
  1 | SELECT FIRST_VALUE(channel ORDER BY MAP[channel, price]) FROM bid
    |                                     ^^^^^^^^^^^^^^^^^^^
====
SELECT PERCENTIL(price, 0.5) FROM bid
---
error[SQL-1101]: there is no function percentil
  1 | SELECT PERCENTIL(price, 0.5) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^
hint: did you mean "percentile"?
====
SELECT auction + SUM(price) AS x FROM bid GROUP BY ALL
---
error[SQL-1061]: column "auction" is neither in GROUP BY nor in an aggregate
  1 | SELECT auction + SUM(price) AS x FROM bid GROUP BY ALL
    |        ^^^^^^^
hint: write any_value(auction), or GROUP BY auction
====
SELECT auction FROM bid GROUP BY ALL, price
---
error[SQL-1001]: unexpected ",": the end of the query or its next part was expected
  1 | SELECT auction FROM bid GROUP BY ALL, price
    |                                     ^
