SELECT t.dest, a.name, t.flights, t.miles
FROM (SELECT dest, count(*) AS flights, sum(distance)::BIGINT AS miles FROM flights WHERE dep_time IS NOT NULL GROUP BY dest) t
LEFT JOIN airports a ON t.dest = a.faa
ORDER BY flights DESC, dest LIMIT 10
