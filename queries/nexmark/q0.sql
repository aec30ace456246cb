-- Query 0, pass through: what reading and handing out rows costs by itself.

SELECT auction, bidder, price, dateTime, extra FROM bid;
