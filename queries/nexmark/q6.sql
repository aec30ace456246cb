-- Query 6, average selling price by seller: of the winning bids of his last auctions. The winning bid of an auction changes with every
-- higher one, so OVER here follows rows that are taken back.

SELECT seller, AVG(price) OVER (PARTITION BY seller ORDER BY dateTime, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average
FROM (
  SELECT id, seller, price, dateTime
  FROM (
    SELECT a.id, a.seller, b.price, b.dateTime,
           ROW_NUMBER() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC, b.dateTime) AS place
    FROM auction AS a, bid AS b
    WHERE a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
  )
  WHERE place <= 1
);
