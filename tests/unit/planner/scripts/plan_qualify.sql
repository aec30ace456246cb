SELECT auction, price, SUM(price) OVER w AS s FROM bid WINDOW w AS (PARTITION BY channel ORDER BY ts) QUALIFY ROW_NUMBER() OVER w = 1 AND s > 5
---
Project expressions=(auction, price, over1) names=(auction, price, s)
  : auction BIGINT, price DECIMAL(10, 2), s DECIMAL(20, 2)
  Filter predicate=((over2 = 1) AND (over1 > 5.00))
    Over partition=(3) order=(ts NULLS FIRST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(sum(price), row_number()) names=(over1, over2) timely=True
      WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
        Scan bid columns=(0, 1, 2, 3, 4)
          : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT channel FROM bid GROUP BY channel QUALIFY RANK() OVER (ORDER BY MAX(price) DESC) <= 3
---
Project expressions=(channel) names=(channel)
  : channel STRING
  Filter predicate=(over1 <= 3)
    Over order=(max(price) DESC NULLS LAST) frame=RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW calls=(rank()) names=(over1) timely=False
      Aggregate keys=(3) aggregates=(max(price)) names=(max(price)) phase=single
        : channel STRING, max(price) DECIMAL(10, 2)
        WatermarkAssign time_column=4 watermark=(ts - INTERVAL '0 00:00:05' DAY TO SECOND)
          Scan bid columns=(0, 1, 2, 3, 4)
            : auction BIGINT, bidder BIGINT, price DECIMAL(10, 2), channel STRING, ts TIMESTAMP(3)
====
SELECT auction FROM bid QUALIFY price > 5
---
error[SQL-1068]: QUALIFY filters by calls with OVER, and there is none
  1 | SELECT auction FROM bid QUALIFY price > 5
    |                                 ^^^^^^^^^
hint: use WHERE, or HAVING behind GROUP BY
====
SELECT SUM(price) OVER x FROM bid WINDOW w AS (ORDER BY ts)
---
error[SQL-1067]: there is no window "x"
  1 | SELECT SUM(price) OVER x FROM bid WINDOW w AS (ORDER BY ts)
    |                        ^
hint: there is w
====
SELECT SUM(price) OVER w FROM bid WINDOW w AS (ORDER BY ts), W AS (ORDER BY price)
---
error[SQL-1045]: the window "W" is given twice
  1 | SELECT SUM(price) OVER w FROM bid WINDOW w AS (ORDER BY ts), W AS (ORDER BY price)
    |                                                              ^
====
SELECT auction FROM bid QUALIFY ROW_NUMBER() OVER (ORDER BY price)
---
error[SQL-1103]: QUALIFY takes a BOOLEAN, this is INT
  1 | SELECT auction FROM bid QUALIFY ROW_NUMBER() OVER (ORDER BY price)
    |                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: compare it with something
====
SELECT SUM(price) OVER w FROM bid WINDOW w (ORDER BY ts)
---
error[SQL-1001]: unexpected "(": AS was expected
  1 | SELECT SUM(price) OVER w FROM bid WINDOW w (ORDER BY ts)
    |                                            ^
