"""Late row markers against the rule written out: a row is late when the last of its windows had ended by the
watermark of its split, or by the operator's; rows of sessions are decided in turn.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, STRING, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.window.late_row_marker import (
    LateRowMarkerOperator,
    SessionLateRowMarkerOperator,
)
from penstock.planner.logical.windows import CumulateWindow, HopWindow, SessionWindow, TumbleWindow, Windowing
from tests.harness.direct.lateness import Entry, sessions_in_turn
from tests.harness.length import examples
from tests.harness.operator_specs import late_mark_spec
from tests.unit.engine.operators.changelogs import Collected, context, restored, snapshots

SCHEMA = Schema((Field("t", TIMESTAMP, True, Role.EVENT_TIME), Field("k", STRING), Field("n", BIGINT)))
WINDOWS: dict[str, tuple[Windowing, Any]] = {
    "tumble": (TumbleWindow(0, 6), lambda t: t // 6 * 6 + 6),
    "hop": (HopWindow(0, 12, 4), lambda t: t // 4 * 4 + 12),
    "cumulate": (CumulateWindow(0, 12, 3), lambda t: t // 12 * 12 + 12),
}
Rows = list[tuple[int | None, str | None, int | None]]
"""Time, key, and what the watermark of the row's split was."""


def batch_of(rows: Rows, first: int = 0) -> Batch:
    times = pa.array([t for t, _, _ in rows], pa.int64()).view(pa.timestamp("us"))
    numbers = pa.array(range(first, first + len(rows)), pa.int64())
    columns = [times, pa.array([k for _, k, _ in rows], pa.string()), numbers]
    behind = np.array([MIN_WATERMARK_US if b is None else b for *_, b in rows], np.int64)
    return Batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA.to_arrow()), None, behind)


def at(micros: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(microseconds=micros)


def marks(out: Collected) -> dict[int, tuple[bool, datetime | None, datetime | None]]:
    """What each row was marked with; each is there once."""
    found = {row[2]: row[3:] for row, weight in out.changes() if weight == 1}
    assert len(found) == len(out.changes())
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.integers(-20, 40), st.none() | st.just("a"), st.none() | st.integers(-20, 40)
        ),
        max_size=12,
    ),
    own=st.none() | st.integers(-20, 40),
    lateness=st.sampled_from([0, 5]),
)
def test_a_row_is_late_when_its_last_window_has_ended(
    name: str, rows: Rows, own: int | None, lateness: int
) -> None:
    window, last_end = WINDOWS[name]
    operator, out = (
        build_operator(late_mark_spec("m", "mark", SCHEMA, window, lateness), JobOptions()),
        Collected(),
    )
    assert type(operator) is LateRowMarkerOperator
    operator.open(context())
    if own is not None:
        operator.on_watermark(own, out)  # type: ignore[arg-type]
    operator.on_batch(batch_of(rows), 0, out)
    expected = {}
    for number, (time, _, behind) in enumerate(rows):
        reached = max((b for b in (own, behind) if b is not None), default=None)
        end = None if time is None else last_end(time)
        late = end is not None and reached is not None and end <= reached - lateness
        expected[number] = (late, None if end is None else at(end), None if reached is None else at(reached))
    assert marks(out) == expected


@settings(max_examples=examples(12), deadline=None, derandomize=True)
@given(
    rows=st.lists(st.tuples(st.none() | st.integers(0, 30), st.none() | st.sampled_from("ab")), max_size=10),
    cuts=st.lists(st.integers(1, 5), min_size=10, max_size=10),
    restores=st.lists(st.booleans(), min_size=10, max_size=10),
    lateness=st.sampled_from([0, 3]),
)
def test_rows_of_sessions_are_late_when_their_session_has_ended(
    rows: list[tuple[int | None, str | None]], cuts: list[int], restores: list[bool], lateness: int
) -> None:
    spec = late_mark_spec("m", "mark", SCHEMA, SessionWindow(0, 4, partition_keys=(1,)), lateness)
    operator, out = build_operator(spec, JobOptions()), Collected()
    assert type(operator) is SessionLateRowMarkerOperator
    operator.open(context())
    entries, first, watermark = [], 0, MIN_WATERMARK_US
    for cut, restores_here in zip(cuts, restores, strict=True):
        piece: Rows = []
        for number, (time, key) in enumerate(rows[first : first + cut], first):
            piece.append((time, key, watermark))
            if time is not None:
                behind = max(watermark, MIN_WATERMARK_US + lateness) - lateness
                entries.append(Entry(key, time, behind, number))
                watermark = max(watermark, time - 2)
        operator.on_batch(batch_of(piece, first), 0, out)
        operator.on_watermark(watermark, out)  # type: ignore[arg-type]
        first += cut
        if restores_here:
            again = restored(build_operator(spec, JobOptions()), context(), snapshots([operator]))
            again.on_watermark(watermark, out)  # type: ignore[arg-type]
            operator = again
    operator.on_watermark(MAX_WATERMARK_US, out)  # type: ignore[arg-type]
    assert all(state.snapshot().num_rows == 0 for state in operator.keyed_states().values())
    found = marks(out)
    assert set(found) == set(range(len(rows))), "no row is lost, those without a time included"
    assert {number for number, mark in found.items() if mark[0]} == set(sessions_in_turn(entries, 4)[1])
