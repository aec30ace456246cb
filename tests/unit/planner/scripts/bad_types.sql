SELECT price + ts FROM bid
---
error[SQL-1103]: add: DECIMAL(10, 2) + TIMESTAMP(3) is not defined
  1 | SELECT price + ts FROM bid
    |        ^^^^^^^^^^
hint: CAST the operands to numbers or intervals
====
SELECT channel - 1 FROM bid WHERE channel AND TRUE
---
error[SQL-1103]: and: argument 1 is STRING, wanted BOOLEAN
  1 | SELECT channel - 1 FROM bid WHERE channel AND TRUE
    |                                   ^^^^^^^^^^^^^^^^
hint: compare it with something
====
SELECT * FROM bid WHERE price
---
error[SQL-1103]: WHERE takes a BOOLEAN, this is DECIMAL(10, 2)
  1 | SELECT * FROM bid WHERE price
    |                         ^^^^^
hint: compare it with something
====
SELECT * FROM bid WHERE 1
---
error[SQL-1103]: WHERE takes a BOOLEAN, this is INT
  1 | SELECT * FROM bid WHERE 1
    |                         ^
hint: compare it with something
====
SELECT ts > 5 FROM bid
---
error[SQL-1103]: greater: TIMESTAMP(3) and INT cannot be compared
  1 | SELECT ts > 5 FROM bid
    |        ^^^^^^
hint: write DATE '2024-01-31' or TIMESTAMP '2024-01-31 10:00:00'
====
SELECT NOT price FROM bid
---
error[SQL-1103]: not: argument 1 is DECIMAL(10, 2), wanted BOOLEAN
  1 | SELECT NOT price FROM bid
    |        ^^^^^^^^^
hint: compare it with something
====
SELECT CASE WHEN price THEN 1 END FROM bid
---
error[SQL-1103]: WHEN takes a BOOLEAN, this is DECIMAL(10, 2)
  1 | SELECT CASE WHEN price THEN 1 END FROM bid
    |                  ^^^^^
hint: compare it with something
====
SELECT CASE WHEN TRUE THEN 1 ELSE ts END FROM bid
---
error[SQL-1103]: the branches of CASE have no common type: INT, TIMESTAMP(3)
  1 | SELECT CASE WHEN TRUE THEN 1 ELSE ts END FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: CAST them to one type
====
SELECT CAST(ts AS BIGINT) FROM bid
---
error[SQL-1106]: TIMESTAMP(3) cannot be cast to BIGINT
  1 | SELECT CAST(ts AS BIGINT) FROM bid
    |        ^^^^^^^^^^^^^^^^^^
====
SELECT coalesce(price, ts) FROM bid
---
error[SQL-1103]: coalesce: the arguments have no common type: DECIMAL(10, 2), TIMESTAMP(3)
  1 | SELECT coalesce(price, ts) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^
hint: CAST them to one type
====
SELECT 99999999999999999999999999999999999999999
---
error[SQL-1011]: 99999999999999999999999999999999999999999 does not fit a DECIMAL of 38 digits
  1 | SELECT 99999999999999999999999999999999999999999
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
====
SELECT 300Y
---
error[SQL-1011]: 300Y does not fit TINYINT
  1 | SELECT 300Y
    |        ^^^^
====
SELECT sum(ts) FROM bid
---
error[SQL-1103]: sum: argument 1 is TIMESTAMP(3), wanted DOUBLE
  1 | SELECT sum(ts) FROM bid
    |        ^^^^^^^
hint: write CAST(.. AS DOUBLE) if that is meant
====
SELECT price FROM bid GROUP BY channel
---
error[SQL-1061]: column "price" is neither in GROUP BY nor in an aggregate
  1 | SELECT price FROM bid GROUP BY channel
    |        ^^^^^
hint: add it to GROUP BY, or write any_value(price)
====
SELECT channel, count(*) FROM bid
---
error[SQL-1061]: column "channel" is neither in GROUP BY nor in an aggregate
  1 | SELECT channel, count(*) FROM bid
    |        ^^^^^^^
