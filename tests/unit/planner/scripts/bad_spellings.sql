SELECT auction FROM bid WHERE (auction, bidder) = 3
---
error[SQL-1114]: a row of values is compared with one value
  1 | SELECT auction FROM bid WHERE (auction, bidder) = 3
    |                                                   ^
hint: write 2 values in parentheses
====
SELECT auction FROM bid WHERE (auction, bidder) IN ((1, 2), (1, 2, 3))
---
error[SQL-1114]: a row of 2 values is compared with one of 3
  1 | SELECT auction FROM bid WHERE (auction, bidder) IN ((1, 2), (1, 2, 3))
    |                                                             ^^^^^^^^^
====
SELECT auction FROM bid WHERE channel SIMILAR TO channel
---
error[SQL-1011]: the pattern of SIMILAR TO is no constant text
  1 | SELECT auction FROM bid WHERE channel SIMILAR TO channel
    |                                                  ^^^^^^^
hint: write x RLIKE pattern, with a regular expression
====
SELECT auction FROM bid WHERE channel SIMILAR TO 'a('
---
error[SQL-1011]: the pattern 'a(' is not well formed
  1 | SELECT auction FROM bid WHERE channel SIMILAR TO 'a('
    |                                                  ^^^^
hint: % is any text, _ one character; |, *, +, ?, {n}, () and [] are as in regular expressions
====
SELECT auction FROM bid WHERE channel SIMILAR 'a'
---
error[SQL-1001]: unexpected 'a': TO was expected
  1 | SELECT auction FROM bid WHERE channel SIMILAR 'a'
    |                                               ^^^
====
SELECT auction FROM bid WHERE channel LIKE ANY ('a'
---
error[SQL-1001]: the statement ends where ")" was expected
  1 | SELECT auction FROM bid WHERE channel LIKE ANY ('a'
    |                                                    ^
hint: a closing parenthesis is missing
====
SELECT FLOOR(ts TO FORTNIGHT) FROM bid
---
error[SQL-1103]: date_trunc: 'fortnight' is no unit
  1 | SELECT FLOOR(ts TO FORTNIGHT) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^
hint: units are year, quarter, month, week, day, hour, minute, second, millisecond, microsecond
====
SELECT OVERLAY(channel PLACING 'x') FROM bid
---
error[SQL-1001]: unexpected ")": FROM was expected
  1 | SELECT OVERLAY(channel PLACING 'x') FROM bid
    |                                   ^
====
SELECT rand() FROM bid
---
error[SQL-1601]: rand is not supported: each call returns another value, so a retraction would not equal its row
  1 | SELECT rand() FROM bid
    |        ^^^^^^
hint: let the source add such a value to each row; pmod(xxhash64(key), 100) < 5 keeps 5 of 100
====
SELECT uuid(), auction FROM bid
---
error[SQL-1601]: uuid is not supported: each call returns another value, so a retraction would not equal its row
  1 | SELECT uuid(), auction FROM bid
    |        ^^^^^^
hint: let the source add such a value to each row; pmod(xxhash64(key), 100) < 5 keeps 5 of 100
====
SELECT auction FROM bid WHERE (auction, bidder) = (SELECT * FROM auction)
---
error[SQL-1114]: the list of this subquery cannot be compared as a row
  1 | SELECT auction FROM bid WHERE (auction, bidder) = (SELECT * FROM auction)
    |                                                   ^^^^^^^^^^^^^^^^^^^^^^^
hint: list its columns one by one without AS, and order by columns of its tables
====
SELECT auction FROM bid WHERE (auction, bidder) > (SELECT MAX(auction) AS m, bidder FROM bid GROUP BY bidder ORDER BY m LIMIT 1)
---
error[SQL-1114]: the list of this subquery cannot be compared as a row
  1 | on FROM bid WHERE (auction, bidder) > (SELECT MAX(auction) AS m, bidder FROM bid GROUP BY bidder ORDER BY m LIMIT 
    |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: list its columns one by one without AS, and order by columns of its tables
