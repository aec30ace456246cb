SELECT tailnum, departed, origin, dest,
       lag(dest) OVER (PARTITION BY tailnum ORDER BY departed, flight, origin) AS went_before,
       count(*) OVER (PARTITION BY tailnum ORDER BY departed RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS within_two_days
FROM flights WHERE dep_time IS NOT NULL AND carrier = 'MQ' QUALIFY within_two_days >= 5
