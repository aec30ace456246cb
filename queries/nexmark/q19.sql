-- Query 19, top ten: the ten highest bids of each auction, with their places.

SELECT *
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid
)
WHERE place <= 10;