hint: write any_value(channel), or GROUP BY channel
====
SELECT count(*) FROM bid WHERE count(*) > 1
---
error[SQL-1062]: the aggregate count cannot be used in WHERE
  1 | SELECT count(*) FROM bid WHERE count(*) > 1
    |                                ^^^^^^^^
hint: filter groups with HAVING
====
SELECT sum(count(*)) FROM bid
---
error[SQL-1062]: the aggregate count cannot be used in an aggregate
  1 | SELECT sum(count(*)) FROM bid
    |            ^^^^^^^^
hint: aggregate first in a subquery
====
SELECT channel FROM bid GROUP BY count(*)
---
error[SQL-1062]: the aggregate count cannot be used in GROUP BY
  1 | SELECT channel FROM bid GROUP BY count(*)
    |                                  ^^^^^^^^
hint: group by a column or an expression of columns
====
SELECT channel FROM bid HAVING price > 1
---
error[SQL-1061]: column "price" is neither in GROUP BY nor in an aggregate
  1 | SELECT channel FROM bid HAVING price > 1
    |                                ^^^^^
hint: write any_value(price), or GROUP BY price
====
SELECT count(*) FROM bid GROUP BY channel ORDER BY price LIMIT 1
---
error[SQL-1061]: column "price" is neither in GROUP BY nor in an aggregate
  1 | SELECT count(*) FROM bid GROUP BY channel ORDER BY price LIMIT 1
    |                                                    ^^^^^
hint: add it to GROUP BY, or write any_value(price)
====
SELECT count(*) FROM bid JOIN city ON count(*) = size
---
error[SQL-1062]: the aggregate count cannot be used in ON
  1 | SELECT count(*) FROM bid JOIN city ON count(*) = size
    |                                       ^^^^^^^^
hint: aggregate first in a subquery
====
SELECT * FROM bid JOIN city ON price
---
error[SQL-1103]: ON takes a BOOLEAN, this is DECIMAL(10, 2)
  1 | SELECT * FROM bid JOIN city ON price
    |                                ^^^^^
hint: compare it with something
====
SELECT * FROM bid JOIN city USING (nothing)
---
error[SQL-1042]: column "nothing" does not exist in bid
  1 | SELECT * FROM bid JOIN city USING (nothing)
    |                                    ^^^^^^^
hint: there is auction, bidder, channel, price, ts
====
SELECT name FROM city UNION ALL SELECT name, size FROM city
---
error[SQL-1083]: the branches of UNION differ in width: 1 columns and 2
  1 | SELECT name FROM city UNION ALL SELECT name, size FROM city
    |                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: name the same columns in every branch
====
# caret: SELECT ts FROM bid
SELECT size FROM city UNION ALL SELECT ts FROM bid
---
error[SQL-1084]: column "size" of UNION has no common type: INT, TIMESTAMP(3)
  1 | SELECT size FROM city UNION ALL SELECT ts FROM bid
    |                                 ^^^^^^^^^^^^^^^^^^
hint: CAST it in one branch
====
VALUES (1, 2), (3)
---
error[SQL-1081]: the rows of VALUES differ in width: 2 and 1
  1 | VALUES (1, 2), (3)
    |                ^^^
hint: write NULL for a missing value
====
VALUES (1), (DATE '2013-01-01')
---
error[SQL-1082]: column 1 of VALUES has no common type: INT, DATE
  1 | VALUES (1), (DATE '2013-01-01')
    |         ^
hint: CAST the values to one type
====
SELECT channel LIKE 'a' ESCAPE 'ab' FROM bid
---
error[SQL-1011]: ESCAPE takes one character
  1 | SELECT channel LIKE 'a' ESCAPE 'ab' FROM bid
    |                                ^^^^
====
SELECT price & 1 FROM bid
---
error[SQL-1103]: bitwise_and: argument 1 is DECIMAL(10, 2), wanted an integer
  1 | SELECT price & 1 FROM bid
    |        ^^^^^^^^^
hint: usage: a & b
====
SELECT if(price, 1, 2) FROM bid
---
error[SQL-1103]: if takes a BOOLEAN condition, this is DECIMAL(10, 2)
  1 | SELECT if(price, 1, 2) FROM bid
    |           ^^^^^
