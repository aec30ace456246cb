WITH routes AS (SELECT origin, dest, count(*) AS flights, sum(air_time) AS seconds FROM flights GROUP BY origin, dest)
SELECT origin, quantile_disc(flights, 0.9), quantile_cont(flights, 0.5),
       (SELECT flights FROM routes AS r WHERE r.origin = routes.origin GROUP BY flights ORDER BY count(*) DESC, flights LIMIT 1),
       first(dest ORDER BY flights DESC, dest DESC), first(dest ORDER BY flights DESC, dest DESC),
       string_agg(dest, ' ' ORDER BY flights DESC, dest), bit_or(flights), bit_xor(flights), round(regr_slope(seconds, flights), 6)
FROM routes
GROUP BY origin
