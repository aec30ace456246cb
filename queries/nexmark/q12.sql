-- Query 12, processing time windows: how many bids does each bidder make within ten seconds of our own clock?

CREATE TEMPORARY VIEW bid_now AS SELECT *, PROCTIME() AS p_time FROM bid;

SELECT bidder, COUNT(*) AS bids, window_start, window_end
FROM TABLE(TUMBLE(TABLE bid_now, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
