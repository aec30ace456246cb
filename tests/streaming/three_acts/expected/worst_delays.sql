SELECT carrier, row_number() OVER (PARTITION BY carrier ORDER BY dep_delay DESC, departed, flight) AS place, flight, origin, dest, departed, dep_delay
FROM flights WHERE dep_delay IS NOT NULL QUALIFY place <= 3
