SELECT r.chanel FROM (SELECT struct(channel, price) AS r FROM bid)
---
error[SQL-1110]: the row has no field "chanel"
  1 | SELECT r.chanel FROM (SELECT struct(channel, price) AS r FROM bid)
    |          ^^^^^^
hint: did you mean "channel"?
====
SELECT price.amount FROM bid
---
error[SQL-1108]: DECIMAL(10, 2) has no field "amount"
  1 | SELECT price.amount FROM bid
    |              ^^^^^^
hint: a dot reads a field of a ROW
====
SELECT price[1] FROM bid
---
error[SQL-1108]: DECIMAL(10, 2) has no elements
  1 | SELECT price[1] FROM bid
    |        ^^^^^^^^
hint: elements are read of an ARRAY or a MAP
====
SELECT a[0] FROM (SELECT array(price) AS a FROM bid)
---
error[SQL-1109]: elements of an array count from 1
  1 | SELECT a[0] FROM (SELECT array(price) AS a FROM bid)
    |          ^
hint: a[1] is the first element; element_at(a, -1) is the last one, get(a, 0) counts from 0
====
SELECT a.x FROM (SELECT array(price) AS a FROM bid)
---
error[SQL-1108]: ARRAY<DECIMAL(10, 2)> has no field "x"
  1 | SELECT a.x FROM (SELECT array(price) AS a FROM bid)
    |          ^
hint: elements are read by a[1] and m['key']
====
SELECT r['x'] FROM (SELECT struct(channel, price) AS r FROM bid)
---
error[SQL-1108]: ROW<channel STRING, price DECIMAL(10, 2)> has no elements
  1 | SELECT r['x'] FROM (SELECT struct(channel, price) AS r FROM bid)
    |        ^^^^^^
hint: a field of a row is read by row.name
====
SELECT m[1] FROM (SELECT map(channel, price) AS m FROM bid)
---
error[SQL-1103]: element: the keys are STRING, this is INT
  1 | SELECT m[1] FROM (SELECT map(channel, price) AS m FROM bid)
    |        ^^^^
hint: write CAST(.. AS STRING)
====
SELECT array(1, DATE '2024-01-01') FROM bid
---
error[SQL-1103]: array: the elements have no common type: INT, DATE
  1 | SELECT array(1, DATE '2024-01-01') FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: CAST them to one type
====
SELECT map('a') FROM bid
---
error[SQL-1102]: map takes at least 2 arguments, not 1
  1 | SELECT map('a') FROM bid
    |        ^^^^^^^^
hint: write map(k, v, ..)
====
SELECT named_struct(channel, 1) FROM bid
---
error[SQL-1103]: named_struct: argument 1 is no constant text
  1 | SELECT named_struct(channel, 1) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^
hint: name a field in quotes, as in named_struct('x', 1)
====
SELECT named_struct('a', 1, 'A', 2) FROM bid
---
error[SQL-1103]: named_struct: a field is named twice
  1 | SELECT named_struct('a', 1, 'A', 2) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: usage: named_struct('x', a, ..)
====
SELECT array_contains(channel, 'x') FROM bid
---
error[SQL-1103]: array_contains: argument 1 is STRING, wanted an ARRAY
  1 | SELECT array_contains(channel, 'x') FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: usage: array_contains(a, x)
====
SELECT map_keys(array(1)) FROM bid
---
error[SQL-1103]: map_keys: argument 1 is ARRAY<INT>, wanted a MAP
  1 | SELECT map_keys(array(1)) FROM bid
    |        ^^^^^^^^^^^^^^^^^^
hint: usage: map_keys(m)
====
SELECT array_distinct(array(map('k', price))) FROM bid
---
error[SQL-1103]: array_distinct: MAP<STRING, DECIMAL(10, 2)> values cannot be compared
  1 | SELECT array_distinct(array(map('k', price))) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: usage: array_distinct(a)
====
SELECT ts AT TIME ZONE channel FROM bid
---
error[SQL-1103]: at_time_zone: the zone is no constant text
  1 | SELECT ts AT TIME ZONE channel FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^
hint: write AT TIME ZONE 'Europe/Berlin'
====
SELECT price::INTT FROM bid
---
error[SQL-1204]: type "INTT" does not exist
  1 | SELECT price::INTT FROM bid
    |               ^^^^
