SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY price PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1744]: the ORDER BY of MATCH_RECOGNIZE begins with a time attribute, ascending: rows are final when time has passed them
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY price PATTERN (A) DEFINE A AS TRUE)
    |                                             ^^^^^
hint: ORDER BY ts
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts DESC PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1744]: the ORDER BY of MATCH_RECOGNIZE begins with a time attribute, ascending: rows are final when time has passed them
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts DESC PATTERN (A) DEFINE A AS TRUE)
    |                                             ^^^^^^^
hint: ORDER BY ts
====
SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY channel MEASURES A.price AS p PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1744]: MATCH_RECOGNIZE needs an ORDER BY
  1 | SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY channel MEASURES A.price AS p PATTERN (A) DEFINE A AS TRUE)
    |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: ORDER BY ts
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1743]: the matches have no column
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts PATTERN (A) DEFINE A AS TRUE)
    |                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: add MEASURES FIRST(A.ts) AS start_time, or PARTITION BY
====
SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY upper(channel) ORDER BY ts PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1601]: PARTITION BY takes columns here
  1 | SELECT * FROM bid MATCH_RECOGNIZE (PARTITION BY upper(channel) ORDER BY ts PATTERN (A) DEFINE A AS TRUE)
    |                                                 ^^^^^^^^^^^^^^
hint: compute it in a subquery of FROM, give it a name, and use that name here
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES B.price AS p PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1742]: "B" is no variable of the pattern
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES B.price AS p PATTERN (A) DEFINE A AS TRUE)
    |                                                         ^
hint: there is A
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES UPP.price AS p PATTERN (UP) DEFINE UP AS TRUE)
---
error[SQL-1742]: "UPP" is no variable of the pattern
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES UPP.price AS p PATTERN (UP) DEFINE UP AS TRUE)
    |                                                         ^^^
hint: did you mean "UP"?
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.prise AS p PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1042]: column "prise" does not exist in bid
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.prise AS p PATTERN (A) DEFINE A AS TRUE)
    |                                                           ^^^^^
hint: did you mean "price"?
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES bid.price AS p PATTERN (A) DEFINE A AS TRUE)
---
error[SQL-1742]: "bid" is no variable of the pattern
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES bid.price AS p PATTERN (A) DEFINE A AS TRUE)
    |                                                         ^^^
hint: there is A
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A* B?) DEFINE A AS TRUE)
---
error[SQL-1741]: the pattern may match no row at all
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A* B?) DEFINE A AS TRUE)
    |                                                                               ^^^^^
hint: ask for at least one row: write A+ instead of A*
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A{2000} B) DEFINE A AS TRUE)
---
error[SQL-1741]: the pattern has 2,001 places with its repetitions written out, over the limit of 2,000
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A{2000} B) DEFINE A AS TRUE)
    |                                                                               ^^^^^^^^^
hint: count rows in a DEFINE instead: B AS COUNT(B.*) <= 5000
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A{3,2}) DEFINE A AS TRUE)
---
error[SQL-1741]: nothing can be repeated 3 to 2 times
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A{3,2}) DEFINE A AS TRUE)
    |                                                                                ^^^^^
hint: write {n}, {n,} or {n,m} with n <= m and m at least 1
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (^ A B $) DEFINE A AS TRUE)
---
error[SQL-1601]: an anchor in a pattern is not supported
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (^ A B $) DEFINE A AS TRUE)
    |                                                                               ^
hint: leave it out: a stream's partition has no last row, and its first is one like any other
====
# the anchor and not the first such letter of the text is blamed
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES `a$`.price AS p PATTERN (`a$` B ^) DEFINE B AS TRUE)
---
error[SQL-1601]: an anchor in a pattern is not supported
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES `a$`.price AS p PATTERN (`a$` B ^) DEFINE B AS TRUE)
    |                                                                                         ^
hint: leave it out: a stream's partition has no last row, and its first is one like any other
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A || B) DEFINE A AS TRUE)
---
error[SQL-1001]: unexpected "|" in the pattern
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A || B) DEFINE A AS TRUE)
    |                                                                                  ^
hint: a pattern has variables, ( ) |, PERMUTE(..) and the quantifiers * + ? {n} {n,} {n,m}; a ? behind a quantifier matches as few rows as possible
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN () DEFINE A AS TRUE)
---
error[SQL-1001]: the pattern ends where a variable was expected
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN () DEFINE A AS TRUE)
    |                                                                               ^
hint: write PATTERN (A B+ C?)
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A (B) DEFINE A AS TRUE)
---
error[SQL-1001]: the statement ends where DEFINE was expected
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A (B) DEFINE A AS TRUE)
    |                                                                                                      ^
