-- Query 10, log to files: every bid, in a directory for its day and minute.

CREATE TEMPORARY TABLE bid_log (
  auction BIGINT, bidder BIGINT, price BIGINT, dateTime TIMESTAMP(3), extra STRING, dt STRING, hm STRING
) PARTITIONED BY (dt, hm) WITH ('connector' = 'filesystem', 'path' = 'out/nexmark/bids', 'format' = 'csv');

INSERT INTO bid_log
SELECT auction, bidder, price, dateTime, extra, DATE_FORMAT(dateTime, 'yyyy-MM-dd'), DATE_FORMAT(dateTime, 'HHmm') FROM bid;
