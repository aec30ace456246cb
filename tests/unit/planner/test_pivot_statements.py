"""DuckDB's statements PIVOT and UNPIVOT: rows and names of columns are DuckDB's, over streams and on its
backend.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

MODES = ("streaming", "automatic")
ROWS = pa.table(
    {
        "k": [1, 1, 2, 2, 3],
        "s": ["a", "b", "a", None, "c"],
        "v": [10, 20, 30, 40, None],
        "w": ["u", "u", "v", "v", "u"],
    }
)
TEXTS = (
    "PIVOT t ON s IN ('a', 'b') USING sum(v) GROUP BY k",
    "PIVOT t ON s IN ('a', 'b') USING sum(v) AS n GROUP BY k",
    "PIVOT t ON s IN ('a' AS x, 'b' y) USING sum(v) + 1 GROUP BY k",
    "PIVOT t ON s IN ('a', 'b') USING sum(v)",
    "PIVOT t ON s IN ('a', 'b')",
    "PIVOT t ON s IN ('a', 'zz') GROUP BY k",
    "PIVOT t ON s IN ('a', 'b') USING sum(v) AS n, max(v) GROUP BY k, w ORDER BY k DESC LIMIT 2",
    "PIVOT t ON s IN ('a', 'b'), w IN ('u', 'v' AS z) USING sum(v) GROUP BY k",
    "PIVOT t ON (s || w) IN ('au', 'bu') USING sum(v)",
    "PIVOT t ON upper(s) IN ('A', 'B') USING count(DISTINCT v), sum(v) FILTER (WHERE v > 10) AS more GROUP BY w",
    "PIVOT t ON s IN ('a', NULL) USING sum(v) GROUP BY k",
    "PIVOT t ON v IN (10, 20) USING count(*) GROUP BY k",
    'PIVOT t ON k IN (1, -1, 2) USING sum(v)::VARCHAR AS "as text" GROUP BY w',
    "PIVOT t ON k IN (1) USING sum(v) AS w GROUP BY w",
    "PIVOT_WIDER (SELECT * FROM t WHERE k < 3) AS q ON s IN ('a') USING sum(v) GROUP BY k",
    "PIVOT t JOIN (SELECT 1 AS k2) AS q ON t.k = q.k2 ON s IN ('a') USING sum(v) GROUP BY k",
    "PIVOT t ON s IN ('a') USING sum(v) GROUP BY k UNION ALL PIVOT t ON s IN ('b') USING sum(v) GROUP BY k",
    "SELECT k FROM (PIVOT t ON s IN ('a') USING sum(v) GROUP BY k) AS p WHERE a > 10",
    "WITH p AS (PIVOT t ON s IN ('a') USING sum(v) GROUP BY k) SELECT * FROM p",
    "WITH p AS (SELECT * FROM t) PIVOT p ON s IN ('a') USING sum(v) GROUP BY k",
    "FROM t PIVOT (sum(v) FOR s IN ('a', 'b') GROUP BY w)",
    "UNPIVOT t ON k, v",
    "UNPIVOT t ON k AS a, v AS 'b' INTO NAME n VALUE x",
    "UNPIVOT t ON (k, v) AS a, (v, k) INTO NAME n VALUE x, y ORDER BY x DESC LIMIT 2",
    "UNPIVOT t ON COLUMNS(* EXCLUDE (s, w)) + 1",
    "UNPIVOT t ON COLUMNS('^[kv]$') INTO NAME n VALUE x",
    "UNPIVOT t ON COLUMNS(['v', 'k'])",
    "UNPIVOT t ON * EXCLUDE (s, w)",
    "UNPIVOT (SELECT k, v FROM t) ON *",
    "UNPIVOT t ON t.k, (v + 1) INTO NAME n VALUE x",
    "UNPIVOT t ON k::VARCHAR, s INTO NAME n VALUE x",
    "PIVOT_LONGER t ON k, v",
    "SELECT n, x FROM (UNPIVOT t ON k, v INTO NAME n VALUE x) AS z WHERE x > 3",
)
REFUSED = (
    ("PIVOT t ON s USING sum(v)", "SQL-1601", "SELECT DISTINCT s FROM t lists the values"),
    ("PIVOT t ON s IN (SELECT w FROM t) USING sum(v)", "SQL-1601", "write ON s IN ('a', 'b')"),
    ("PIVOT t ON k + 1 IN (2) USING sum(v)", "SQL-1601", "put the expression in parentheses"),
    ("PIVOT t ON s IN ('a') USING v GROUP BY k", "SQL-1062", "any_value"),
    ("PIVOT t ON s IN ('a') USING sum(v) GROUP BY z", "SQL-1042", "there is k"),
    ("PIVOT t ON z IN ('a') USING sum(v)", "SQL-1042", "there is k"),
    (f"PIVOT t ON k IN ({', '.join(map(str, range(40)))}), v IN ({', '.join(map(str, range(40)))})", "SQL-1007", ""),
    ("PIVOT t", "SQL-1001", ""),
    ("UNPIVOT t ON *", "SQL-1084", "CAST"),
    ("UNPIVOT t ON z", "SQL-1042", "there is k"),
    ("UNPIVOT t ON (k, v) INTO NAME n VALUE x", "SQL-1046", "INTO NAME n VALUE a, b"),
    ("UNPIVOT t INCLUDE NULLS ON k", "SQL-1001", "write FROM t UNPIVOT INCLUDE NULLS"),
)  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb", "table.dml-sync": "true"})
    session.register("t", ROWS)
    yield session
    session.close()


def _answer(session: Session, text: str, mode: str = "automatic") -> tuple[list[str], list[str]]:
    session.settings.set("execution.runtime-mode", mode)
    rows = session.execute(text).final_rows(PATIENCE_S)
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    return rows.schema.names, sorted(map(repr, values))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", TEXTS)
def test_rows_and_names_are_those_of_duckdb(session: Session, text: str, mode: str) -> None:
    connection = duckdb.connect()
    connection.register("t", ROWS)
    expected = connection.execute(text)
    names = [column[0] for column in expected.description or ()]
    assert _answer(session, text, mode) == (names, sorted(map(repr, expected.fetchall())))


@pytest.mark.parametrize(("text", "code", "hint"), REFUSED, ids=[text[:50] for text, *_ in REFUSED])
def test_what_is_refused_says_what_to_write(session: Session, text: str, code: str, hint: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(text)
    assert refused.value.code == code
    assert hint in (refused.value.hint or "")


def test_they_are_queries_in_every_statement(session: Session) -> None:
    session.settings.set("execution.runtime-mode", "streaming")
    for text in (
        "CREATE VIEW pivoted AS PIVOT t ON s IN ('a', 'b') USING sum(v) GROUP BY k",
        "CREATE TABLE sums (k BIGINT, a BIGINT) WITH ('connector' = 'blackhole')",
        "INSERT INTO sums PIVOT t ON s IN ('a') USING sum(v) GROUP BY k",
        "INSERT INTO sums (k, a) SELECT k, a FROM pivoted",
        "DESCRIBE PIVOT t ON s IN ('a') USING sum(v) GROUP BY k",
        "EXPLAIN UNPIVOT t ON k, v",
        "VERIFY PIVOT t ON s IN ('a') USING sum(v) GROUP BY k AGAINST BATCH",
    ):
        session.execute(text)
    shown = session.execute("SHOW CREATE VIEW pivoted").final_rows(PATIENCE_S).to_pylist()
    assert "PIVOT t ON s IN ('a', 'b')" in str(shown)
    assert _answer(session, "SELECT b FROM pivoted WHERE k = 1") == (["b"], ["(20,)"])


def test_pivot_is_a_name_elsewhere(session: Session) -> None:
    session.execute("CREATE VIEW pivot AS SELECT k AS pivot, v AS unpivot FROM t")
    text = "SELECT (pivot DIV 2) AS a, pivot.unpivot FROM pivot WHERE (pivot) > 2"
    assert _answer(session, text) == (["a", "unpivot"], ["(1, None)"])
    assert _answer(session, "WITH q (pivot) AS (SELECT k FROM t) SELECT max(pivot) AS m FROM q")[1] == [
        "(3,)"
    ]
    assert _answer(session, "SELECT a.pivot FROM (pivot AS a) WHERE a.unpivot = 10")[1] == ["(1,)"]
    session.execute("DESCRIBE pivot")
    session.execute("DROP VIEW pivot")
