"""Subqueries that read the outer row anywhere, ANY and ALL, ARRAY of a query, joins in parentheses and ASOF
joins: the folded stream, our batch plans and the same words in DuckDB have one answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

ROWS = 30


def _column(step: int, values: int, rows: int) -> pa.Array:
    """Values below ``values``, some of them NULL, without an order."""
    every = [i * i * step + i * 7 + step for i in range(rows)]
    return pa.array([None if i % 9 == step % 9 else n % 11 % values for i, n in enumerate(every)], pa.int64())


OUTER = pa.table({"id": pa.array(range(12), pa.int64()), "k": _column(3, 4, 12), "v": _column(5, 7, 12)})
INNER = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "k": _column(2, 4, ROWS),
        "g": _column(7, 3, ROWS),
        "v": _column(5, 8, ROWS),
    }
)
TABLES = {"o": OUTER, "i": INNER}
QUERIES = """
SELECT o.id FROM o WHERE EXISTS (SELECT i.k FROM i WHERE i.k = o.k GROUP BY i.k HAVING count(*) > 1)
SELECT o.id FROM o WHERE o.v IN (SELECT max(i.v) FROM i WHERE i.k = o.k GROUP BY i.g)
SELECT o.id FROM o WHERE o.v IN (SELECT i.v FROM i WHERE i.k = o.k INTERSECT SELECT i.v FROM i WHERE i.g >= o.k)
SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k IN (SELECT j.k FROM i AS j WHERE j.v = o.v))
SELECT o.id, (SELECT max(i.v) FROM i WHERE i.k = o.k AND i.v < (SELECT avg(j.v) FROM i AS j WHERE j.g = o.k)) AS m FROM o
SELECT o.id, (SELECT sum(t.v) FROM (SELECT * FROM i WHERE i.k = o.k ORDER BY i.v DESC NULLS LAST, i.id LIMIT 2 OFFSET 1) AS t) AS n FROM o
SELECT o.id, (WITH w AS (SELECT i.g, sum(i.v) AS s FROM i WHERE i.k = o.k GROUP BY i.g) SELECT max(a.s) FROM w AS a JOIN w AS b ON a.g <= b.g) AS m FROM o
SELECT o.id, (SELECT count(*) + o.id FROM i WHERE i.k = o.k) AS m FROM o
SELECT o.id, (SELECT count(*) FROM i FULL JOIN (SELECT * FROM i WHERE g = o.k) AS j ON j.id = i.id AND i.k = o.k) AS m FROM o
SELECT o.id, (SELECT count(DISTINCT i.v) FROM i WHERE i.k = o.k OR i.g = o.k) AS m FROM o
SELECT o.id, t.r, t.v FROM o, LATERAL (SELECT i.v, row_number() OVER (ORDER BY i.v, i.id) AS r FROM i WHERE i.k = o.k) AS t WHERE t.r < 3
SELECT o.id, t.g, t.n FROM o LEFT JOIN LATERAL (SELECT i.g, count(*) AS n FROM i WHERE i.k = o.k GROUP BY i.g) AS t ON t.n > 1
SELECT a.id, b.id AS bid FROM o AS a LEFT JOIN o AS b ON a.k = b.k AND EXISTS (SELECT 1 FROM i WHERE i.v > a.v AND i.v < b.v)
SELECT o.k, count(*) AS n FROM o GROUP BY o.k HAVING count(*) > (SELECT count(*) FROM i WHERE i.k = o.k GROUP BY i.k)
SELECT o.id, (SELECT o.v WHERE o.k > 1) AS m FROM o
SELECT o.id, o.v > ANY (SELECT i.v FROM i WHERE i.k = o.k) AS a, o.v >= ANY (SELECT i.v FROM i WHERE i.k = o.k) AS b, o.v < ANY (SELECT i.v FROM i WHERE i.k = o.k) AS c FROM o
SELECT o.id, (o.k, o.v) IN (SELECT i.k, i.v FROM i) AS a, (o.k, o.v) NOT IN (SELECT i.k, i.v FROM i WHERE i.id > 9) AS b FROM o
SELECT o.id, ARRAY(SELECT i.v FROM i WHERE i.k = o.k ORDER BY i.id DESC) AS a FROM o
SELECT o.id, i.id AS j, p.id AS l FROM o LEFT JOIN (i JOIN o AS p ON p.k = i.k AND p.v > 2) ON o.id = i.id
SELECT o.id, i.id AS j, i.v FROM o ASOF LEFT JOIN i ON o.k = i.k AND o.id > i.id
"""
MORE = """
SELECT o.id, o.v > ALL (SELECT i.v FROM i WHERE i.k = o.k) AS a, o.v <= ALL (SELECT i.v FROM i WHERE i.k = o.k AND i.v IS NOT NULL) AS b, o.v = ALL (SELECT i.v FROM i WHERE i.g = o.k) AS c FROM o
SELECT o.id, o.v <> ANY (SELECT i.v FROM i WHERE i.k = o.k) AS a, o.v <> ALL (SELECT i.v FROM i WHERE i.k = o.k) AS b, o.v = ANY (SELECT i.v FROM i WHERE i.k = o.k) AS c FROM o
SELECT o.id FROM o WHERE o.v > ALL (SELECT i.v FROM i WHERE i.k = o.k AND i.v < 4)
SELECT o.id FROM o WHERE NOT (o.v < ANY (SELECT i.v FROM i WHERE i.g = o.k))
SELECT o.id FROM o WHERE o.v >= ALL (SELECT i.v FROM i WHERE i.v IS NOT NULL AND i.id < 3) AND o.id = ANY (SELECT i.id FROM i)
SELECT o.id, (o.k, o.v) IN (SELECT i.k, i.v FROM i WHERE i.g IS NOT NULL AND i.id > 100) AS a FROM o
SELECT o.id, ARRAY(SELECT i.v FROM i WHERE i.k = o.k ORDER BY i.id DESC LIMIT 2) AS a FROM o
SELECT o.id, ARRAY(SELECT DISTINCT i.v FROM i WHERE i.k = o.k ORDER BY 1) AS a FROM o
SELECT ARRAY(SELECT i.v + 1 AS w FROM i ORDER BY w, i.id) AS a
SELECT count(*) AS n FROM (o JOIN i ON o.k = i.k) LEFT JOIN i AS j ON j.id = i.g
SELECT o.id, j.id AS m FROM o RIGHT JOIN (i AS j LEFT JOIN i AS l ON l.id = j.k) ON o.k = l.k
SELECT o.id, i.id AS j, i.v FROM o ASOF JOIN i ON o.k = i.k AND o.id >= i.id
SELECT o.id, i.id AS j FROM o ASOF LEFT JOIN i ON o.k = i.k AND o.id <= i.id
SELECT o.id, i.id AS j FROM o ASOF JOIN i ON o.id < i.id
SELECT o.id, i.id AS j, i.k, i.g FROM o ASOF LEFT JOIN i ON o.k = i.g AND i.id + 3 < o.id * 2
SELECT o.id, i.v AS w FROM o ASOF LEFT JOIN i ON o.k = i.k AND o.v >= i.v
SELECT o.id, i.v AS w FROM o ASOF JOIN i ON o.k = i.k AND o.v < i.v
SELECT i.g, count(o.v) AS n, sum(o.id) AS s FROM i ASOF JOIN o ON o.k = i.k AND o.id <= i.id GROUP BY i.g
SELECT p.id, (SELECT sum(i.v) FROM (SELECT * FROM o WHERE o.k = p.k) AS q ASOF JOIN i ON q.k = i.k AND q.id >= i.id) AS m FROM o AS p
SELECT * FROM o NATURAL JOIN i
SELECT id, o.v, i.v AS w FROM o FULL JOIN i USING (id)
SELECT o.id FROM o WHERE o.v NOT IN (SELECT max(i.v) FROM i WHERE i.k = o.k GROUP BY i.g)
SELECT o.id, (SELECT count(*) FROM (SELECT i.v FROM i WHERE i.k = o.k UNION SELECT i.v FROM i WHERE i.g = o.k) AS u) AS n FROM o
SELECT o.id FROM o WHERE o.v IN (SELECT i.v FROM i WHERE i.k = o.k UNION ALL SELECT i.id FROM i WHERE i.id = o.id)
SELECT o.id FROM o WHERE o.v IN (SELECT i.v FROM i WHERE i.k = o.k EXCEPT SELECT i.v FROM i WHERE i.g = o.k)
SELECT o.id FROM o WHERE EXISTS (SELECT i.v FROM i WHERE i.k = o.k EXCEPT ALL SELECT i.v FROM i WHERE i.g = o.k)
SELECT o.id FROM o WHERE NOT EXISTS (SELECT i.v FROM i WHERE i.k = o.k UNION ALL SELECT i.v FROM i WHERE i.v = o.v)
SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.k AND EXISTS (SELECT 1 FROM i AS j WHERE j.g = i.g AND j.v > o.v))
SELECT o.id, (SELECT i.v FROM i WHERE i.k = o.k ORDER BY i.v DESC NULLS LAST, i.id LIMIT 1 OFFSET 1) AS second FROM o
SELECT o.id, (SELECT count(*) FROM (SELECT * FROM i WHERE i.k = o.k ORDER BY i.v DESC NULLS LAST, i.id LIMIT 2) AS t WHERE t.v > 3) AS n FROM o
SELECT o.id, (WITH w AS (SELECT i.v AS x FROM i WHERE i.k = o.k) SELECT max(x) FROM w) AS m FROM o
SELECT o.id, (SELECT max(i.v) + o.v FROM i WHERE i.k = o.k) AS m FROM o
SELECT o.id, (SELECT count(*) FROM i WHERE i.k = o.k GROUP BY i.k) AS m FROM o
SELECT o.id, (SELECT count(*) FROM i WHERE i.k = o.k HAVING count(*) > 1) AS m FROM o
SELECT o.id, (SELECT max(i.v) FROM i LEFT JOIN i AS j ON j.k = i.k AND j.v > o.v WHERE j.id IS NULL) AS m FROM o
SELECT o.id, (SELECT count(j.id) FROM i RIGHT JOIN i AS j ON j.k = i.k AND i.v = o.v) AS m FROM o
SELECT o.id, (SELECT count(*) FROM i JOIN o AS p ON p.k = i.k AND p.v > o.v) AS m FROM o
SELECT o.id, (SELECT max(x) FROM (SELECT i.v - o.v AS x FROM i) AS t) AS m FROM o
SELECT o.id, (SELECT max(n) FROM (SELECT i.g, count(*) AS n FROM i WHERE i.v > o.v GROUP BY i.g) AS t) AS m FROM o
SELECT o.id, t.g, t.n FROM o, LATERAL (SELECT i.g, count(*) AS n FROM i WHERE i.k = o.k GROUP BY i.g) AS t
SELECT o.id, t.v FROM o, LATERAL (SELECT i.v FROM i WHERE i.k = o.k UNION SELECT o.v) AS t
SELECT o.id, t.v FROM o LEFT JOIN LATERAL (SELECT i.v + o.v AS v FROM i WHERE i.k = o.k) AS t ON TRUE
SELECT o.id, t.v FROM o, LATERAL (SELECT DISTINCT i.v FROM i WHERE i.k = o.k) AS t
SELECT o.id, t.v FROM o, LATERAL (SELECT i.v FROM i WHERE i.k = o.k ORDER BY i.v, i.id LIMIT 2 OFFSET 1) AS t
SELECT o.id, t.v, u.g FROM o, LATERAL (SELECT max(i.v) AS v FROM i WHERE i.k = o.k) AS t, LATERAL (SELECT i.g FROM i WHERE i.v = t.v AND i.k = o.k GROUP BY i.g) AS u
SELECT o.id, t.x FROM o, LATERAL (SELECT u.x FROM LATERAL (SELECT max(i.v) AS x FROM i WHERE i.k = o.k) AS u) AS t
SELECT o.id, t.a FROM o LEFT JOIN LATERAL (SELECT o.v AS a) AS t ON TRUE
SELECT o.id, t.a FROM o, LATERAL (SELECT o.v + 1 AS a UNION ALL SELECT o.k) AS t
SELECT a.id, b.id AS bid FROM o AS a RIGHT JOIN o AS b ON a.k = b.k AND EXISTS (SELECT 1 FROM i WHERE i.v > a.v AND i.v < b.v)
SELECT a.id, b.id AS bid FROM o AS a JOIN o AS b ON a.k = b.k AND a.v + b.v > (SELECT avg(i.v) FROM i WHERE i.k = a.k GROUP BY i.k)
SELECT o.id, o.v IN (SELECT i.v FROM i WHERE i.k = o.k GROUP BY i.v HAVING count(*) >= 1) AS f FROM o
SELECT o.id, EXISTS (SELECT i.v FROM i WHERE i.k = o.k UNION SELECT i.v FROM i WHERE i.v = o.v) AS f FROM o
SELECT o.id, (SELECT max(x) FROM (VALUES (o.k), (o.v)) AS t(x)) AS m FROM o
SELECT o.id FROM o WHERE o.v = (SELECT max(i.v) FROM i WHERE i.k = o.k AND i.id IN (SELECT p.id FROM o AS p WHERE p.v <= o.v))
SELECT o.id, (SELECT (SELECT max(j.v) FROM i AS j WHERE j.k = p.k AND j.g = o.k) FROM o AS p WHERE p.id = o.id LIMIT 1) AS m FROM o
SELECT o.id, (SELECT count(*) FROM i WHERE i.k = o.k AND i.v NOT IN (SELECT p.v FROM o AS p WHERE p.id <> o.id)) AS m FROM o
SELECT o.id FROM o ORDER BY (SELECT count(*) FROM i WHERE i.k = o.k GROUP BY i.k), o.id LIMIT 3
SELECT o.id, CASE WHEN EXISTS (SELECT 1 FROM i WHERE i.k = o.k LIMIT 1) THEN 1 ELSE 0 END AS f FROM o
SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.k ORDER BY i.v LIMIT 1 OFFSET 2)
SELECT sum((SELECT count(*) FROM i WHERE i.k = o.k GROUP BY i.k)) AS s FROM o
SELECT o.id, (SELECT sum(n) FROM (SELECT i.g, count(*) AS n FROM i WHERE i.k = o.k GROUP BY ROLLUP (i.g)) AS t) AS m FROM o
SELECT o.id, (SELECT max(x) FROM (SELECT i.v AS x FROM i WHERE i.k = o.k) AS t, (SELECT max(j.g) AS y FROM i AS j WHERE j.v = o.v) AS s WHERE x > y) AS m FROM o
SELECT o.id FROM o WHERE o.k = (SELECT i.k FROM i WHERE i.id = o.id LIMIT 1)
SELECT o.id FROM o WHERE EXISTS (SELECT o.k INTERSECT SELECT i.k FROM i)
"""


def _listed(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def _session(settings: dict[str, str]) -> Session:
    session = Session(settings)
    for name, table in TABLES.items():
        session.register(name, table)
    return session


@pytest.fixture(scope="module")
def stream() -> Iterator[Session]:
    session = _session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "7"})
    yield session
    session.close()


@pytest.fixture(scope="module")
def duckdb_batch() -> Iterator[Session]:
    session = _session({"bounded.backend": "duckdb"})
    yield session
    session.close()


@pytest.fixture(scope="module")
def spark_batch() -> Iterator[Session]:
    session = _session({"bounded.backend": "spark"})
    yield session
    session.close()


def _answer(query: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        connection.execute("SET default_null_order = 'nulls_first'")
        return _counted(connection.execute(query).fetchall())


def _rows(session: Session, query: str) -> Counter[tuple[Any, ...]]:
    rows = session.execute(query).final_rows(PATIENCE_S)
    return _counted(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _counted(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Count rows, arrays in them as tuples."""
    return Counter(tuple(tuple(v) if isinstance(v, list) else v for v in row) for row in rows)


@pytest.mark.parametrize("query", _listed(QUERIES))
def test_stream_and_batch(stream: Session, duckdb_batch: Session, query: str) -> None:
    expected = _answer(query)
    stream.settings.set("parallelism.default", "2")
    assert _rows(stream, query) == expected
    assert _rows(duckdb_batch, query) == expected


@pytest.mark.at_length
@pytest.mark.parametrize("query", _listed(MORE))
def test_more_of_stream_and_batch(stream: Session, duckdb_batch: Session, query: str) -> None:
    expected = _answer(query)
    for parallelism in ("1", "3"):
        stream.settings.set("parallelism.default", parallelism)
        assert _rows(stream, query) == expected
    assert _rows(duckdb_batch, query) == expected


@pytest.mark.at_length
@pytest.mark.spark
@pytest.mark.parametrize("query", _listed(QUERIES + MORE))
def test_spark(spark_batch: Session, query: str) -> None:
    assert _rows(spark_batch, query) == _answer(query)
