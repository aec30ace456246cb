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
QUERIES = """
SELECT k, count(*) AS n FROM u GROUP BY k, s WITH ROLLUP => SELECT k, count(*) AS n FROM u GROUP BY ROLLUP (k, s)
SELECT k, s, sum(v) AS n FROM u GROUP BY k, s WITH CUBE => SELECT k, s, sum(v) AS n FROM u GROUP BY CUBE (k, s)
SELECT k, s, sum(v) AS n FROM u GROUP BY k, s GROUPING SETS ((k, s), (s), ()) => SELECT k, s, sum(v) AS n FROM u GROUP BY GROUPING SETS ((k, s), (s), ())
SELECT count(*) AS n, sum(v) AS m FROM u GROUP BY () => SELECT count(*) AS n, sum(v) AS m FROM u
SELECT k, s, count(*) AS n FROM u GROUP BY DISTINCT ROLLUP (k, s), ROLLUP (s, k) => SELECT k, s, count(*) AS n FROM u GROUP BY GROUPING SETS ((k, s), (k), (s), ())
SELECT k, count(*) AS n FROM u GROUP BY (k, s) => SELECT k, count(*) AS n FROM u GROUP BY k, s
SELECT DISTINCT ON (k) k, id, v FROM (SELECT * FROM u WHERE v IS NOT NULL) AS r ORDER BY k, v DESC, id => SELECT k, id, v FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM u WHERE v IS NOT NULL) WHERE n = 1
SELECT k, row_number() OVER (PARTITION BY k) AS n FROM u => SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM u
SELECT id, v + 1 AS a, a * 2 AS b, b - a AS c FROM u => SELECT id, v + 1 AS a, (v + 1) * 2 AS b, v + 1 AS c FROM u
SELECT k % 2 AS p, p + 1 AS q, sum(v) AS n, n + q AS m FROM u GROUP BY p, q => SELECT k % 2 AS p, k % 2 + 1 AS q, sum(v) AS n, sum(v) + k % 2 + 1 AS m FROM u GROUP BY k % 2
SELECT id, double(v) AS d, string(k) AS t, int('7') AS i FROM u => SELECT id, v::DOUBLE AS d, k::VARCHAR AS t, 7 AS i FROM u
SELECT id, CASE k WHEN 1, 2 THEN 'few' WHEN 3 THEN 'many' END AS c FROM u => SELECT id, CASE WHEN k IN (1, 2) THEN 'few' WHEN k = 3 THEN 'many' END AS c FROM u
SELECT id, v << 2 AS a, v >> 1 AS b, v >>> 1 AS c FROM u => SELECT id, v * 4 AS a, v // 2 AS b, v // 2 AS c FROM u
SELECT u.* EXCEPT (ts, x) REPLACE (v + 1 AS v) FROM u => SELECT id, k, s, v + 1 AS v FROM u
SELECT id, (ts, INTERVAL '5' SECOND) OVERLAPS (TIMESTAMP '2024-01-01 00:00:10', TIMESTAMP '2024-01-01 00:00:30') AS o FROM t => SELECT id, ts <= TIMESTAMP '2024-01-01 00:00:30' AND ts + INTERVAL 5 SECOND >= TIMESTAMP '2024-01-01 00:00:10' AS o FROM t
SELECT id, r.a, r.b, [k, 1][2] AS c FROM (SELECT id, k, struct(v AS a, s AS b) AS r FROM u) AS q => SELECT id, v AS a, s AS b, 1 AS c FROM u
SELECT q.r.* FROM (SELECT {'a': id, 'b': v} AS r FROM u) AS q => SELECT id AS a, v AS b FROM u
SELECT u.id FROM u SEMI JOIN w ON u.k = w.k => SELECT u.id FROM u WHERE k IN (SELECT k FROM w)
SELECT u.id FROM u ANTI JOIN w ON u.k = w.k => SELECT u.id FROM u WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.k = u.k)
SELECT u.id, r.m FROM u CROSS APPLY (SELECT max(w.v) AS m FROM w WHERE w.k = u.k) AS r => SELECT u.id, (SELECT max(w.v) FROM w WHERE w.k = u.k) AS m FROM u
SELECT u.id, r.m FROM u OUTER APPLY (SELECT w.id AS m FROM w WHERE w.k = u.k) AS r => SELECT u.id, w.id AS m FROM u LEFT JOIN w ON w.k = u.k
""".strip().split("\n")


@pytest.fixture(scope="module")
def arenas() -> Iterator[list[Arena]]:
    arenas = [Arena.of(variant) for variant in range(2)]
    yield arenas
    for arena in arenas:
        arena.close()


@pytest.mark.longer
@pytest.mark.parametrize("number", range(len(QUERIES)), ids=[text.partition(" => ")[0] for text in QUERIES])
def test_rows_are_those_of_the_plain_words(arenas: list[Arena], number: int) -> None:
    ours, _, theirs = QUERIES[number].partition(" => ")
    query = Piece("query", (ours,), (theirs or ours,))
    # in brief each query is run in one of the manners
    for arena in of_length(arenas[:1], arenas):
        for manner in of_length(MANNERS[number % 3 :][:1], MANNERS):
            assert check(arena, query, manner)
