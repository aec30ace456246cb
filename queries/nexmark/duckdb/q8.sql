SELECT p.id, p.name, p.window_start
FROM (SELECT DISTINCT id, name, time_bucket(INTERVAL '10 seconds', dateTime) AS window_start FROM person) AS p
JOIN (SELECT DISTINCT seller, time_bucket(INTERVAL '10 seconds', dateTime) AS window_start FROM auction) AS a
ON p.id = a.seller AND p.window_start = a.window_start
