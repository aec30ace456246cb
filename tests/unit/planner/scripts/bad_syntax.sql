SELEC 1
---
error[SQL-1001]: unexpected "SELEC"
  1 | SELEC 1
    | ^^^^^
hint: did you mean "SELECT"?
====
SELECT 1 FORM bid
---
error[SQL-1001]: unexpected "FORM"
  1 | SELECT 1 FORM bid
    |          ^^^^
hint: did you mean "FROM"?
====
SELECT price FROM bid WHER price > 1
---
error[SQL-1001]: unexpected "WHER"
  1 | SELECT price FROM bid WHER price > 1
    |                       ^^^^
hint: did you mean "WHERE"?
====
SELECT price FROM bid GRUOP BY price
---
error[SQL-1001]: unexpected "GRUOP"
  1 | SELECT price FROM bid GRUOP BY price
    |                       ^^^^^
hint: did you mean "GROUP BY"?
====
SELECT price FROM bid ORDER BT price
---
error[SQL-1001]: unexpected "BT"
  1 | SELECT price FROM bid ORDER BT price
    |                             ^^
hint: did you mean "BY"?
====
SELECT price FROM bid LIMT 5
---
error[SQL-1001]: unexpected "LIMT"
  1 | SELECT price FROM bid LIMT 5
    |                       ^^^^
hint: did you mean "LIMIT"?
====
SELECT price FROM bid HAVIN price > 1
---
error[SQL-1001]: unexpected "HAVIN"
  1 | SELECT price FROM bid HAVIN price > 1
    |                       ^^^^^
hint: did you mean "HAVING"?
====
SELECT price FROM bid LEF JOIN city ON price = size
---
error[SQL-1001]: unexpected "LEF" before JOIN
  1 | SELECT price FROM bid LEF JOIN city ON price = size
    |                       ^^^
hint: did you mean "LEFT"? write AS LEF if it is the table's alias
====
SELECT price FROM bid JION city ON price = size
---
error[SQL-1001]: unexpected "JION"
  1 | SELECT price FROM bid JION city ON price = size
    |                       ^^^^
hint: did you mean "JOIN"?
====
SELECT price FROM bid JOIN city OM price = size
---
error[SQL-1001]: unexpected "OM"
  1 | SELECT price FROM bid JOIN city OM price = size
    |                                 ^^
hint: did you mean "ON"?
====
SELECT price FROM bid JOIN city
---
error[SQL-1001]: the statement ends where ON or USING was expected
  1 | SELECT price FROM bid JOIN city
    |                                ^
hint: write INNER JOIN t ON a.key = b.key; CROSS JOIN pairs every row with every row
====
SELECT price FROM bid CROSS JOIN city ON price = size
---
error[SQL-1001]: CROSS JOIN takes no condition
  1 | SELECT price FROM bid CROSS JOIN city ON price = size
    |                                       ^^
hint: write JOIN instead of CROSS JOIN
====
SELECT auction, FROM bid
---
error[SQL-1001]: an expression is missing before FROM
  1 | SELECT auction, FROM bid
    |                 ^^^^
hint: leave out the comma before it; a column of that name is quoted: `from`
====
SELECT FROM bid
---
error[SQL-1001]: an expression is missing before FROM
  1 | SELECT FROM bid
    |        ^^^^
hint: write SELECT *; a column of that name is quoted: `from`
====
SELECT auction, from FROM bid
---
error[SQL-1001]: an expression is missing before FROM
  1 | SELECT auction, from FROM bid
    |                 ^^^^
hint: leave out the comma before it; a column of that name is quoted: `from`
====
SELECT price, , auction FROM bid
---
error[SQL-1001]: unexpected ",": an expression was expected
  1 | SELECT price, , auction FROM bid
    |               ^
====
INSERT INTO totals SELECT FROM bid
---
error[SQL-1001]: an expression is missing before FROM
  1 | INSERT INTO totals SELECT FROM bid
    |                           ^^^^
hint: write SELECT *; a column of that name is quoted: `from`
====
SELECT * FROM bid WHERE
---
error[SQL-1001]: the statement ends where an expression was expected
  1 | SELECT * FROM bid WHERE
    |                        ^
====
SELECT * FROM
---
error[SQL-1001]: the statement ends where a table was expected
  1 | SELECT * FROM
    |              ^