hint: compare it with something
====
SELECT 1 = DATE '2013-01-01'
---
error[SQL-1103]: equal: INT and DATE cannot be compared
  1 | SELECT 1 = DATE '2013-01-01'
    |        ^^^^^^^^^^^^^^^^^^^^^
hint: CAST one side, for instance CAST(.. AS INT)
====
SELECT ?
---
error[SQL-1013]: the statement has 1 parameter, 0 are given
  1 | SELECT ?
    | ^^^^^^^^
hint: pass one value for each ?
====
SELECT date_trunc('fortnight', ts) FROM bid
---
error[SQL-1103]: date_trunc: 'fortnight' is no unit
  1 | SELECT date_trunc('fortnight', ts) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: units are year, quarter, month, week, day, hour, minute, second, millisecond, microsecond
====
# caret: SELECT auction FROM bid
INSERT INTO totals SELECT auction FROM bid
---
error[SQL-1090]: "totals" takes 3 columns, the query returns 1
  1 | INSERT INTO totals SELECT auction FROM bid
    |                    ^^^^^^^^^^^^^^^^^^^^^^^
hint: the columns are id, total, label
====
# caret: channel
INSERT INTO totals SELECT channel, price, channel FROM bid
---
error[SQL-1092]: column "id" is BIGINT, the query returns STRING
  1 | INSERT INTO totals SELECT channel, price, channel FROM bid
    |                           ^^^^^^^
hint: write CAST(channel AS BIGINT)
====
# caret: ts
INSERT INTO totals SELECT ts, price, channel FROM bid
---
error[SQL-1092]: column "id" is BIGINT, the query returns TIMESTAMP(3)
  1 | INSERT INTO totals SELECT ts, price, channel FROM bid
    |                           ^^
hint: give it a BIGINT
====
# caret: totals
INSERT INTO totals (total) SELECT price FROM bid
---
error[SQL-1093]: column "id" of totals is NOT NULL and is given no value
  1 | INSERT INTO totals (total) SELECT price FROM bid
    |             ^^^^^^
hint: add id to the column list
====
INSERT INTO totals (id, id) SELECT 1, 2
---
error[SQL-1045]: column "id" occurs twice in the list
  1 | INSERT INTO totals (id, id) SELECT 1, 2
    |                         ^^
====
INSERT INTO totals (idd) SELECT 1
---
error[SQL-1042]: column "idd" does not exist in totals
  1 | INSERT INTO totals (idd) SELECT 1
    |                     ^^^
hint: did you mean "id"?
====
INSERT INTO stamped (twice) SELECT 1
---
error[SQL-1091]: column "twice" of stamped cannot be written
  1 | INSERT INTO stamped (twice) SELECT 1
    |                      ^^^^^
hint: leave it out: it is computed, or filled by the connector
====
INSERT INTO totals VALUES (NULL, 1, 'a')
---
error[SQL-1093]: column "id" is NOT NULL and is given NULL
  1 | INSERT INTO totals VALUES (NULL, 1, 'a')
    |                            ^^^^
====
INSERT INTO bid SELECT * FROM bid
---
error[SQL-1094]: table "bid" cannot be written: connector datagen is a source only
  1 | INSERT INTO bid SELECT * FROM bid
    |             ^^^
hint: write to a table whose connector takes rows, such as filesystem or print
====
SELECT * FROM totals
---
error[SQL-1047]: table "totals" cannot be read: connector print is a sink only
  1 | SELECT * FROM totals
    |               ^^^^^^
hint: read the tables its rows come from
====
# a constant text that no row can make a number of is refused where it stands; TRY_CAST and the lazy COALESCE, IF and CASE may have it
SELECT * FROM bid WHERE auction = 'x'
---
error[SQL-1106]: 'x' is a text that cannot be read as BIGINT
  1 | SELECT * FROM bid WHERE auction = 'x'
    |                                   ^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT * FROM bid WHERE price BETWEEN '1' AND 'many'