hint: a closing parenthesis is missing
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATERN (A) DEFINE A AS TRUE)
---
error[SQL-1001]: unexpected "PATERN"
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATERN (A) DEFINE A AS TRUE)
    |                                                                      ^^^^^^
hint: did you mean "PATTERN"?
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B))
---
error[SQL-1001]: unexpected ")": DEFINE was expected
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B))
    |                                                                                   ^
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (PERMUTE(A, B, C, D, E, F, G)) DEFINE A AS TRUE)
---
error[SQL-1741]: PERMUTE takes at most 6 patterns, not 7
  1 | OM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (PERMUTE(A, B, C, D, E, F, G)) DEFINE A AS TRUE)
    |                                                                    ^^^^^^^
hint: match any of them with (A | B | ..){n} and test the rest in a DEFINE
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p AFTER MATCH SKIP TO FIRST A PATTERN (A B) DEFINE A AS TRUE)
---
error[SQL-1745]: every match begins with A, so the same match would be found again
  1 | bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p AFTER MATCH SKIP TO FIRST A PATTERN (A B) DEFINE A AS TRUE)
    |                                                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write AFTER MATCH SKIP TO NEXT ROW, or PAST LAST ROW
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p AFTER MATCH SKIP TO LAST C PATTERN (A B) DEFINE A AS TRUE)
---
error[SQL-1742]: "C" is no variable of the pattern
  1 |  bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p AFTER MATCH SKIP TO LAST C PATTERN (A B) DEFINE A AS TRUE)
    |                                                                                  ^
hint: there is A, B
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B) DEFINE A AS TRUE)
---
error[SQL-1601]: WITH UNMATCHED is not supported yet
  1 | ECOGNIZE (ORDER BY ts MEASURES A.price AS p ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A B) DEFINE A AS TRUE)
    |                                                                ^^^^
hint: leave it out: rows of no match are not shown, and no match is empty
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) WITHIN INTERVAL '1' MONTH DEFINE A AS TRUE)
---
error[SQL-1705]: WITHIN takes an interval of days or less, longer than nothing
  1 | M bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) WITHIN INTERVAL '1' MONTH DEFINE A AS TRUE)
    |                                                                               ^^^^^^^^^^^^^^^^^^
hint: write WITHIN INTERVAL '10' MINUTE
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) WITHIN 10 DEFINE A AS TRUE)
---
error[SQL-1705]: WITHIN takes an interval of days or less, longer than nothing
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) WITHIN 10 DEFINE A AS TRUE)
    |                                                                                           ^^
hint: write WITHIN INTERVAL '10' MINUTE
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) SUBSET A = (A, B) DEFINE A AS TRUE)
---
error[SQL-1742]: "A" is a variable already
  1 | CT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) SUBSET A = (A, B) DEFINE A AS TRUE)
    |                                                                                       ^
hint: give the subset another name
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) SUBSET U = (A, C) DEFINE A AS TRUE)
---
error[SQL-1742]: "C" is no variable of the pattern
  1 | CT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) SUBSET U = (A, C) DEFINE A AS TRUE)
    |                                                                                               ^
hint: there is A, B
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE C AS TRUE)
---
error[SQL-1742]: the pattern has no variable "C"
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE C AS TRUE)
    |                                                                                           ^
hint: there is A, B
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE A AS TRUE, A AS FALSE)
---
error[SQL-1742]: variable "A" is defined twice
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE A AS TRUE, A AS FALSE)
    |                                                                                                      ^
hint: join both conditions with AND
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE A AS A.price)
---
error[SQL-1103]: DEFINE takes a BOOLEAN, this is DECIMAL(10, 2)
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE A AS A.price)
    |                                                                                                ^^^^^^^
hint: compare it with something
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE A AS NEXT(A.price) > 1)
---
error[SQL-1601]: NEXT looks at rows that are not matched yet and may never come; it is not supported
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE A AS NEXT(A.price) > 1)
    |                                                                                                ^^^^^^^^^^^^^
hint: add a variable behind it: PATTERN (.. A B) with B AS TRUE, and read B.x
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS B.price / A.price > 1)
---
error[SQL-1601]: divide over several rows of a match is not supported in DEFINE
  1 | ECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS B.price / A.price > 1)
    |                                                                                             ^^^^^^^^^^^^^^^^^
hint: compute with DOUBLE: CAST(A.x AS DOUBLE)
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS concat(B.channel, A.channel) = 'ab')
---
error[SQL-1601]: concat over several rows of a match is not supported in DEFINE
  1 |  MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS concat(B.channel, A.channel) = 'ab')
    |                                                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: compute it at one row, as LAST(f(A.x)); between rows there are + - * /, ABS, TIMESTAMPDIFF, comparisons, AND, OR, NOT and IS NULL
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS STDDEV(B.price) > 1)
---
error[SQL-1601]: stddev_samp of DOUBLE is not supported in DEFINE
  1 | ELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS STDDEV(B.price) > 1)
    |                                                                                               ^^^^^^^^^^^^^^^
