SELECT carrier, first + INTERVAL 4 DAYS,
       quantile_disc(dep_delay, 0.9), min(often), first(dest ORDER BY dep_delay DESC, dest DESC) FILTER (WHERE dep_delay IS NOT NULL),
       last(origin ORDER BY departed, flight, origin NULLS FIRST), string_agg(DISTINCT origin, '+' ORDER BY origin DESC),
       count(*) FILTER (WHERE dep_delay > 60), count(DISTINCT tailnum), bit_xor(flight),
       round(nullif(corr(arr_delay, dep_delay), 'nan'), 6),
       CASE WHEN count(DISTINCT dep_delay) > 1
            THEN round(sqrt(count(dep_delay)) * sum((dep_delay - mean) ** 3) / sum((dep_delay - mean) ** 2) ** 1.5, 6) END
FROM (
  SELECT *, avg(dep_delay) OVER w AS mean,
         first(dep_delay) OVER (PARTITION BY carrier, first ORDER BY times DESC, dep_delay ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS often
  FROM (
    SELECT *, CASE WHEN dep_delay IS NOT NULL THEN count(*) OVER (PARTITION BY carrier, first, dep_delay) ELSE 0 END AS times
    FROM (SELECT *, time_bucket(INTERVAL 2 DAYS, departed, TIMESTAMP '1970-01-01') - to_days(back::INT) AS first
          FROM flights, (VALUES (0), (2)) AS backs(back))
  )
  WINDOW w AS (PARTITION BY carrier, first)
)
GROUP BY carrier, first
