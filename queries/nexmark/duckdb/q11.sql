WITH steps AS (
  SELECT bidder, dateTime, dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime) >= INTERVAL '10 seconds' AS begins FROM bid
), sessions AS (
  SELECT bidder, dateTime, count(*) FILTER (WHERE begins) OVER (PARTITION BY bidder ORDER BY dateTime) AS number FROM steps
)
SELECT bidder, count(*) AS bids, min(dateTime) AS window_start, max(dateTime) + INTERVAL '10 seconds' AS window_end
FROM sessions GROUP BY bidder, number
