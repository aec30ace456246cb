-- Query 4, average price for a category: of the winning bids of all its auctions, kept up to date with every bid.

SELECT category, AVG(final) AS average
FROM (
  SELECT MAX(b.price) AS final, a.category
  FROM auction AS a, bid AS b
  WHERE a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
  GROUP BY a.id, a.category
)
GROUP BY category;