hint: did you mean "INT"?
====
SELECT price:: FROM bid
---
error[SQL-1001]: unexpected "FROM": a type was expected
  1 | SELECT price:: FROM bid
    |                ^^^^
====
SELECT sequence('a', 'b') FROM bid
---
error[SQL-1103]: sequence: a sequence of STRING does not exist
  1 | SELECT sequence('a', 'b') FROM bid
    |        ^^^^^^^^^^^^^^^^^^
hint: its bounds are integers, dates or timestamps
====
SELECT CAST(array(1) AS INT) FROM bid
---
error[SQL-1106]: ARRAY<INT> cannot be cast to INT
  1 | SELECT CAST(array(1) AS INT) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^
====
SELECT array_contain(array(1), 1) FROM bid
---
error[SQL-1101]: there is no function array_contain
  1 | SELECT array_contain(array(1), 1) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: did you mean "array_contains"?
====
SELECT ts AT TIME ZONE 'Europe/Berln' FROM bid
---
error[SQL-1103]: at_time_zone: there is no time zone "Europe/Berln"
  1 | SELECT ts AT TIME ZONE 'Europe/Berln' FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: did you mean "Europe/Berlin"?
====
SELECT price::INTERVAL FROM bid
---
error[SQL-1001]: the statement ends where DAY, HOUR, MINUTE, MONTH, SECOND or YEAR was expected
  1 | SELECT price::INTERVAL FROM bid
    |                       ^
====
SELECT price.* FROM bid
---
error[SQL-1108]: DECIMAL(10, 2) has no fields
  1 | SELECT price.* FROM bid
    |        ^^^^^
hint: a star follows a table or a ROW
====
SELECT r.* EXCEPT (prise) FROM (SELECT struct(channel, price) AS r FROM bid)
---
error[SQL-1110]: the row has no field "prise"
  1 | SELECT r.* EXCEPT (prise) FROM (SELECT struct(channel, price) AS r FROM bid)
    |                    ^^^^^
hint: did you mean "price"?
====
SELECT x.* FROM bid
---
error[SQL-1044]: table "x" is not in FROM
  1 | SELECT x.* FROM bid
    |        ^
hint: there is bid
====
SELECT price FROM (SELECT price, map(channel, price) AS m FROM bid) ORDER BY m LIMIT 2
---
error[SQL-1112]: MAP<STRING, DECIMAL(10, 2)> has no order
  1 | SELECT price FROM (SELECT price, map(channel, price) AS m FROM bid) ORDER BY m LIMIT 2
    |                                                                              ^
hint: order by a value in it, as m['key'], or by size(m)
====
SELECT row_number() OVER (ORDER BY m) FROM (SELECT price, map(channel, price) AS m FROM bid)
---
error[SQL-1103]: ORDER BY cannot compare MAP<STRING, DECIMAL(10, 2)>
  1 | SELECT row_number() OVER (ORDER BY m) FROM (SELECT price, map(channel, price) AS m FROM bid)
    |                                    ^
====
SELECT upper(x -> x) FROM bid
---
error[SQL-1113]: upper takes no function as argument
  1 | SELECT upper(x -> x) FROM bid
    |              ^^^^^^
hint: functions are arguments of aggregate, exists, filter, forall, map_filter, reduce, transform, transform_keys, transform_values, zip_with
====
SELECT transform(ARRAY[auction], 1) FROM bid
---
error[SQL-1103]: transform: the last argument is a function of the elements
  1 | SELECT transform(ARRAY[auction], 1) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: usage: transform(a, x -> ..)
====
SELECT transform(auction, x -> x) FROM bid
---
error[SQL-1103]: transform: BIGINT is not an ARRAY
  1 | SELECT transform(auction, x -> x) FROM bid
    |                  ^^^^^^^
hint: usage: transform(a, x -> ..)
====
SELECT transform(x -> x, ARRAY[auction]) FROM bid
---
error[SQL-1113]: transform takes its functions last
  1 | SELECT transform(x -> x, ARRAY[auction]) FROM bid
    |                  ^^^^^^
hint: write transform(a, x -> ..)
====
SELECT transform(ARRAY[auction], (x, i, n) -> x) FROM bid
---
error[SQL-1113]: the function of transform has 1 or 2 parameters, this has 3
  1 | SELECT transform(ARRAY[auction], (x, i, n) -> x) FROM bid
    |                                  ^^^^^^^^^^^^^^
