SELECT bidder, count(*) AS bids FROM bid GROUP BY bidder
