SELECT *
FROM (
  SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC, bidder, channel, url, dateTime, extra) AS place FROM bid
)
WHERE place <= 10