hint: write transform(a, x -> ..)
====
SELECT zip_with(ARRAY[auction], ARRAY[bidder], (x, X) -> x) FROM bid
---
error[SQL-1113]: two parameters of a function have one name
  1 | SELECT zip_with(ARRAY[auction], ARRAY[bidder], (x, X) -> x) FROM bid
    |                                                ^^^^^^^^^^^
hint: give them different names
====
SELECT filter(ARRAY[auction], x -> x + 1) FROM bid
---
error[SQL-1103]: the function of filter returns BOOLEAN, this returns BIGINT
  1 | SELECT filter(ARRAY[auction], x -> x + 1) FROM bid
    |                                    ^^^^^
hint: compare it with something
====
SELECT aggregate(ARRAY[auction], DATE '2024-01-01', (s, x) -> s > x) FROM bid
---
error[SQL-1103]: greater: DATE and BIGINT cannot be compared
  1 | SELECT aggregate(ARRAY[auction], DATE '2024-01-01', (s, x) -> s > x) FROM bid
    |                                                               ^^^^^
hint: write DATE '2024-01-31' or TIMESTAMP '2024-01-31 10:00:00'
====
SELECT aggregate(ARRAY[auction], 0, (s, x) -> ARRAY[s]) FROM bid
---
error[SQL-1103]: the function of aggregate makes ARRAY<INT> of INT
  1 | SELECT aggregate(ARRAY[auction], 0, (s, x) -> ARRAY[s]) FROM bid
    |                                     ^^^^^^^^^^^^^^^^^^
hint: CAST its value to INT, or the start to the type it returns
====
SELECT aggregate(ARRAY[auction], x -> x) FROM bid
---
error[SQL-1102]: aggregate does not take 2 arguments
  1 | SELECT aggregate(ARRAY[auction], x -> x) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: write aggregate(a, start, (s, x) -> ..[, s -> ..])
====
SELECT transform(ARRAY[auction], x -> SUM(x)) FROM bid
---
error[SQL-1062]: the aggregate sum cannot be used in the function of transform
  1 | SELECT transform(ARRAY[auction], x -> SUM(x)) FROM bid
    |                                       ^^^^^^
hint: aggregate in a query over the table
====
SELECT transform(ARRAY[auction], x -> y) FROM bid
---
error[SQL-1042]: column "y" does not exist in bid
  1 | SELECT transform(ARRAY[auction], x -> y) FROM bid
    |                                       ^
hint: there is auction, bidder, channel, price, ts
====
SELECT transform_keys(MAP[channel, 1], (k, v) -> MAP[k, v]) FROM bid
---
error[SQL-1103]: MAP<STRING, INT> cannot be the key of a MAP
  1 | SELECT transform_keys(MAP[channel, 1], (k, v) -> MAP[k, v]) FROM bid
    |                                        ^^^^^^^^^^^^^^^^^^^
====
SELECT x -> x FROM bid
---
error[SQL-1042]: column "x" does not exist in bid
  1 | SELECT x -> x FROM bid
    |        ^
hint: there is auction, bidder, channel, price, ts
====
SELECT transform(ARRAY[auction], x -> ) FROM bid
---
error[SQL-1001]: unexpected ")": an expression was expected
  1 | SELECT transform(ARRAY[auction], x -> ) FROM bid
    |                                       ^
====
SELECT transform(DISTINCT ARRAY[auction], x -> x) FROM bid
---
error[SQL-1601]: DISTINCT is not supported here
  1 | SELECT transform(DISTINCT ARRAY[auction], x -> x) FROM bid
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
====
# a key of a map is never NULL
SELECT map[NULL, 'foo']
---
error[SQL-1103]: map: NULL cannot be the key of a MAP
  1 | SELECT map[NULL, 'foo']
    |        ^^^^^^^^^^^^^^^^
hint: a key is never NULL; CAST keys that have no type: CAST(array() AS ARRAY<INT>)
====
SELECT map_from_arrays(array(), array(1))
---
error[SQL-1103]: map_from_arrays: NULL cannot be the key of a MAP
  1 | SELECT map_from_arrays(array(), array(1))
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
hint: a key is never NULL; CAST keys that have no type: CAST(array() AS ARRAY<INT>)
