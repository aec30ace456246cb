"""Every kind of operator over updates and deletes read from files, in three acts: the folded result is
DuckDB's over the table they leave behind.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from penstock.client.session import Session
from penstock.engine.changelog.row_kinds import DELETE, UPDATE_AFTER, UPDATE_BEFORE, change_rows
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end
from tests.streaming.three_acts.change_files import Changes, declared

CHANGES = 3_000
_TEN_SECONDS = "time_bucket(INTERVAL '10 seconds', ts)"
_TUMBLED = "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS)"
# What we are asked, and what DuckDB is where the words differ.
QUERIES = {
    "filter": ("SELECT id, v * 2 AS w FROM t WHERE v > 3", None),
    "aggregate": (
        "SELECT k, COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(d), COUNT(DISTINCT v) FROM t GROUP BY k HAVING SUM(v) <> 0",
        None,
    ),
    "total": ("SELECT COUNT(*), SUM(d), MIN(k) FROM t", None),
    "join": ("SELECT t.id, t.v, u.v FROM t JOIN u ON t.k = u.k AND t.d < u.d", None),
    "outer join": ("SELECT t.id, u.id, u.d FROM t FULL JOIN u ON t.id = u.id AND t.v > 0", None),
    "anti join": (
        "SELECT id, k FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.v > 0)",
        None,
    ),
    "top": (
        "SELECT k, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, id) AS n FROM t) WHERE n <= 3",
        None,
    ),
    "first": ("SELECT id, v FROM t ORDER BY v DESC NULLS LAST, id LIMIT 7", None),
    "over": (
        "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY id) AS s, LAG(v) OVER (PARTITION BY k ORDER BY id) AS l FROM t",
        None,
    ),
    "window": (
        f"SELECT window_start, k, COUNT(*), SUM(v), MAX(d) FROM {_TUMBLED} GROUP BY window_start, window_end, k",
        f"SELECT {_TEN_SECONDS} AS w, k, COUNT(*), SUM(v), MAX(d) FROM t GROUP BY w, k",
    ),
    "sets": ("SELECT k, v FROM t EXCEPT SELECT k, v FROM u", None),
    "distinct": ("SELECT DISTINCT k, v FROM t", None),
    "aggregate of join": ("SELECT u.k, SUM(t.v), COUNT(*) FROM t JOIN u ON t.id = u.id GROUP BY u.k", None),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, duckdb.DuckDBPyConnection]:
    root = tmp_path_factory.mktemp("changes")
    connection = duckdb.connect()
    script = ""
    for name, seed in (("t", 1), ("u", 2)):
        changes = Changes(seed).happen(CHANGES)
        script += declared(name, changes.write(root / name))
        changes.load(connection, name)
    return script, connection


IN_ACTS = ("aggregate", "outer join", "anti join", "top", "over", "window", "aggregate of join")


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in IN_ACTS])
def test_straight_through(name: str, tables: tuple[str, duckdb.DuckDBPyConnection]) -> None:
    query, words = QUERIES[name]
    session = Session({"execution.batch.max-rows": "61", "parallelism.default": "2"})
    try:
        for statement in session.parse(tables[0]):
            session.run(statement)
        rows = session.execute(query).final_rows()
        got = Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
        assert got == Counter(tables[1].execute(words or query).fetchall())
    finally:
        session.close()


@pytest.mark.parametrize("name", IN_ACTS)
def test_three_acts(name: str, tables: tuple[str, duckdb.DuckDBPyConnection], tmp_path: Path) -> None:
    query, words = QUERIES[name]
    want = Counter(tables[1].execute(words or query).fetchall())
    script = Script(name, {"execution.batch.max-rows": "61"}, tables[0] + query)
    try:
        straight = Folded()
        job, channel = script.submit(1, None, 0)
        run_to_end(job, channel, straight)
        assert straight.rows == want
        given = rows_read(job)
        folded = Folded()
        job, channel = script.submit(2, tmp_path, 20)
        run_and_stop(job, channel, folded, given // 3)
        job, channel = script.submit(3, tmp_path, 20)
        run_to_end(job, channel, folded)
        assert rows_read(job) < given, "act three was to go on, not to begin again"
        assert folded.rows == want
    finally:
        script.close()


# Queries whose rows have a key, and the columns that are it.
KEYED = {
    name: QUERIES[name][0] for name in ("filter", "aggregate", "outer join", "over", "anti join", "total")
}


@pytest.mark.parametrize("name", KEYED)
def test_changes_are_well_formed(name: str, tables: tuple[str, duckdb.DuckDBPyConnection]) -> None:
    session = Session({"execution.batch.max-rows": "17"})
    try:
        for statement in session.parse(tables[0]):
            session.run(statement)
        result = session.execute(KEYED[name])
        key = result.shape.upsert_key
        there: dict[Any, Any] = {}
        while (batch := result.next()) is not None:
            rows, ops = change_rows(batch, key)
            _apply(there, list(zip(*(column.to_pylist() for column in rows.columns), strict=True)), ops, key)
        assert Counter(there.values()) == Counter(tables[1].execute(KEYED[name]).fetchall())
    finally:
        session.close()


def _apply(
    there: dict[Any, Any], rows: list[tuple[Any, ...]], ops: np.ndarray, key: tuple[int, ...] | None
) -> None:
    """Apply changes in their order: what is taken back must be there, what is added must not, a -U is
    followed by the +U of its key.
    """
    before = None
    for row, op in zip(rows, ops.tolist(), strict=True):
        identity = row if key is None else tuple(row[i] for i in key)
        assert (before is None) == (op != UPDATE_AFTER)
        assert before in (None, identity)
        before = identity if op == UPDATE_BEFORE else None
        if op in (UPDATE_BEFORE, DELETE):
            assert there.pop(identity) == row
        else:
            assert there.setdefault(identity, row) is row
    assert before is None


@pytest.mark.parametrize("name", [name for name in QUERIES if name not in ("filter", "window")])
def test_nothing_is_left_when_everything_is_taken_back(name: str, tmp_path: Path) -> None:
    session = Session({"execution.batch.max-rows": "101"})
    try:
        for table, seed in (("t", 1), ("u", 2)):
            session.execute(
                declared(table, Changes(seed).happen(400).empty().write(tmp_path / table)).strip("\n;")
            )
        result = session.execute(QUERIES[name][0])
        rows = result.final_rows()
        left = (
            {operator.name: operator.state_entries for operator in result.job.metrics().operators}
            if result.job
            else {}
        )
        assert rows.to_pylist() == (
            [{"count(*)": 0, "sum(d)": None, "min(k)": None}] if name == "total" else []
        )
        assert name == "total" or not any(left.values()), left
    finally:
        session.close()
