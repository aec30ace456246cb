-- The same tables as views over one stream of all events, as the benchmark has it:
--
--   penstock run queries/nexmark/one_table.sql queries/nexmark/q4.sql

CREATE TEMPORARY TABLE site (
  event_type INT,
  person ROW<id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, dateTime TIMESTAMP(3), extra STRING>,
  auction ROW<id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP(3), expires TIMESTAMP(3),
              seller BIGINT, category BIGINT, extra STRING>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP(3), extra STRING>,
  dateTime AS CASE event_type WHEN 0 THEN person.dateTime WHEN 1 THEN auction.dateTime ELSE bid.dateTime END,
  WATERMARK FOR dateTime AS dateTime - INTERVAL '2' SECOND
) WITH ('connector' = 'nexmark', 'events.num' = '100000', 'splits' = '2', 'out-of-order' = '2 s');

CREATE TEMPORARY VIEW person AS
SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, dateTime, person.extra
FROM site WHERE event_type = 0;

CREATE TEMPORARY VIEW auction AS
SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, dateTime, auction.expires, auction.seller,
       auction.category, auction.extra
FROM site WHERE event_type = 1;

CREATE TEMPORARY VIEW bid AS
SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, dateTime, bid.extra
FROM site WHERE event_type = 2;
