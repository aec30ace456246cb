"""Nested values over changes: what is left is DuckDB's answer over the table that is left, and when all is
taken back nothing is kept.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.change_files import Changes, declared
from tests.streaming.three_acts.test_nested import hashable

# By name: the query, and DuckDB's words where they are others.
QUERIES: dict[str, tuple[str, str | None]] = {
    "row-keys": (
        "SELECT struct(k, v) AS s, count(*) AS n FROM t GROUP BY struct(k, v)",
        "SELECT {'k': k, 'v': v}, count(*) FROM t GROUP BY k, v",
    ),
    "array-keys": ("SELECT DISTINCT array(v, id % 3) FROM t", "SELECT DISTINCT [v, id % 3] FROM t"),
    "unnest": (
        "SELECT id, e, n FROM t, UNNEST(ARRAY[v, v + 1, v]) WITH ORDINALITY AS u(e, n)",
        "SELECT id, unnest([v, v + 1, v]), unnest([1, 2, 3]) FROM t",
    ),
    "unnested-groups": (
        "SELECT e, count(*), sum(d) FROM t LEFT JOIN UNNEST(array_compact(ARRAY[v, id])) AS u(e) ON TRUE GROUP BY e",
        "SELECT e, count(*), sum(d) FROM (SELECT d, unnest(list_filter([v, id], lambda x: x IS NOT NULL)) AS e FROM t) GROUP BY e",
    ),
    "carried": (
        "SELECT a.id, b.s FROM t AS a JOIN (SELECT k, array(count(*), max(v)) AS s FROM t GROUP BY k) AS b ON a.k = b.k WHERE a.v > 0",
        "SELECT a.id, b.s FROM t AS a JOIN (SELECT k, [count(*), max(v)] AS s FROM t GROUP BY k) AS b ON a.k = b.k WHERE a.v > 0",
    ),
    "joined": (
        "SELECT a.id, b.id FROM t AS a JOIN u AS b ON array(a.k) = array(b.k) AND a.v = b.v",
        "SELECT a.id, b.id FROM t AS a JOIN u AS b ON (a.k = b.k OR (a.k IS NULL AND b.k IS NULL)) AND a.v = b.v",
    ),
    "except": (
        "SELECT struct(k, v) AS s FROM t EXCEPT SELECT struct(k, v) FROM u",
        "SELECT {'k': k, 'v': v} FROM t EXCEPT SELECT {'k': k, 'v': v} FROM u",
    ),
    "lateral": (
        "SELECT t.id, b.id FROM t, LATERAL (SELECT id FROM u WHERE u.k = t.k ORDER BY d DESC, id LIMIT 2) AS b",
        None,
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_left(name: str, tmp_path: Path) -> None:
    query, words = QUERIES[name]
    tables = {table: Changes(seed).happen(500) for table, seed in (("t", 3), ("u", 4))}
    with duckdb.connect() as connection:
        for table, changes in tables.items():
            changes.load(connection, table)
        answer = Counter(hashable(row) for row in connection.execute(words or query).fetchall())
    assert rows_of(query, tables, tmp_path)[0] == answer


@pytest.mark.parametrize("name", QUERIES)
def test_nothing_is_left_when_everything_is_taken_back(name: str, tmp_path: Path) -> None:
    tables = {table: Changes(seed).happen(300).empty() for table, seed in (("t", 3), ("u", 4))}
    rows, left = rows_of(QUERIES[name][0], tables, tmp_path)
    assert not rows and not any(left.values()), left


def rows_of(query: str, tables: dict[str, Changes], directory: Path) -> tuple[Counter[Any], dict[str, int]]:
    session = Session({"execution.batch.max-rows": "101"})
    try:
        for table, changes in tables.items():
            session.execute(declared(table, changes.write(directory / table)).strip("\n;"))
        result = session.execute(query)
        found = Counter(
            hashable(row)
            for row in zip(
                *(column.to_pylist() for column in result.final_rows(PATIENCE_S).columns), strict=True
            )
        )
        assert result.job is not None
        return found, {operator.name: operator.state_entries for operator in result.job.metrics().operators}
    finally:
        session.close()
