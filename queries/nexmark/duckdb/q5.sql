WITH hops AS (
  SELECT auction, time_bucket(INTERVAL '2 seconds', dateTime) - hop * INTERVAL '2 seconds' AS window_start
  FROM bid, range(5) AS hops(hop)
), counted AS (SELECT auction, window_start, count(*) AS num FROM hops GROUP BY ALL)
SELECT auction, num FROM counted JOIN (SELECT window_start, max(num) AS most FROM counted GROUP BY window_start) AS best USING (window_start) WHERE num >= most
