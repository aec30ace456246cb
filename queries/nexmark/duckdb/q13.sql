SELECT b.auction, b.bidder, b.price, b.dateTime, s.val
FROM bid AS b
JOIN (SELECT key, 'value ' || key AS val FROM range(10000) AS keys(key)) AS s ON b.auction % 10000 = s.key
