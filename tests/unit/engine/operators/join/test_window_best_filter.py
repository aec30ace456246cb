"""The filter before a join with the MAX of windows: what it drops matches no final MAX, whatever the order,
cuts, late rows and idleness.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.operators.join import window_best_filter
from penstock.engine.operators.join.runtime_filter import GIVEN_UP, PRUNED
from penstock.engine.operators.join.window_best_filter import WindowBestFilterOperator
from penstock.planner.logical.windows import HopWindow, WindowBest
from penstock.planner.physical.operator_specs import OperatorSpec
from penstock.planner.physical.window_best_filter import WindowBestFilter
from tests.harness.length import examples
from tests.harness.operators import Remembered, opened

SCHEMA = Schema((Field("v", BIGINT), Field("ts", TIMESTAMP), Field("n", BIGINT)))
SIZE, OFFSET = 10, 3


def made(before: int = 0, after: int = SIZE, greatest: bool = True) -> WindowBestFilterOperator:
    node = WindowBestFilter(WindowBest(0, 0, 1, SIZE, OFFSET, before, after, greatest))
    operator = WindowBestFilterOperator(OperatorSpec("f", "filter", SCHEMA, node), JobOptions())
    opened(operator)
    return operator


Row = tuple[int | None, int | None, int]


def batch(rows: list[Row], behind: list[int] | None = None) -> Batch:
    values, times, numbers = zip(*rows, strict=True)
    columns = [
        pa.array(values, pa.int64()),
        pa.array(times, pa.int64()).cast(pa.timestamp("us")),
        pa.array(numbers, pa.int64()),
    ]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA.to_arrow()),
        None,
        None if behind is None else np.array(behind, np.int64),
    )


def passed(operator: WindowBestFilterOperator, *batches: Batch) -> list[int]:
    out = Remembered()
    for one in batches:
        operator.on_batch(one, 0, out)
    return [row["n"] for row in out.rows()]


def end_of(time: int) -> int:
    return (time - OFFSET) // SIZE * SIZE + SIZE + OFFSET


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([-(2**63), 2**63 - 1])),
            st.one_of(st.none(), st.integers(-40, 40)),
        ),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 12),
    st.integers(-25, 25),
    st.integers(-25, 35),
    st.booleans(),
)
def test_what_is_dropped_matches_no_window(
    rows: list[tuple[Any, Any]], cut: int, before: int, after: int, greatest: bool
) -> None:
    """Rows in any order under a watermark that follows them: a row behind it is late, and always passes."""
    operator = made(before, after, greatest)
    latest, on_time, out = MIN_WATERMARK_US, [], []
    best: dict[int, int] = {}
    for first in range(0, len(rows), cut):
        piece: list[Row] = []
        behind = []
        for number, (value, time) in enumerate(rows[first : first + cut], first):
            piece.append((value, time, number))
            behind.append(latest)
            on_time.append(time is not None and time >= latest)
            if on_time[-1] and value is not None:
                best[end_of(time)] = (max if greatest else min)(best.get(end_of(time), value), value)
            latest = latest if time is None else max(latest, time - 15)
        out += passed(operator, batch(piece, behind))
        operator.on_watermark(latest, Remembered())
    for number, (value, time) in enumerate(rows):
        matches = value is not None and time is not None and any(
            time - before <= end <= time + after and best[end] == value for end in best
        )  # fmt: skip
        assert number in out or (on_time[number] and not matches)


def test_rows_below_the_best_are_dropped_in_the_first_batch_and_later() -> None:
    operator = made()
    assert passed(operator, batch([(5, 4, 0), (9, 5, 1), (9, 6, 2), (1, 12, 3)])) == [1, 2]
    assert passed(operator, batch([(8, 7, 4), (10, 8, 5), (1, 14, 6)])) == [5, 6]
    # the time 13 is the end of the first window as well: 2 is worse than 10 and better than 1
    assert passed(operator, batch([(2, 13, 7), (0, 13, 8), (10, 13, 9)])) == [9]
    assert operator._metrics.counters[PRUNED] == 5


def test_rows_that_carry_their_window_are_compared_with_it_alone() -> None:
    node = WindowBestFilter(WindowBest.of_attached(0, 0, 1, HopWindow(0, 20, SIZE, OFFSET), greatest=True))
    operator = WindowBestFilterOperator(OperatorSpec("f", "filter", SCHEMA, node), JobOptions())
    opened(operator)
    # the ends 13, 23 and 33
    rows: list[Row] = [(5, 13, 0), (9, 13, 1), (1, 23, 2), (9, 13, 3), (None, 13, 4), (2, 33, 5)]
    assert passed(operator, batch(rows)) == [1, 2, 3, 4, 5]
    assert passed(operator, batch([(8, 13, 6), (0, 23, 7), (3, 23, 8)])) == [8]
    # a row of a window that the watermark has passed is late: it is for the next operator to count
    operator.on_watermark(23, Remembered())
    assert passed(operator, batch([(0, 23, 9), (1, 33, 10)])) == [9]


def test_after_idleness_every_row_passes_after_a_restore_too() -> None:
    operator = made()
    assert passed(operator, batch([(5, 4, 0), (1, 5, 1)])) == [0]
    operator.on_idle(Remembered())
    assert passed(operator, batch([(0, 4, 2), (9, 5, 3), (1, 5, 4)])) == [2, 3, 4]
    (item,) = operator.snapshot_items()
    other = made()
    other.restore_items([{"was_idle": False}, item])
    assert passed(other, batch([(9, 4, 0), (1, 5, 1)])) == [0, 1]


def test_the_watermark_frees_windows() -> None:
    operator = made()
    for start in range(OFFSET, 10_000, SIZE):
        passed(operator, batch([(1, start, 0), (0, start + 1, 1)]))
        operator.on_watermark(start, Remembered())
        assert len(operator._best) <= 2


def test_a_useless_filter_stops(monkeypatch: Any) -> None:
    monkeypatch.setattr(window_best_filter, "_TRIED_ROWS", 20)
    operator = made()
    for start in range(OFFSET, 40 * SIZE, SIZE):
        assert passed(operator, batch([(1, start, start)])) == [start]
    assert operator._metrics.counters[GIVEN_UP] == 1
    assert passed(operator, batch([(5, 4, 0), (1, 5, 1)])) == [0, 1]


def test_rows_of_very_many_windows_pass() -> None:
    assert passed(made(), batch([(5, 4, 0), (1, 5, 1), (1, 10**9, 2)])) == [0, 1, 2]
