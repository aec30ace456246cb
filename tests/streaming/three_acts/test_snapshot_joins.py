"""LATERAL SNAPSHOT in three acts against DuckDB: a table loaded to its end, a changelog, a bounded table;
batch gives what a loaded table gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.change_files import Changes, declared
from tests.streaming.three_acts.late_free import database, declare, rows_of
from tests.streaming.three_acts.test_timed_joins import rows_of_a, submit

ROWS = 2400
SPLITS = {
    "a": rows_of(ROWS, 3, lambda i: 30 if i % 29 == 7 else 0),
    "r": rows_of(ROWS // 4, 5, lambda i: -i / 2),
}
ALL = {name: pa.concat_tables(splits) for name, splits in SPLITS.items()}
CITIES = pa.table({"k": ["a", "b", "c", "x"], "city": ["Aachen", "Bonn", "Celle", "Xanten"]})
CHANGES = Changes(3).happen(900)
# later than all that comes: loaded at its end
_LATE = "load_completed_time => TIMESTAMP '2100-01-01 00:00:00'"
# By name: our words and DuckDB's.
QUERIES = {
    "inner": (
        f"SELECT a.id, v.id, v.v FROM a JOIN LATERAL SNAPSHOT(input => TABLE r, on_time => DESCRIPTOR(ts), {_LATE}) AS v ON a.k = v.k",
        "SELECT a.id, r.id, r.v FROM a JOIN r ON a.k = r.k",
    ),
    "left": (
        f"SELECT a.id, v.id, a.ts FROM a LEFT JOIN LATERAL SNAPSHOT(TABLE r, on_time => DESCRIPTOR(ts), {_LATE}) AS v ON v.k = a.k AND v.v > a.v",
        "SELECT a.id, r.id, a.ts FROM a LEFT JOIN r ON r.k = a.k AND r.v > a.v",
    ),
    "changes": (
        f"SELECT a.id, k, s.d FROM a JOIN LATERAL SNAPSHOT(input => TABLE c, {_LATE}, on_time => DESCRIPTOR(ts)) AS s(i, k, w, d, at) USING (k)",
        "SELECT a.id, k, c.d FROM a JOIN c USING (k)",
    ),
    "query": (
        "SELECT a.id, s.w FROM a LEFT JOIN LATERAL TABLE(SNAPSHOT(input => TABLE (SELECT id AS i, v * 2 AS w, ts FROM c WHERE v > 0),"
        f" on_time => DESCRIPTOR(ts), {_LATE})) AS s ON a.id + 1 = s.i",
        "SELECT a.id, c.v * 2 FROM a LEFT JOIN c ON a.id + 1 = c.id AND c.v > 0",
    ),
    "bounded": (
        "SELECT a.id, s.city FROM a LEFT JOIN LATERAL SNAPSHOT(input => TABLE cities) AS s ON a.k = s.k",
        "SELECT a.id, s.city FROM a LEFT JOIN cities AS s ON a.k = s.k",
    ),
}
WINDOWED = (
    "SELECT window_end, COUNT(*), SUM(w) FROM TUMBLE(TABLE (SELECT a.ts AS ts, s.v AS w FROM a JOIN {} AS s ON a.k = s.k),"
    " DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end"
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    session = Session(
        {"execution.runtime-mode": "streaming", "execution.batch.max-rows": "60", "bounded.backend": "duckdb"}
    )
    for name, splits in SPLITS.items():
        declare(session, name, splits, tmp_path)
    session.execute(declared("c", CHANGES.write(tmp_path / "c")).rstrip(";\n"))
    session.register("cities", CITIES)
    yield session
    session.close()


def answer(words: str) -> Counter[tuple[Any, ...]]:
    with database(**ALL, cities=CITIES) as connection:
        CHANGES.load(connection, "c")
        return Counter(connection.execute(words).fetchall())


def rows(session: Session, text: str) -> Counter[tuple[Any, ...]]:
    found = session.execute(text).final_rows(PATIENCE_S)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("name", QUERIES)
def test_three_acts(session: Session, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_a)
    text, words = QUERIES[name]
    expected = answer(words)
    straight = Folded()
    job, channel = submit(session, text, 1, None)
    run_to_end(job, channel, straight)
    assert straight.rows == expected
    assert all(
        operator.state_entries == 0 for operator in job.metrics().operators if operator.name.endswith("join")
    )

    folded = Folded()
    state = tmp_path / "state"
    run_and_stop(*submit(session, text, 2, state), folded, ROWS // 4)
    job, channel = submit(session, text, 3, state)
    run_to_end(job, channel, folded)
    assert folded.rows == expected


@pytest.mark.parametrize("name", QUERIES)
def test_bounded_is_the_join_with_the_table_at_its_end(session: Session, name: str) -> None:
    session.settings.set("execution.runtime-mode", "batch")
    text, words = QUERIES[name]
    assert rows(session, text) == answer(words)


@pytest.mark.parametrize("parallelism", ["1", "3"])
def test_windows_above_lose_no_row(session: Session, parallelism: str) -> None:
    """Time waits with the rows: what waited for the table is on time above, unless it was late when it
    came.
    """
    session.settings.set("parallelism.default", parallelism)
    session.register("loaded", ALL["r"].select(["k", "v"]))
    assert rows(
        session,
        WINDOWED.format("LATERAL SNAPSHOT(input => TABLE r, on_time => DESCRIPTOR(ts), " + _LATE + ")"),
    ) == rows(session, WINDOWED.format("loaded"))
