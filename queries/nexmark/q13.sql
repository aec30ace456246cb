-- Query 13, bounded side input: each bid with a value looked up, as the bid comes, in a table of ten thousand keys.

CREATE TEMPORARY VIEW side_input AS
SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS key, CONCAT('value ', a.d + 10 * b.d + 100 * c.d + 1000 * e.d) AS val
FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS a(d),
     (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS b(d),
     (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS c(d),
     (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS e(d);

SELECT b.auction, b.bidder, b.price, b.dateTime, s.val
FROM (SELECT *, PROCTIME() AS p_time FROM bid) AS b
JOIN side_input FOR SYSTEM_TIME AS OF b.p_time AS s ON MOD(b.auction, 10000) = s.key;
