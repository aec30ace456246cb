WITH enriched AS (
  SELECT f.*, p.seats FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum AND p.seats > 1
), weeks AS (
  SELECT time_bucket(INTERVAL 7 DAY, departed, TIMESTAMP '1970-01-01') AS week, origin, carrier,
         count(*) AS flights,
         count(*) FILTER (WHERE dep_time IS NULL) AS cancelled,
         count(*) FILTER (WHERE arr_delay > 15) AS late_arrivals,
         sum(dep_delay)::BIGINT AS departure_delay,
         sum(arr_delay)::BIGINT AS arrival_delay,
         max(arr_delay)::INT AS worst_arrival,
         sum(seats) FILTER (WHERE dep_time IS NOT NULL)::BIGINT AS seats
  FROM enriched GROUP BY ALL
)
SELECT week, origin, a.name, flights, cancelled, late_arrivals, departure_delay, arrival_delay, worst_arrival, seats
FROM weeks JOIN airlines a USING (carrier)
