"""Constructs as people bring them from other engines: over inserts, updates and deletes, at barriers, resumed
at another parallelism, the rows are DuckDB's to the words behind ``=>``, or to the same words.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.generated.queries.generated.pieces import Piece
from tests.generated.queries.generated.trial import CUTS, Arena, Manner, check
from tests.harness.length import of_length

MANNERS = (Manner(), Manner(2, 3, CUTS), Manner(1, 9, CUTS, 2))
QUERIES = r"""
SELECT k, count(*) AS n FROM u GROUP BY k, s WITH ROLLUP ==> SELECT k, count(*) AS n FROM u GROUP BY ROLLUP (k, s)
SELECT k, s, sum(v) AS n FROM u GROUP BY k, s WITH CUBE ==> SELECT k, s, sum(v) AS n FROM u GROUP BY CUBE (k, s)
SELECT k, s, sum(v) AS n FROM u GROUP BY k, s GROUPING SETS ((k, s), (s), ()) ==> SELECT k, s, sum(v) AS n FROM u GROUP BY GROUPING SETS ((k, s), (s), ())
SELECT count(*) AS n, sum(v) AS m FROM u GROUP BY () ==> SELECT count(*) AS n, sum(v) AS m FROM u
SELECT k, s, count(*) AS n FROM u GROUP BY DISTINCT ROLLUP (k, s), ROLLUP (s, k) ==> SELECT k, s, count(*) AS n FROM u GROUP BY GROUPING SETS ((k, s), (k), (s), ())
SELECT k, count(*) AS n FROM u GROUP BY (k, s) ==> SELECT k, count(*) AS n FROM u GROUP BY k, s
SELECT DISTINCT ON (k) k, id, v FROM (SELECT * FROM u WHERE v IS NOT NULL) AS r ORDER BY k, v DESC, id ==> SELECT k, id, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM u WHERE v IS NOT NULL) WHERE n = 1
SELECT k, row_number() OVER (PARTITION BY k) AS n FROM u ==> SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM u
SELECT id, v + 1 AS a, a * 2 AS b, b - a AS c FROM u ==> SELECT id, v + 1 AS a, (v + 1) * 2 AS b, v + 1 AS c FROM u
SELECT k % 2 AS p, p + 1 AS q, sum(v) AS n, n + q AS m FROM u GROUP BY p, q ==> SELECT k % 2 AS p, k % 2 + 1 AS q, sum(v) AS n, sum(v) + k % 2 + 1 AS m FROM u GROUP BY k % 2
SELECT id, double(v) AS d, string(k) AS t, int('7') AS i FROM u ==> SELECT id, v::DOUBLE AS d, k::VARCHAR AS t, 7 AS i FROM u
SELECT id, CASE k WHEN 1, 2 THEN 'few' WHEN 3 THEN 'many' END AS c FROM u ==> SELECT id, CASE WHEN k IN (1, 2) THEN 'few' WHEN k = 3 THEN 'many' END AS c FROM u
SELECT id, v << 2 AS a, v >> 1 AS b, v >>> 1 AS c FROM u ==> SELECT id, v * 4 AS a, v // 2 AS b, v // 2 AS c FROM u
SELECT u.* EXCEPT (ts, x) REPLACE (v + 1 AS v) FROM u ==> SELECT id, k, s, v + 1 AS v FROM u
SELECT id, (ts, INTERVAL '5' SECOND) OVERLAPS (TIMESTAMP '2024-01-01 00:00:10', TIMESTAMP '2024-01-01 00:00:30') AS o FROM t ==> SELECT id, ts <= TIMESTAMP '2024-01-01 00:00:30' AND ts + INTERVAL 5 SECOND >= TIMESTAMP '2024-01-01 00:00:10' AS o FROM t
SELECT id, r.a, r.b, [k, 1][2] AS c FROM (SELECT id, k, struct(v AS a, s AS b) AS r FROM u) AS q ==> SELECT id, v AS a, s AS b, 1 AS c FROM u
SELECT q.r.* FROM (SELECT {'a': id, 'b': v} AS r FROM u) AS q ==> SELECT id AS a, v AS b FROM u
SELECT u.id FROM u SEMI JOIN w ON u.k = w.k ==> SELECT u.id FROM u WHERE k IN (SELECT k FROM w)
SELECT u.id FROM u ANTI JOIN w ON u.k = w.k ==> SELECT u.id FROM u WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.k = u.k)
SELECT u.id, r.m FROM u CROSS APPLY (SELECT max(w.v) AS m FROM w WHERE w.k = u.k) AS r ==> SELECT u.id, (SELECT max(w.v) FROM w WHERE w.k = u.k) AS m FROM u
SELECT u.id, r.m FROM u OUTER APPLY (SELECT w.id AS m FROM w WHERE w.k = u.k) AS r ==> SELECT u.id, w.id AS m FROM u LEFT JOIN w ON w.k = u.k
SELECT k, count(DISTINCT s, v) AS n, count(s, v) AS m FROM u GROUP BY k ==> SELECT k, count(DISTINCT CASE WHEN s IS NOT NULL AND v IS NOT NULL THEN row(s, v) END) AS n, count(CASE WHEN s IS NOT NULL AND v IS NOT NULL THEN 1 END) AS m FROM u GROUP BY k
SELECT k, quantile_cont(v, 0.9) AS a, quantile_disc(v, 0.3) AS b, quantile(v, 0.5) AS c FROM u GROUP BY k
SELECT id, strpos(s, 'a') AS a, iif(k > 1, v, 0) AS b, replicate(s, 2) AS c, array_to_string([s, 'x'], '-') AS d, array_length([k, v]) AS e FROM u ==> SELECT id, strpos(s, 'a') AS a, CASE WHEN k > 1 THEN v ELSE 0 END AS b, repeat(s, 2) AS c, array_to_string([s, 'x'], '-') AS d, 2 AS e FROM u
SELECT id, CAST(k AS INT8) AS a, CAST(v AS FLOAT8) AS b, CAST(id AS TEXT) AS c, CAST(ts AS DATETIME) AS d FROM t
SELECT k, try_sum(v) AS n, arg_max(s, id) AS a, arg_min(s, id) AS b FROM u GROUP BY k ==> SELECT k, sum(v) AS n, arg_max_null(s, id) AS a, arg_min_null(s, id) AS b FROM u GROUP BY k
SELECT k, json_arrayagg(v ORDER BY v) AS j FROM u GROUP BY k ==> SELECT k, coalesce(to_json(list(v ORDER BY v) FILTER (WHERE v IS NOT NULL))::VARCHAR, '[]') AS j FROM u GROUP BY k
SELECT k, json_arrayagg(v ORDER BY v NULL ON NULL) AS j, json_arrayagg(DISTINCT v NULL ON NULL) AS d, json_arrayagg(DISTINCT v) AS e FROM u GROUP BY k ==> SELECT k, to_json(list(v ORDER BY v NULLS FIRST))::VARCHAR AS j, to_json(list(DISTINCT v ORDER BY v NULLS FIRST))::VARCHAR AS d, coalesce(to_json(list(DISTINCT v ORDER BY v) FILTER (WHERE v IS NOT NULL))::VARCHAR, '[]') AS e FROM u GROUP BY k
SELECT id FROM u WHERE ROW(k, v) IN (SELECT w.k, w.v FROM w) ==> SELECT id FROM u WHERE (k, v) IN (SELECT w.k, w.v FROM w)
SELECT id FROM u WHERE ROW(k, s) NOT IN (SELECT w.k, w.s FROM w) ==> SELECT id FROM u WHERE (k, s) NOT IN (SELECT w.k, w.s FROM w)
SELECT id FROM u WHERE (k, v) = (SELECT max(w.k), min(w.v) FROM w WHERE w.s = u.s) ==> SELECT id FROM u WHERE k = (SELECT max(w.k) FROM w WHERE w.s = u.s) AND v = (SELECT min(w.v) FROM w WHERE w.s = u.s)
SELECT id, (k, v) <= (SELECT w.k, w.v FROM w WHERE w.id = u.id) AS a FROM u ==> SELECT u.id, u.k < w.k OR (u.k = w.k AND u.v <= w.v) AS a FROM u LEFT JOIN w ON w.id = u.id
SELECT id FROM u WHERE (SELECT w.k, w.v FROM w WHERE w.s = u.s ORDER BY w.id LIMIT 1) <> (k, v) ==> SELECT id FROM u WHERE (SELECT w.k FROM w WHERE w.s = u.s ORDER BY w.id LIMIT 1) <> k OR (SELECT w.v FROM w WHERE w.s = u.s ORDER BY w.id LIMIT 1) <> v
SELECT id, sum(v) OVER (PARTITION BY k ORDER BY CAST(v * 0.25 AS DECIMAL(9, 2)) RANGE BETWEEN 0.5 PRECEDING AND 0.25 FOLLOWING) AS n FROM u
SELECT id, count(*) OVER (ORDER BY CAST(v * 0.1 AS DECIMAL(18, 3)) DESC RANGE BETWEEN 0.2999 PRECEDING AND CURRENT ROW) AS n FROM u ==> SELECT id, count(*) OVER (ORDER BY CAST(v * 0.1 AS DECIMAL(18, 3)) DESC RANGE BETWEEN 0.299 PRECEDING AND CURRENT ROW) AS n FROM u
SELECT k, json_objectagg(KEY id VALUE v ABSENT ON NULL) AS j FROM u GROUP BY k ==> SELECT k, '{' || coalesce(string_agg('"' || id || '":' || v, ',' ORDER BY id), '') || '}' AS j FROM u GROUP BY k
SELECT k, percentile(v, ARRAY[0.25, 0.5])[2] AS p, percentile_cont(0.25) WITHIN GROUP (ORDER BY v DESC) AS q, percentile_disc(0.25) WITHIN GROUP (ORDER BY v DESC) AS r FROM u GROUP BY k ==> SELECT k, quantile_cont(v, 0.5) AS p, quantile_cont(v, 0.75) AS q, -quantile_disc(-v, 0.25) AS r FROM u GROUP BY k
SELECT sum(p * v) AS n FROM (SELECT id, stack(2, k, v, 1, id) AS (p, v) FROM u) AS r ==> SELECT sum(p * v) AS n FROM (SELECT k AS p, v FROM u UNION ALL SELECT 1, id FROM u)
SELECT k, mode() WITHIN GROUP (ORDER BY v) AS m FROM u GROUP BY k ==> SELECT k, mode(v ORDER BY v) AS m FROM u GROUP BY k
SELECT id, ntile(3) OVER (PARTITION BY k ORDER BY id) AS a, percent_rank() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS b, cume_dist() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS c FROM u
SELECT id, rank() OVER (PARTITION BY k ORDER BY v NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS r FROM u ==> SELECT id, rank() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS r FROM u
SELECT * FROM (SELECT k, s, v FROM u) AS r PIVOT (sum(v) AS n, count(*) AS c FOR s IN ('a' AS a, 'b' AS b)) ==> SELECT k, sum(v) FILTER (WHERE s = 'a') AS a_n, count(*) FILTER (WHERE s = 'a') AS a_c, sum(v) FILTER (WHERE s = 'b') AS b_n, count(*) FILTER (WHERE s = 'b') AS b_c FROM u GROUP BY k
SELECT * FROM (SELECT id, k, v FROM u) AS r UNPIVOT (x FOR n IN (k, v AS w)) ==> SELECT id, 'k' AS n, k AS x FROM u WHERE k IS NOT NULL UNION ALL SELECT id, 'w' AS n, v AS x FROM u WHERE v IS NOT NULL
SELECT * FROM (SELECT id, k, v FROM u) AS r UNPIVOT INCLUDE NULLS (x FOR n IN (k, v)) ==> SELECT id, 'k' AS n, k AS x FROM u UNION ALL SELECT id, 'v' AS n, v AS x FROM u
PIVOT (SELECT k, s, v FROM u) ON s IN ('a', 'b' AS bee) USING sum(v) AS n, count(*) AS c GROUP BY k
PIVOT (SELECT k, s, v FROM u) ON s IN ('a', NULL), k IN (1, 2) USING max(v)
UNPIVOT (SELECT id, k, v FROM u) ON COLUMNS(* EXCLUDE (id)) INTO NAME n VALUE x
SELECT * FROM (UNPIVOT (SELECT id, k, v FROM u) ON (k, v) AS a, (v, k) INTO NAME n VALUE x, y) AS r WHERE x > 1
SELECT id, elt(k, 'x', s) AS a, bit_length(s) AS b, is_alpha(s) AS c, equal_null(k, v) AS d FROM u ==> SELECT id, CASE k WHEN 1 THEN 'x' WHEN 2 THEN s END AS a, 8 * octet_length(encode(s)) AS b, coalesce(regexp_matches(s, '^[a-z]+$'), false) AS c, k IS NOT DISTINCT FROM v AS d FROM u
SELECT id, regexp_matches(s, '^[ab]$') AS a, regexp_matches(s, '^A', 'i') AS b, regexp_matches(s || chr(10), 'b.$', 's') AS c FROM u
SELECT id, ceil(x, 1) AS a, floor(x, 1) AS b, truncate(-x, 1) AS c FROM u ==> SELECT id, (ceil(x * 10) / 10)::DECIMAL(10, 1) AS a, (floor(x * 10) / 10)::DECIMAL(10, 1) AS b, -(floor(x * 10) / 10)::DECIMAL(10, 1) AS c FROM u
SELECT id, array_insert(array(k, 9), 2, v)[2] AS a, array_insert(array(k, 9), -1, v)[3] AS b FROM u ==> SELECT id, v AS a, v AS b FROM u
SELECT id, map_zip_with(map('a', v, 'b', k), map('a', k), (n, p, q) -> p + q)['a'] AS m, array_max(map_keys(map_zip_with(map('a', v), map('b', k), (n, p, q) -> p))) AS n FROM u ==> SELECT id, v + k AS m, 'b' AS n FROM u
SELECT id, arrays_zip(array(k, v), array(s))[1].`1` AS z FROM u ==> SELECT id, s AS z FROM u
SELECT id, length(encode(s, 'UTF-8')) AS a, decode(substr(encode(s, 'UTF-8') || X'7A', -2), 'UTF-8') AS b, hex(lpad(encode(s, 'UTF-8'), 3)) AS c, md5(encode(s, 'UTF-8')) AS d FROM u ==> SELECT id, octet_length(encode(s)) AS a, right(s || 'z', 2) AS b, lpad(hex(encode(s)), 6, '0') AS c, md5(s) AS d FROM u
SELECT id, hour(CAST(ts AS TIME)) AS a, CAST(time_trunc('MINUTE', CAST(ts AS TIME)) AS STRING) AS b, time_diff('SECOND', TIME '00:00:00', CAST(ts AS TIME)) AS c FROM u ==> SELECT id, hour(ts) AS a, strftime(date_trunc('minute', ts), '%H:%M:%S') AS b, date_diff('second', TIME '00:00:00', ts::TIME) AS c FROM u
SELECT id, extract(day FROM make_interval(0, 0, 0, k, v)) AS a, extract(hour FROM make_interval(0, 0, 0, 0, -v)) AS b, extract(month FROM make_ym_interval(k, v)) AS c FROM u ==> SELECT id, k + v // 24 AS a, -(v % 24) AS b, v % 12 + 0 * k AS c FROM u
SELECT id, mask(s || 'Zy9-') AS a, try_to_number(s || k, '9') AS b, to_number(CAST(k AS STRING), '9,999') AS c, is_decimal(s) AS d FROM u ==> SELECT id, regexp_replace(s, '[a-z]', 'x', 'g') || 'Xxn-' AS a, CASE WHEN s = '' THEN k::DECIMAL(1, 0) END AS b, k::DECIMAL(4, 0) AS c, false AS d FROM u
SELECT id, map_union(map('a', v, 'b', 1), map('a', k))['a'] AS m, array_slice(array(k, v, 3), 2)[1] AS n, regexp_match(s, '^(.)')[1] AS r FROM u ==> SELECT id, k AS m, v AS n, CASE WHEN s <> '' THEN left(s, 1) END AS r FROM u
SELECT id, CAST(CAST(ts + INTERVAL '1.987654' SECOND AS TIMESTAMP(2)) AS STRING) AS a, CAST(CAST('2024-01-01 00:00:0' || k || '.56' AS TIMESTAMP(0)) AS TIMESTAMP(6)) AS b, CAST(CAST(ts + INTERVAL '0.987654' SECOND AS TIME(1)) AS STRING) AS c FROM u ==> SELECT id, rtrim(rtrim(left(strftime(ts + to_microseconds(1987654), '%Y-%m-%d %H:%M:%S.%f'), 22), '0'), '.') AS a, ('2024-01-01 00:00:0' || k)::TIMESTAMP AS b, rtrim(rtrim(left(strftime(ts + to_microseconds(987654), '%H:%M:%S.%f'), 10), '0'), '.') AS c FROM u
SELECT k, CAST(ts + INTERVAL '0.987654' SECOND AS TIMESTAMP(0)) AS a, count(*) AS n FROM u GROUP BY k, CAST(ts + INTERVAL '0.987654' SECOND AS TIMESTAMP(0)) ==> SELECT k, date_trunc('second', ts + to_microseconds(987654)) AS a, count(*) AS n FROM u GROUP BY ALL
SELECT id, last_value(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) AS a, nth_value(v, 2) FROM LAST OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS b FROM u ==> SELECT id, last_value(v IGNORE NULLS) OVER (PARTITION BY k ORDER BY id) AS a, lag(v) OVER (PARTITION BY k ORDER BY id) AS b FROM u
SELECT k, mode() WITHIN GROUP (ORDER BY v DESC) AS a, mode(v, true) AS b FROM u GROUP BY k ==> SELECT k, list_extract(list_reverse_sort(list(v) FILTER (WHERE n = m)), 1) AS a, min(v) FILTER (WHERE n = m) AS b FROM (SELECT *, max(n) OVER (PARTITION BY k) AS m FROM (SELECT k, v, count(v) AS n FROM u GROUP BY k, v)) GROUP BY k
SELECT id, regexp_replace(s, r'\w$', R'x''y') AS a, n FROM u JOIN (VALUES ROW(1, 'a'), ROW(2, 'b')) AS r(k, n) USING (k) ==> SELECT id, regexp_replace(s, '[ab]$|c$', 'x''y') AS a, n FROM u JOIN (VALUES (1, 'a'), (2, 'b')) AS r(k, n) USING (k)
SELECT count(*) AS n FROM TUMBLE(`DATA` => TABLE t, `TIMECOL` => DESCRIPTOR(ts), "SIZE" => INTERVAL '10' MINUTES) ==> SELECT count(ts) AS n FROM t
SELECT id, (SELECT s FROM w WHERE w.id = u.id) AS n, coalesce((SELECT w.v + u.v FROM w WHERE w.id = u.id AND w.k > 1), -1) AS m FROM u
SELECT id, (SELECT DISTINCT k FROM w WHERE w.k = u.k) AS n, (SELECT DISTINCT 1 FROM w WHERE w.v > u.v) AS m FROM u
SELECT id, (SELECT k FROM w WHERE w.k = u.k UNION SELECT k FROM t WHERE t.k = u.k) AS n FROM u
SELECT id, (SELECT v FROM w WHERE w.k = u.k) AS n FROM u WHERE k = 99
SELECT id, r.v FROM u, LATERAL (SELECT DISTINCT v FROM w WHERE w.k = u.k ORDER BY v NULLS LAST LIMIT 2) AS r
SELECT u.id, v, w.v AS m FROM u ASOF LEFT JOIN w USING (k, v)
SELECT id, nth_value(v, 2) OVER w AS a, sum(v) OVER (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS b, sum(v) OVER (W) AS c FROM u WINDOW w AS (PARTITION BY k ORDER BY id)
SELECT id, sum(v) OVER b AS e, count(*) OVER (a) AS f, rank() OVER (a ORDER BY id DESC) AS g FROM u WINDOW a AS (PARTITION BY k), b AS (a ORDER BY id)
""".strip().split("\n")


@pytest.fixture(scope="module")
def arenas() -> Iterator[list[Arena]]:
    arenas = [Arena.of(variant) for variant in range(2)]
    yield arenas
    for arena in arenas:
        arena.close()


@pytest.mark.longer
@pytest.mark.parametrize("number", range(len(QUERIES)), ids=[text.partition(" ==> ")[0] for text in QUERIES])
def test_rows_are_those_of_the_plain_words(arenas: list[Arena], number: int) -> None:
    ours, _, theirs = QUERIES[number].partition(" ==> ")
    query = Piece("query", (ours,), (theirs or ours,))
    # in brief each query is run in one of the manners
    for arena in of_length(arenas[:1], arenas):
        for manner in of_length(MANNERS[number % 3 :][:1], MANNERS):
            assert check(arena, query, manner)