====
SELECT (1 + 2 FROM bid
---
error[SQL-1001]: unexpected "FROM": ")" was expected
  1 | SELECT (1 + 2 FROM bid
    |               ^^^^
====
SELECT 1) FROM bid
---
error[SQL-1001]: unexpected ")": the end of the query or its next part was expected
  1 | SELECT 1) FROM bid
    |         ^
hint: a parenthesis closes that was never opened: leave it out
====
SELECT price FROM bid WHERE price > 1 2
---
error[SQL-1001]: unexpected "2": the end of the query or its next part was expected
  1 | SELECT price FROM bid WHERE price > 1 2
    |                                       ^
====
SELECT sum(price FROM bid
---
error[SQL-1001]: unexpected "FROM": ")" was expected
  1 | SELECT sum(price FROM bid
    |                  ^^^^
====
SELECT CASE WHEN price > 1 THEN 2 FROM bid
---
error[SQL-1001]: unexpected "FROM": WHEN, ELSE or END was expected
  1 | SELECT CASE WHEN price > 1 THEN 2 FROM bid
    |                                   ^^^^
====
SELECT CASE price END FROM bid
---
error[SQL-1001]: unexpected "END": WHEN was expected
  1 | SELECT CASE price END FROM bid
    |                   ^^^
====
SELECT CAST(price AS) FROM bid
---
error[SQL-1001]: unexpected ")": a type was expected
  1 | SELECT CAST(price AS) FROM bid
    |                     ^
====
SELECT CAST(price, INT) FROM bid
---
error[SQL-1001]: unexpected ",": AS was expected
  1 | SELECT CAST(price, INT) FROM bid
    |                  ^
hint: write CAST(.. AS INT)
====
SELECT price BETWEEN 1 OR 2 FROM bid
---
error[SQL-1001]: unexpected "OR": AND was expected
  1 | SELECT price BETWEEN 1 OR 2 FROM bid
    |                        ^^
====
SELECT price IN () FROM bid
---
error[SQL-1001]: unexpected ")": an expression was expected
  1 | SELECT price IN () FROM bid
    |                  ^
====
SELECT price IS 3 FROM bid
---
error[SQL-1001]: unexpected "3": NULL, NOT NULL, TRUE or FALSE was expected
  1 | SELECT price IS 3 FROM bid
    |                 ^
hint: write = 3
====
SELECT price LIKE FROM bid
---
error[SQL-1001]: an expression is missing before FROM
  1 | SELECT price LIKE FROM bid
    |                   ^^^^
====
SELECT count(*) FROM bid WHERE price = *
---
error[SQL-1001]: * means all columns only in the SELECT list and in COUNT(*)
  1 | SELECT count(*) FROM bid WHERE price = *
    |                                        ^
====
SELECT * FROM order
---
error[SQL-1008]: ORDER is a reserved word and cannot be a table here
  1 | SELECT * FROM order
    |               ^^^^^
hint: quote it to use it as a name: `order`
====
SELECT price AS select FROM bid
---
error[SQL-1008]: SELECT is a reserved word and cannot be a column alias here
  1 | SELECT price AS select FROM bid
    |                 ^^^^^^
hint: quote it to use it as a name: `select`
====
SELECT price AS 'p' FROM bid
---
error[SQL-1001]: a string cannot be a column alias
  1 | SELECT price AS 'p' FROM bid
    |                 ^^^
hint: quote names with backticks: `p`
====
SELECT 10abc
---
error[SQL-1011]: 10abc is neither a number nor a name
  1 | SELECT 10abc
    |        ^^
hint: quote it if it is a name, or write a space
====
SELECT 1..2
---
error[SQL-1011]: 1.. is neither a number nor a name
  1 | SELECT 1..2
    |        ^^
hint: quote it if it is a name, or write a space
====
SELECT 'abc
---
error[SQL-1003]: the string that begins here never ends
  1 | SELECT 'abc
    |        ^
hint: close it with '; within a text it is doubled: 'it''s'
====
SELECT `abc FROM bid
---
error[SQL-1003]: the quoted name that begins here never ends
  1 | SELECT `abc FROM bid
    |        ^
hint: close it with `
====
/* never closed
SELECT 1
---
error[SQL-1003]: the comment that begins here never ends
  1 | /* never closed
    | ^^
hint: close it with */
====
SELECT ‘price’ FROM bid
---
error[SQL-1002]: the character ‘ is not allowed in SQL
  1 | SELECT ‘price’ FROM bid
    |        ^
hint: replace it by the plain '
====
SELECT price FROM bid
---
error[SQL-1002]: the character U+00A0 is not allowed in SQL
  1 | SELECT price�FROM bid
    |             ^
hint: replace it by a plain space
====
SELECT price FROM bid LIMIT x
---
error[SQL-1012]: a number of rows is a whole number such as 10
  1 | SELECT price FROM bid LIMIT x
    |                             ^
hint: write the number itself, or ? and pass it: LIMIT 10
====
SELECT price FROM bid LIMIT 1.5
---
error[SQL-1012]: a number of rows is a whole number such as 10
  1 | SELECT price FROM bid LIMIT 1.5
    |                             ^^^
hint: write the number itself, or ? and pass it: LIMIT 10
====
SELECT price FROM bid LIMIT 1 LIMIT 2
---
error[SQL-1001]: LIMIT is given twice
  1 | SELECT price FROM bid LIMIT 1 LIMIT 2
    |                               ^^^^^
====
FROM bid |> KEEP auction
---
error[SQL-1001]: KEEP is no operator of a pipe
  1 | FROM bid |> KEEP auction
    |             ^^^^
hint: its operators are WHERE, SELECT, EXTEND, SET, DROP, AS, AGGREGATE, ORDER BY, LIMIT, JOIN, UNION
====
FROM bid |> WERE auction > 3
---
error[SQL-1001]: WERE is no operator of a pipe
  1 | FROM bid |> WERE auction > 3
    |             ^^^^
hint: did you mean "WHERE"?
====
WITH a AS SELECT 1 SELECT * FROM a
---
error[SQL-1001]: unexpected "SELECT": "(" was expected
  1 | WITH a AS SELECT 1 SELECT * FROM a
    |           ^^^^^^
hint: a semicolon ends the statement before it
====
WITH a (SELECT 1) SELECT * FROM a
---
error[SQL-1001]: unexpected "(": AS was expected
  1 | WITH a (SELECT 1) SELECT * FROM a
    |        ^
====
SELECT 1 UNION
---
error[SQL-1001]: the statement ends where SELECT, VALUES or WITH was expected
  1 | SELECT 1 UNION
    |               ^
====
SELECT 1 ORDER BY
---
error[SQL-1001]: the statement ends where an expression was expected
  1 | SELECT 1 ORDER BY
    |                  ^
====
SELECT INTERVAL 5 MINUTS
---
error[SQL-1011]: MINUTS is no unit of an interval
  1 | SELECT INTERVAL 5 MINUTS
    |                   ^^^^^^
hint: did you mean "MINUTE"?
====
SELECT INTERVAL MINUTE
---
error[SQL-1001]: unexpected "MINUTE": a number such as '10' after INTERVAL was expected
  1 | SELECT INTERVAL MINUTE
    |                 ^^^^^^
====
SELECT INTERVAL 'five minutes'
---
error[SQL-1011]: 'five minutes' is no interval
  1 | SELECT INTERVAL 'five minutes'
    |        ^^^^^^^^^^^^^^^^^^^^^^^
hint: write INTERVAL '10' MINUTE or INTERVAL '1 hour 30 minutes'
====
SELECT INTERVAL '1:2' DAY TO SECOND
---
error[SQL-1011]: '1:2' is no interval of DAY TO SECOND
  1 | SELECT INTERVAL '1:2' DAY TO SECOND
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write it as '1 02:03:04'
====
SELECT DATE '2013-02-30'
---
error[SQL-1011]: '2013-02-30' is no DATE
  1 | SELECT DATE '2013-02-30'
    |        ^^^^^^^^^^^^^^^^^
hint: write it as '2013-01-31'
====
SELECT TIMESTAMP '2013-01-01T00:00:00Z'
---
error[SQL-1011]: a TIMESTAMP has no time zone
  1 | SELECT TIMESTAMP '2013-01-01T00:00:00Z'
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write TIMESTAMP_LTZ '2013-01-01T00:00:00Z' for an instant
====
SELECT TIMESTAMP 'noon'
---
error[SQL-1011]: 'noon' is no TIMESTAMP
  1 | SELECT TIMESTAMP 'noon'
    |        ^^^^^^^^^^^^^^^^
hint: write it as '2013-01-31 12:30:00'
====
SELECT extract(century FROM ts) FROM bid
---
error[SQL-1011]: century is no part EXTRACT can take
  1 | SELECT extract(century FROM ts) FROM bid
    |                ^^^^^^^
hint: parts are year, quarter, month, week, day, hour, minute, second, dow, doy, dayofweek, dayofyear, epoch
====
CREAT TABLE t (a INT) WITH ('connector' = 'print')
---
error[SQL-1001]: unexpected "CREAT"
  1 | CREAT TABLE t (a INT) WITH ('connector' = 'print')
    | ^^^^^
hint: did you mean "CREATE"?
====
CREATE TABEL t (a INT) WITH ('connector' = 'print')
---
error[SQL-1001]: unexpected "TABEL"
  1 | CREATE TABEL t (a INT) WITH ('connector' = 'print')
    |        ^^^^^
hint: did you mean "TABLE"?
====
SHOW TABELS
---
error[SQL-1001]: unexpected "TABELS"
  1 | SHOW TABELS
    |      ^^^^^^
hint: did you mean "TABLES"?
====
EXPLAIN FOO SELECT 1
---
error[SQL-1001]: unexpected "FOO": a query or UPDATE, DELETE or MERGE was expected
  1 | EXPLAIN FOO SELECT 1
    |         ^^^
====
EXPLAIN
---
error[SQL-1001]: the statement ends where a query or UPDATE, DELETE or MERGE was expected
  1 | EXPLAIN
    |        ^
====
DESCRIBE
---
error[SQL-1001]: the statement ends where EXTENDED, FORMATTED, JOB, a name, a query, a text in single quotes or TABLE was expected
  1 | DESCRIBE
    |         ^
====
SET 'a' 'b'
---
error[SQL-1001]: unexpected 'b': "=" or the end of the statement was expected
  1 | SET 'a' 'b'
    |         ^^^
hint: write SET 'key' = 'value'
====
INSERT INTO totals SELET 1
---
error[SQL-1001]: unexpected "SELET"
  1 | INSERT INTO totals SELET 1
    |                    ^^^^^
hint: did you mean "SELECT"?
====
INSERT totals SELECT 1
---
error[SQL-1001]: unexpected "totals": INTO or OVERWRITE was expected
  1 | INSERT totals SELECT 1
    |        ^^^^^^
hint: write INSERT INTO totals
====
INSERT INTO totals (id,) SELECT 1
---
error[SQL-1001]: unexpected ")": a name was expected
  1 | INSERT INTO totals (id,) SELECT 1
    |                        ^
hint: leave out the comma before it
====
BEGIN STATEMENT SET; END
---
error[SQL-1004]: the statement set holds no INSERT
  1 | BEGIN STATEMENT SET; END
    | ^^^^^^^^^^^^^^^^^^^^^^^^
hint: write INSERT INTO .. ; before END
====
STOP JOB x
---
error[SQL-1001]: unexpected "x": a text in single quotes was expected
  1 | STOP JOB x
    |          ^
====
DROP TABEL bid
---
error[SQL-1001]: unexpected "TABEL"
  1 | DROP TABEL bid
    |      ^^^^^
hint: did you mean "TABLE"?
====
SELECT price FROM bid; SELECT 1 +
---
error[SQL-1001]: the statement ends where an expression was expected
  1 | SELECT price FROM bid; SELECT 1 +
    |                                  ^
====
VERIFY SELECT 1
---
error[SQL-1001]: the statement ends where AGAINST was expected
  1 | VERIFY SELECT 1
    |                ^
====
VERIFY SELECT 1 AGAINST STREAM
---
error[SQL-1001]: the statement ends where AGAINST was expected
  1 | VERIFY SELECT 1 AGAINST STREAM
    |                               ^
====
CREATE MATERIALISED VIEW v AS SELECT 1
---
error[SQL-1001]: unexpected "MATERIALISED"
  1 | CREATE MATERIALISED VIEW v AS SELECT 1
    |        ^^^^^^^^^^^^
hint: did you mean "MATERIALIZED"?
====
CREATE MATERIALIZED VIEW v SELECT 1
---
error[SQL-1001]: unexpected "SELECT": AS, COMMENT or "(" was expected
  1 | CREATE MATERIALIZED VIEW v SELECT 1
    |                            ^^^^^^
hint: a semicolon ends the statement before it
