SELECT * FROM bid b JOIN person FOR SYSTEM_TIME AS OF b.ts AS p ON b.bidder = p.id
---
error[SQL-1724]: this is no versioned table
  1 | SELECT * FROM bid b JOIN person FOR SYSTEM_TIME AS OF b.ts AS p ON b.bidder = p.id
    |                          ^^^^^^
hint: declare a PRIMARY KEY and a WATERMARK, or join a view that keeps the last row of each key: ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) = 1
====
SELECT * FROM bid b JOIN person FOR SYSTEM_TIME AS OF b.price AS p ON b.bidder = p.id
---
error[SQL-1722]: FOR SYSTEM_TIME AS OF takes a time attribute of the left side
  1 | SELECT * FROM bid b JOIN person FOR SYSTEM_TIME AS OF b.price AS p ON b.bidder = p.id
    |                                                       ^^^^^^^
hint: write FOR SYSTEM_TIME AS OF b.ts
====
SELECT * FROM city c JOIN person FOR SYSTEM_TIME AS OF c.size AS p ON c.name = p.city
---
error[SQL-1722]: FOR SYSTEM_TIME AS OF takes a time attribute of the left side
  1 | SELECT * FROM city c JOIN person FOR SYSTEM_TIME AS OF c.size AS p ON c.name = p.city
    |                                                        ^^^^^^
hint: declare a WATERMARK FOR a column of the left table; a join of two streams ends its time
====
SELECT * FROM bid b JOIN person FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' AS p ON b.bidder = p.id
---
error[SQL-1722]: FOR SYSTEM_TIME AS OF takes a time attribute of the left side
  1 | SELECT * FROM bid b JOIN person FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' AS p ON b.bidder = p.id
    |                                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write FOR SYSTEM_TIME AS OF b.ts
====
SELECT * FROM bid b JOIN person FOR SYSTEM_TIME AS OF PROCTIME() AS p ON b.bidder = p.id
---
error[SQL-1723]: a stream cannot be looked up as of processing time
  1 | SELECT * FROM bid b JOIN person FOR SYSTEM_TIME AS OF PROCTIME() AS p ON b.bidder = p.id
    |                          ^^^^^^
hint: write FOR SYSTEM_TIME AS OF an event-time column of the left side, or look up a bounded table
====
SELECT * FROM bid b RIGHT JOIN city FOR SYSTEM_TIME AS OF b.ts AS c ON b.channel = c.name
---
error[SQL-1721]: FOR SYSTEM_TIME AS OF goes with JOIN and LEFT JOIN, this is a RIGHT join
  1 | SELECT * FROM bid b RIGHT JOIN city FOR SYSTEM_TIME AS OF b.ts AS c ON b.channel = c.name
    |                                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write JOIN or LEFT JOIN, the versioned table on the right
====
SELECT * FROM bid FOR SYSTEM_TIME AS OF ts
---
error[SQL-1721]: FOR SYSTEM_TIME AS OF is allowed after JOIN only
  1 | SELECT * FROM bid FOR SYSTEM_TIME AS OF ts
    |                   ^^^^^^^^^^^^^^^^^^^^^^^^
hint: write .. JOIN t FOR SYSTEM_TIME AS OF a time attribute of the table before JOIN
====
SELECT * FROM bid b JOIN city FOR SYSTEM_TIME b.ts ON b.channel = name
---
error[SQL-1001]: unexpected "b": AS was expected
  1 | SELECT * FROM bid b JOIN city FOR SYSTEM_TIME b.ts ON b.channel = name
    |                                               ^
====
SELECT * FROM bid b JOIN (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id, city ORDER BY joined DESC) AS n FROM person) WHERE n = 1) FOR SYSTEM_TIME AS OF b.ts AS p ON b.bidder = p.id
---
error[SQL-1725]: a temporal join compares the whole key of the versioned table; city is missing
  1 | Y id, city ORDER BY joined DESC) AS n FROM person) WHERE n = 1) FOR SYSTEM_TIME AS OF b.ts AS p ON b.bidder = p.id
    |                                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: add AND .. = city to ON
====
SELECT * FROM bid b JOIN (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY joined) AS n FROM person) WHERE n = 1) FOR SYSTEM_TIME AS OF b.ts AS p ON b.bidder = p.id
---
error[SQL-1724]: this is no versioned table
  1 | SELECT * FROM bid b JOIN (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY joined) AS n FROM p
    |                          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: declare a PRIMARY KEY and a WATERMARK, or join a view that keeps the last row of each key: ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) = 1
====
SELECT * FROM bid NATURAL JOIN city
---
error[SQL-1726]: NATURAL JOIN of tables that share no column name
  1 | SELECT * FROM bid NATURAL JOIN city
    |                   ^^^^^^^^^^^^^^^^^
hint: write the condition with ON; CROSS JOIN pairs every row with every row
====
SELECT * FROM bid NATURAL CROSS JOIN city
---
error[SQL-1001]: NATURAL does not go with CROSS JOIN
  1 | SELECT * FROM bid NATURAL CROSS JOIN city
    |                   ^^^^^^^^^^^^^^^^^^
hint: leave NATURAL out
====
SELECT * FROM bid NATURAL city
---
error[SQL-1001]: unexpected "city": JOIN was expected
  1 | SELECT * FROM bid NATURAL city
    |                           ^^^^
====
SELECT * FROM bid ASOF JOIN city ON channel = name
---
error[SQL-1601]: ASOF JOIN takes equalities and one comparison of both sides by >=, >, <= or <
  1 | SELECT * FROM bid ASOF JOIN city ON channel = name
    |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write ASOF JOIN t ON a.key = t.key AND a.ts >= t.ts, and filter in WHERE or in a subquery
