-- Query 7, highest bid: the highest bids of each ten seconds, by a join with the maximum.

SELECT b.auction, b.bidder, b.price, b.dateTime, b.extra
FROM bid AS b
JOIN (
  SELECT MAX(price) AS highest, window_end
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) AS h
ON b.price = h.highest
WHERE b.dateTime BETWEEN h.window_end - INTERVAL '10' SECOND AND h.window_end;
