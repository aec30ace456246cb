"""SESSION as a table under any operator, and ORDER BY time on a stream: a naive reading of the rows in
their splits says what they give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, Batch
from penstock.engine.operators.temporal_sort import TemporalSortOperator
from penstock.engine.operators.window.window_function import SessionFunctionOperator
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.windows import SessionWindow, window_fields
from tests.harness.operator_specs import temporal_sort_spec, window_table_spec
from tests.harness.operators import Remembered, opened
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.test_emit import (
    INPUT,
    ROWS,
    SPLITS,
    _kept,
    _late_rows,
    _sessions,
    rows_of_e,
    session,
    submit,
)

__all__ = ["session"]
GAP = timedelta(seconds=2)
SOURCE = "SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECONDS)"
INPUT_SCHEMA = Schema((Field("k", BIGINT), Field("ts", TIMESTAMP, role=Role.EVENT_TIME)))


def _on_time() -> list[tuple[Any, ...]]:
    return [row for row, bound in _kept(0)[0] if row[3] >= bound]


def _in_sessions() -> list[tuple[Any, ...]]:
    """Each row that is not late with the start and end of its session."""
    return [(*row, one.start, one.end) for one in _sessions()[0] for row in one.rows]


def _grouped(rows: list[tuple[Any, ...]], *columns: int) -> Counter[tuple[Any, ...]]:
    counts = Counter(tuple(row[i] for i in columns) for row in rows)
    return Counter((*key, n) for key, n in counts.items())


def _top() -> Counter[tuple[Any, ...]]:
    best: dict[Any, list[tuple[Any, ...]]] = {}
    for k, v, d, ts, _, end in _in_sessions():
        best.setdefault((k, end), []).append(
            (0 if v is None else 1, -(v or 0), k is not None, k or 0, d, ts, v)
        )
    return Counter((k, end, min(rows)[-1]) for (k, end), rows in best.items())


QUERIES = {
    f"SELECT k, v, d, ts, window_start, window_end FROM {SOURCE}": lambda: Counter(_in_sessions()),
    f"SELECT k, window_end, v FROM {SOURCE} WHERE v > 0": lambda: Counter(
        (r[0], r[5], r[1]) for r in _in_sessions() if r[1] is not None and r[1] > 0
    ),
    f"SELECT window_end, k, v, count(*) FROM {SOURCE} GROUP BY window_start, window_end, k, v": lambda: (
        _grouped(_in_sessions(), 5, 0, 1)
    ),
    "SELECT k, window_end, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, window_start, window_end ORDER BY v DESC NULLS FIRST) AS n"
    f" FROM {SOURCE}) WHERE n = 1": _top,
}


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_rows_know_their_session_in_three_acts(
    session: Session, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_e)
    text, answer = list(QUERIES.items())[number]
    expected = answer()
    straight, stopped = Folded(), Folded()
    job, channel = submit(session, text, 1, None)
    run_to_end(job, channel, straight)
    assert straight.rows == expected
    if "WHERE v > 0" not in text:
        timed = sum(row[3] is not None for split in INPUT for row in split)
        assert _late_rows(job) + len(_in_sessions()) == timed, "each row is in a session or counted as late"
    run_and_stop(*submit(session, text, 2, tmp_path), stopped, ROWS * SPLITS // 3)
    run_to_end(*submit(session, text, 3, tmp_path), stopped)
    assert stopped.rows == expected


def test_sessions_are_given_once(session: Session) -> None:
    session.settings.set("parallelism.default", "1")
    for text in QUERIES:
        assert session.execute(text).shape.insert_only


def test_sessions_over_changes_change(session: Session) -> None:
    text = "SELECT * FROM SESSION(TABLE (SELECT k, max(ts) AS ts FROM e GROUP BY k), DESCRIPTOR(ts), INTERVAL '2' SECONDS)"
    assert not session.execute(text).shape.insert_only


@pytest.fixture
def sorted_session(session: Session, tmp_path: Path) -> Iterator[tuple[Session, Path]]:
    out = tmp_path / "out"
    options = f"WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv')"
    session.execute(f"CREATE TABLE sorted_rows (ts TIMESTAMP(6), k BIGINT, v BIGINT) {options}")
    yield session, out
    session.execute("DROP TABLE sorted_rows")


def test_rows_written_in_the_order_of_time(sorted_session: tuple[Session, Path]) -> None:
    session, out = sorted_session
    session.settings.set("parallelism.default", "2")
    job = session.execute("INSERT INTO sorted_rows SELECT ts, k, v FROM e ORDER BY ts, v DESC").job
    assert job is not None and job.wait(PATIENCE_S) and job.error is None
    lines = [line for file in sorted(out.rglob("*.csv")) for line in file.read_text().splitlines()[1:]]
    expected = sorted(
        _on_time(), key=lambda row: (row[3], row[1] is None, -(row[1] or 0), row[0] is not None, row[0] or 0)
    )
    assert [line.split(",")[2] for line in lines] == [
        "" if row[1] is None else str(row[1]) for row in expected
    ]


def _rows(pairs: list[tuple[int | None, int | None]], behind: list[int] | None = None) -> Batch:
    columns = [
        pa.array([k for k, _ in pairs], pa.int64()),
        pa.array([t for _, t in pairs], pa.int64()).view(pa.timestamp("us")),
    ]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=INPUT_SCHEMA.to_arrow()),
        None,
        None if behind is None else np.array(behind),
    )


def test_temporal_sort_keeps_what_time_has_not_passed() -> None:
    keys = (
        SortKey(Column(TIMESTAMP, True, 1, "ts"), False, True),
        SortKey(Column(BIGINT, True, 0, "k"), True, False),
    )
    spec = temporal_sort_spec("id", "sort", INPUT_SCHEMA, keys)
    first, out = TemporalSortOperator(spec, JobOptions()), Remembered()
    context = opened(first)
    first.on_batch(_rows([(1, 30), (2, 10), (3, 10), (4, None), (5, 20), (6, 5)], [0, 0, 0, 0, 0, 9]), 0, out)
    first.on_watermark(20, out)
    assert [row["k"] for row in out.rows()] == [3, 2]
    assert context.metrics.late_rows == 1
    second = TemporalSortOperator(spec, JobOptions())
    context = opened(second)
    second.keyed_states()["rows"].restore(first.keyed_states()["rows"].snapshot())
    second.list_states()["passed"].restore_items(first.list_states()["passed"].snapshot_items())
    second.on_batch(_rows([(7, 19), (8, 25)]), 0, out)
    assert context.metrics.late_rows == 1, "what had passed before the restart has passed"
    second.on_watermark(MAX_WATERMARK_US, out)
    assert [row["k"] for row in out.rows()] == [3, 2, 5, 8, 1]
    assert context.metrics.state_entries == 0 and second.keyed_states()["rows"].snapshot().num_rows == 0


def test_a_row_at_a_sessions_end_belongs_to_it_and_windows_above_wait_for_it() -> None:
    spec = window_table_spec(
        "id",
        "session",
        INPUT_SCHEMA.concat(Schema(window_fields())),
        SessionWindow(1, 10, partition_keys=(0,)),
    )
    operator, out = SessionFunctionOperator(spec, JobOptions()), Remembered()
    context = opened(operator)
    operator.on_batch(_rows([(1, 0), (1, 10), (2, 3), (None, 4)]), 0, out)
    operator.on_watermark(13, out)
    operator.on_batch(_rows([(2, 13)]), 0, out)
    assert [row["k"] for row in out.rows()] == [] and out.times == [12]
    operator.on_watermark(15, out)
    assert [row["k"] for row in out.rows()] == [None] and out.times == [12, 14]
    assert context.metrics.late_rows == 0
    operator.on_watermark(MAX_WATERMARK_US, out)
    shown = [
        (row["k"], row["ts"] - datetime(1970, 1, 1), row["window_end"] - datetime(1970, 1, 1))
        for row in out.rows()[1:]
    ]
    us = timedelta(microseconds=1)
    assert shown == [(1, 0 * us, 20 * us), (1, 10 * us, 20 * us), (2, 3 * us, 23 * us), (2, 13 * us, 23 * us)]
    assert context.metrics.state_entries == 0
    assert all(state.snapshot().num_rows == 0 for state in operator.keyed_states().values())


@pytest.mark.parametrize("batch_rows", ["1", "2", "10"])
def test_a_row_behind_the_watermark_joins_an_open_session(batch_rows: str) -> None:
    """However the split is cut into batches; and a session that had ended when a row came stays as it was."""
    seconds = [1, 8, 4, 16, 3, 40, 12, 30, 70]
    split = pa.table(
        {"ts": pa.array([datetime(2024, 1, 1) + timedelta(seconds=s) for s in seconds], pa.timestamp("ms"))}
    )
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": batch_rows})
    session.register("r", split, stream=True, time_column="ts", delay=1)
    found = session.execute(
        "SELECT window_start, window_end, COUNT(*) AS n FROM SESSION(TABLE r, DESCRIPTOR(ts), INTERVAL '10' SECONDS)"
        " GROUP BY window_start, window_end"
    )
    rows = Counter(
        (a.second, b.second, n)
        for a, b, n in (tuple(row.values()) for row in found.final_rows(PATIENCE_S).to_pylist())
    )
    assert rows == Counter([(1, 26, 5), (30, 50, 2), (10, 20, 1)])
    assert found.job is not None and found.job.wait(PATIENCE_S)
    assert found.job.metrics().late_rows == 1, (
        "12: when it came 39 was reached, and its session had ended at 26"
    )
    session.close()