---
error[SQL-1106]: 'many' is a text that cannot be read as DOUBLE
  1 | SELECT * FROM bid WHERE price BETWEEN '1' AND 'many'
    |                                               ^^^^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT * FROM bid WHERE auction IN (1, 'two')
---
error[SQL-1106]: 'two' is a text that cannot be read as BIGINT
  1 | SELECT * FROM bid WHERE auction IN (1, 'two')
    |                                        ^^^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT auction + 'one' FROM bid
---
error[SQL-1106]: 'one' is a text that cannot be read as BIGINT
  1 | SELECT auction + 'one' FROM bid
    |                  ^^^^^
hint: write a constant of that type; || joins texts
====
SELECT CASE auction WHEN 'x' THEN 1 END FROM bid
---
error[SQL-1106]: 'x' is a text that cannot be read as BIGINT
  1 | SELECT CASE auction WHEN 'x' THEN 1 END FROM bid
    |                          ^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT NULLIF(auction, 'x') FROM bid
---
error[SQL-1106]: 'x' is a text that cannot be read as BIGINT
  1 | SELECT NULLIF(auction, 'x') FROM bid
    |                        ^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT * FROM person WHERE born < 'yesterday'
---
error[SQL-1106]: 'yesterday' is a text that cannot be read as DATE
  1 | SELECT * FROM person WHERE born < 'yesterday'
    |                                   ^^^^^^^^^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT * FROM person WHERE born = '2024-13-01'
---
error[SQL-1106]: '2024-13-01' is a text that cannot be read as DATE
  1 | SELECT * FROM person WHERE born = '2024-13-01'
    |                                   ^^^^^^^^^^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT * FROM bid WHERE ts >= 'noon'
---
error[SQL-1106]: 'noon' is a text that cannot be read as TIMESTAMP(3)
  1 | SELECT * FROM bid WHERE ts >= 'noon'
    |                               ^^^^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT (auction > 1) = 'maybe' FROM bid
---
error[SQL-1106]: 'maybe' is a text that cannot be read as BOOLEAN
  1 | SELECT (auction > 1) = 'maybe' FROM bid
    |                        ^^^^^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT abs('x') FROM bid
---
error[SQL-1106]: 'x' is a text that cannot be read as DOUBLE
  1 | SELECT abs('x') FROM bid
    |            ^^^
hint: write a constant of that type
====
SELECT SUM('x') FROM bid
---
error[SQL-1106]: 'x' is a text that cannot be read as DOUBLE
  1 | SELECT SUM('x') FROM bid
    |            ^^^
hint: write a constant of that type
====
SELECT * FROM bid AS a JOIN person AS b ON a.bidder = 'b.id'
---
error[SQL-1106]: 'b.id' is a text that cannot be read as BIGINT
  1 | SELECT * FROM bid AS a JOIN person AS b ON a.bidder = 'b.id'
    |                                                       ^^^^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT * FROM bid WHERE (auction, bidder) = (1, 'x')
---
error[SQL-1106]: 'x' is a text that cannot be read as BIGINT
  1 | SELECT * FROM bid WHERE (auction, bidder) = (1, 'x')
    |                                                 ^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
SELECT channel, SUM(price) FROM bid GROUP BY channel HAVING SUM(price) > 'lots'
---
error[SQL-1106]: 'lots' is a text that cannot be read as DOUBLE
  1 | SELECT channel, SUM(price) FROM bid GROUP BY channel HAVING SUM(price) > 'lots'
    |                                                                          ^^^^^^
hint: write a constant of that type, or compare text with text: CAST(.. AS STRING)
====
# months are a word of 32 bits
SELECT INTERVAL '178956970-8' YEAR TO MONTH
---
error[SQL-1011]: the interval is too long
  1 | SELECT INTERVAL '178956970-8' YEAR TO MONTH
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: an interval has at most 178956970 years and 7 months
====
SELECT INTERVAL '999999999999' YEAR
---
error[SQL-1011]: the interval is too long
  1 | SELECT INTERVAL '999999999999' YEAR
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: an interval has at most 178956970 years and 7 months
