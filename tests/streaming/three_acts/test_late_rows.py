"""Late rows as a table: each row of a window's input is in its windows or among the late rows, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING, TIMESTAMP
from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.connectors.in_process.late_rows import MAX_KEPT, LateRows
from penstock.planner.statements.nodes import Insert
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.test_emit import (
    _TABLES,
    ROWS,
    Row,
    _kept,
    _naive,
    _sessions,
    _windows,
    rows_of_e,
    session,
)

__all__ = ["session"]
_OUT = "k BIGINT, window_end TIMESTAMP(6), n BIGINT"
_LATE = "k BIGINT, d DOUBLE, ts TIMESTAMP(6), window_end TIMESTAMP(6), watermark TIMESTAMP(6)"


def _late(kind: str, lateness_s: int) -> list[Row]:
    if kind == "session":
        return _sessions(lateness_s)[1]
    return [
        row for row, bound in _kept(lateness_s)[0] if all(end <= bound for _, end in _windows(kind, row[3]))
    ]


def _written(place: Path) -> Counter[tuple[Any, ...]]:
    files = [pq.read_table(file) for file in place.rglob("*.parquet")]
    return Counter(
        row for table in files for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    )


def _run(session: Session, text: str, parallelism: int, state_dir: Path, stop_after: int | None) -> None:
    session.settings.set("parallelism.default", str(parallelism))
    session.state.state_dir = state_dir
    insert = session.parse(text)[0].node
    assert isinstance(insert, Insert)
    graph = session.pipeline.plan(session.pipeline.bind(insert)).graph
    assert graph is not None
    options = JobOptions.from_settings(session.settings, name="late", state_dir=state_dir)
    session.state.state_dir = None
    job = session.state.jobs.manager.submit(graph, replace(options, checkpoint_interval_ms=20), "late")
    if stop_after is not None:
        while rows_of_e(job) < stop_after:
            assert not job.wait(0)
        job.stop()
    assert job.wait(PATIENCE_S) and job.error is None


@pytest.mark.parametrize("kind", _TABLES)
def test_late_rows_go_to_a_table_of_their_own(session: Session, kind: str, tmp_path: Path) -> None:
    """Over a stop and a rescale, exactly once."""
    for name, columns in (("out", _OUT), ("late", _LATE)):
        options = f"'connector' = 'filesystem', 'path' = '{tmp_path / name}', 'format' = 'parquet'"
        session.execute(f"CREATE TABLE {name}_{kind} ({columns}) WITH ({options})")
    lateness = 0 if kind == "session" else 12
    query = f"SELECT k, window_end, count(*) FROM {_TABLES[kind]} GROUP BY k, window_start, window_end"
    clause = f"EMIT FINAL WITH LATENESS INTERVAL '{lateness}' SECONDS" if lateness else ""
    text = f"INSERT INTO out_{kind} {query} {clause} LATE ROWS INTO late_{kind}"
    _run(session, text, 2, tmp_path / "state", ROWS)
    _run(session, text, 3, tmp_path / "state", None)

    answer, late = _naive(kind, lateness)
    assert _written(tmp_path / "out") == Counter((k, end, n) for (k, _, end, n, _, _), _ in answer.items())
    expected = Counter((row[0], row[2], row[3]) for row in _late(kind, lateness))
    found = Counter[tuple[Any, ...]]()
    for (k, d, ts, end, watermark), times in _written(tmp_path / "late").items():
        assert end <= watermark - timedelta(seconds=lateness)
        found[k, d, ts] += times
    assert found == expected and sum(found.values()) == late > 0


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT k FROM e LATE ROWS INTO x", "SQL-1712"),
        ("INSERT INTO into_x SELECT k FROM e LATE ROWS INTO into_x", "SQL-1712"),
        (
            f"INSERT INTO into_x SELECT k FROM (SELECT k FROM {_TABLES['tumble']} LATE ROWS INTO into_x)",
            "SQL-1712",
        ),
        (f"INSERT INTO into_x SELECT k FROM {_TABLES['tumble']} LATE ROWS INTO nowhere", "SQL-1041"),
        (f"INSERT INTO into_x SELECT k FROM {_TABLES['tumble']} LATE ROWS INTO into_z", "SQL-1042"),
        (f"INSERT INTO into_x SELECT k FROM {_TABLES['tumble']} LATE ROWS INTO into_y", "SQL-1092"),
    ],
)
def test_late_rows_that_go_nowhere_are_refused(session: Session, query: str, code: str) -> None:
    for name, column in (("x", "k BIGINT"), ("y", "k DATE"), ("z", "zzz BIGINT")):
        session.execute(f"CREATE TABLE IF NOT EXISTS into_{name} ({column}) WITH ('connector' = 'blackhole')")
    with pytest.raises(PenstockError) as refused:
        session.execute(query)
    assert refused.value.code == code


@pytest.mark.parametrize("kind", _TABLES)
@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_late_rows_of_a_job_can_be_read(session: Session, kind: str, parallelism: str) -> None:
    session.settings.set("parallelism.default", parallelism)
    result = session.execute(
        f"SELECT k, window_end, count(*), sum(d) FROM {_TABLES[kind]} GROUP BY k, window_start, window_end"
    )
    result.final_rows(PATIENCE_S)
    assert result.job is not None
    rows = (
        session.execute(f'SELECT k, d, ts, window_end, watermark FROM "{result.job.job_id}$late"')
        .final_rows(PATIENCE_S)
        .to_pylist()
    )
    late = _late(kind, 0)
    assert Counter((row["k"], row["d"], row["ts"]) for row in rows) == Counter(
        (row[0], row[2], row[3]) for row in late
    )
    assert all((row["window_end"] or row["ts"]) <= row["watermark"] for row in rows)
    assert result.job.wait(PATIENCE_S)
    assert len(rows) == result.job.metrics().late_rows == _naive(kind, 0)[1]


_TOP = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v, k) AS n FROM"
_ROUND = "e AS a JOIN e AS b ON a.k = b.k AND a.v = b.v AND b.ts BETWEEN a.ts - INTERVAL '1' SECOND AND a.ts"


def _behind() -> list[Row]:
    return [row for row, bound in _kept(0)[0] if row[3] < bound]


def _without_partners() -> list[Row]:
    """A row may meet rows of a second before it or after; those without a key meet none."""
    return [
        row for row, bound in _kept(0)[0] if row[3] + timedelta(seconds=0 if None in row[:2] else 1) < bound
    ]


# Operators that drop late rows: which these are, and how many times each row of e comes to them.
TELLING: dict[str, tuple[Callable[[], list[Row]], int]] = {
    "SELECT v, LAG(v) OVER (PARTITION BY k ORDER BY ts) AS l FROM e": (_behind, 1),
    f"SELECT k, v, ts, window_end FROM {_TABLES['session']}": (lambda: _sessions()[1], 1),
    f"SELECT a.v, b.ts, a.ts FROM {_ROUND}": (_without_partners, 2),
    "SELECT a.v, w.k, a.ts FROM e AS a JOIN versions FOR SYSTEM_TIME AS OF a.ts AS w ON a.v = w.v": (
        _behind,
        2,
    ),
    "SELECT * FROM e MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS v PATTERN (A B) DEFINE B AS B.v > A.v)": (
        _behind,
        1,
    ),
}


@pytest.mark.parametrize("query", TELLING)
def test_other_operators_tell_of_late_rows(session: Session, query: str) -> None:
    session.settings.set("parallelism.default", "2")
    versions = "SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts DESC) AS n FROM e) WHERE n = 1"
    session.execute(f"CREATE VIEW IF NOT EXISTS versions AS {versions}")
    result = session.execute(query)
    result.final_rows(PATIENCE_S)
    assert result.job is not None
    rows = session.execute(f'SELECT v, ts FROM "{result.job.job_id}$late"').final_rows(PATIENCE_S).to_pylist()
    late, times = TELLING[query]
    expected = Counter((row[1], row[3]) for row in late() for _ in range(times))
    assert expected and Counter((row["v"], row["ts"]) for row in rows) == expected


def test_a_window_top_tells_of_late_rows(session: Session) -> None:
    session.settings.set("parallelism.default", "2")
    result = session.execute(
        f"SELECT v, n, window_end FROM (SELECT *, {_TOP} {_TABLES['tumble']}) WHERE n <= 2"
    )
    result.final_rows(PATIENCE_S)
    assert result.job is not None
    rows = (
        session.execute(f'SELECT v, k, window_end FROM "{result.job.job_id}$late"')
        .final_rows(PATIENCE_S)
        .to_pylist()
    )
    late = [(row[1], row[0], _windows("tumble", row[3])[0][1]) for row in _late("tumble", 0)]
    assert Counter(tuple(row.values()) for row in rows) == Counter(late)


def test_the_store_keeps_the_last_rows() -> None:
    store, schema = (
        LateRows(),
        Schema(
            (
                Field("operator", STRING),
                Field("window_end", TIMESTAMP),
                Field("watermark", TIMESTAMP),
                Field("v", BIGINT),
            )
        ),
    )
    for first in range(0, 3 * MAX_KEPT, MAX_KEPT // 2):
        rows = pa.RecordBatch.from_pydict({"v": pa.array(range(first, first + MAX_KEPT // 2), pa.int64())})
        store.add("job", "op", rows, np.full(rows.num_rows, 7), None)
    kept = store.arrow_table("job", schema)
    assert (
        kept.num_rows == MAX_KEPT
        and kept["v"].to_pylist()[-1] == 3 * MAX_KEPT - 1
        and set(kept["window_end"].to_pylist()) == {None}
    )
    assert store.arrow_table("other", schema).num_rows == 0
