SELECT b.auction, b.bidder, b.price, b.dateTime, b.extra
FROM bid AS b
JOIN (
  SELECT max(price) AS highest, time_bucket(INTERVAL '10 seconds', dateTime) + INTERVAL '10 seconds' AS window_end FROM bid GROUP BY ALL
) AS h ON b.price = h.highest
WHERE b.dateTime BETWEEN h.window_end - INTERVAL '10 seconds' AND h.window_end