hint: in DEFINE there are COUNT, SUM, MIN, MAX, and AVG of numbers that are not DECIMAL: write AVG(CAST(A.x AS DOUBLE))
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS AVG(B.price) > 1)
---
error[SQL-1601]: avg of DECIMAL(10, 2) is not supported in DEFINE
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS AVG(B.price) > 1)
    |                                                                                                ^^^^^^^^^^^^
hint: in DEFINE there are COUNT, SUM, MIN, MAX, and AVG of numbers that are not DECIMAL: write AVG(CAST(A.x AS DOUBLE))
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS FINAL LAST(B.price) > 1)
---
error[SQL-1746]: FINAL cannot be used in DEFINE: the match has not ended while DEFINE tests a row
  1 | T * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS FINAL LAST(B.price) > 1)
    |                                                                                           ^^^^^^^^^^^^^^^^^^^
hint: leave FINAL out, or test it with WHERE
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS MATCH_NUMBER() > 1)
---
error[SQL-1746]: MATCH_NUMBER cannot be used in DEFINE: only whole matches have it
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A B) DEFINE B AS MATCH_NUMBER() > 1)
    |                                                                                                ^^^^^^^^^^^^^^
hint: use it in MEASURES
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES SUM(A.price + B.price) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1746]: the columns inside one call are read at one row, so they go by one variable
  1 | ELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES SUM(A.price + B.price) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                                      ^^^^^^^
hint: write a call for each variable: SUM(A.x) + SUM(B.x)
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES SUM(A.price * price) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1746]: the columns inside one call are read at one row, so they go by one variable
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES SUM(A.price * price) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                                       ^^^^^
hint: write a call for each variable: SUM(A.x) + SUM(B.x)
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(LAST(A.price)) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1746]: LAST cannot be used inside another navigation call
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(LAST(A.price)) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                               ^^^^^^^^^^^^^
hint: only PREV goes around FIRST or LAST: PREV(LAST(A.x), 2)
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(A.price, -1) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1102]: LAST takes a whole number of rows, at most 10,000
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(A.price, -1) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                                       ^^
hint: write LAST(A.x, 2)
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(DISTINCT A.price) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1601]: DISTINCT is not supported in MATCH_RECOGNIZE
  1 | LECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(DISTINCT A.price) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                       ^^^^^^^^^^^^^^^^^^^^^^^
hint: match first, and count the values in a query over ALL ROWS PER MATCH
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES SUM(A.*) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1102]: sum(*) does not exist
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES SUM(A.*) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                         ^^^^^^^^
hint: only COUNT takes *
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES FINAL abs(A.price) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1746]: FINAL goes before FIRST, LAST, PREV and aggregates
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES FINAL abs(A.price) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                         ^^^^^^^^^^^^^^^^^^
hint: write FINAL LAST(A.x)
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES CLASSIFIER(A) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1102]: CLASSIFIER takes no argument
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES CLASSIFIER(A) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                         ^^^^^^^^^^^^^
hint: write CLASSIFIER()
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p, B.price AS P PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1045]: column name "P" is given twice
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p, B.price AS P PATTERN (A B) DEFINE B AS TRUE)
    |                                                                       ^^^^^^^^^^^^
hint: give the measure another name
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES (SELECT 1) AS p PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1601]: a subquery cannot be used in MEASURES
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES (SELECT 1) AS p PATTERN (A B) DEFINE B AS TRUE)
    |                                                         ^^^^^^^^^^
hint: put it into the SELECT list or the WHERE of a subquery in FROM, and read its column here
====
SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price PATTERN (A B) DEFINE B AS TRUE)
---
error[SQL-1001]: unexpected "PATTERN": AS was expected
  1 | SELECT * FROM bid MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price PATTERN (A B) DEFINE B AS TRUE)
    |                                                                 ^^^^^^^
====
SELECT price, SUM(bid.*) FROM bid
---
error[SQL-1001]: * means all columns only in the SELECT list and in COUNT(*)
  1 | SELECT price, SUM(bid.*) FROM bid
    |                   ^^^^^
====
SELECT FINAL SUM(price) FROM bid
---
error[SQL-1746]: FINAL is allowed in MEASURES only
  1 | SELECT FINAL SUM(price) FROM bid
    |        ^^^^^^^^^^^^^^^^
hint: leave it out
