WITH ordered AS (
  SELECT *, row_number() OVER w AS n, coalesce(dep_delay > lag(dep_delay) OVER w, FALSE) AS later
  FROM flights
  WHERE dep_time IS NOT NULL AND tailnum IS NOT NULL
  WINDOW w AS (PARTITION BY tailnum ORDER BY departed, flight, origin)
), runs AS (
  SELECT *, count(*) FILTER (WHERE NOT later) OVER (PARTITION BY tailnum ORDER BY n) AS run FROM ordered
)
SELECT tailnum, min(departed), max(departed), count(*), arg_min(dep_delay, n)::INT, arg_max(dep_delay, n)::INT, arg_max(origin, n)
FROM runs
GROUP BY tailnum, run
HAVING count(*) >= 5 AND arg_max(dep_delay, n) >= 120
