"""The LOCAL phase of a window aggregate: partials per key and slice, emitted when the watermark reaches the end
of their slice, before every barrier and at rest; where aggregation does not pay, rows pass one by one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.operators.factory import build_operator
from penstock.engine.operators.window.local_window_aggregate import LocalWindowAggregateOperator
from penstock.planner.logical.aggregate import Phase
from penstock.planner.logical.windows import HopWindow, TumbleWindow
from tests.harness.length import examples
from tests.harness.operators import Remembered, opened
from tests.unit.engine.operators.window.test_window_aggregate import INPUT, spec

TUMBLE = TumbleWindow(0, 10)
ROW = st.tuples(st.integers(0, 45), st.sampled_from([None, "a", "b"]), st.sampled_from([None, -1, 2]))


def local(window: Any = TUMBLE, options: JobOptions | None = None) -> LocalWindowAggregateOperator:
    operator = build_operator(spec(window, phase=Phase.LOCAL), options or JobOptions())
    assert isinstance(operator, LocalWindowAggregateOperator)
    opened(operator)
    return operator


def batch(rows: list[tuple[int | None, str | None, int | None]], behind: list[int] | None = None) -> Batch:
    times = pa.array([t for t, _, _ in rows], pa.int64()).view(pa.timestamp("us"))
    columns = [
        times,
        pa.array([k for _, k, _ in rows], pa.string()),
        pa.array([v for *_, v in rows], pa.int32()),
    ]
    made = pa.RecordBatch.from_arrays(columns, schema=INPUT.to_arrow())
    return Batch(made, None, None if behind is None else np.array(behind))


def partials(out: Remembered) -> list[tuple[Any, ...]]:
    """Key, count, sum, max and end of the slice of each partial."""
    found: list[tuple[Any, ...]] = []
    for one in out.batches:
        *columns, ends = one.rows.columns
        found += zip(
            *(column.to_pylist() for column in columns), ends.cast(pa.int64()).to_pylist(), strict=True
        )
    return found


def merged(found: list[tuple[Any, ...]]) -> dict[tuple[Any, int], tuple[int, int, Any]]:
    sums: dict[tuple[Any, int], Any] = {}
    for key, count, total, most, end in found:
        old = sums.get((key, end), (0, 0, None))
        sums[key, end] = (
            old[0] + count,
            old[1] + (total or 0),
            max((v for v in (old[2], most) if v is not None), default=None),
        )
    return sums


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(
    batches=st.lists(st.lists(ROW, max_size=8), max_size=5),
    flushes=st.lists(st.sampled_from("bipn"), min_size=5, max_size=5),
)
def test_partials_of_a_slice_add_up_to_its_rows(batches: list[list[Any]], flushes: list[str]) -> None:
    operator, out = local(), Remembered()
    for rows, flush in zip(batches, flushes, strict=False):
        operator.on_batch(batch(rows), 0, out)
        if flush == "b":
            operator.before_barrier(1, out)
        elif flush == "i":
            operator.on_idle(out)
        elif flush == "p":
            operator.on_processing_time(0, out)
    operator.on_end(out)
    expected: dict[tuple[Any, int], list[Any]] = defaultdict(list)
    for time, key, value in (row for rows in batches for row in rows):
        expected[key, time // 10 * 10 + 10].append(value)
    assert merged(partials(out)) == {
        slot: (
            len(values),
            sum(v or 0 for v in values),
            max((v for v in values if v is not None), default=None),
        )
        for slot, values in expected.items()
    }
    assert not operator.keyed_states() and not operator.list_states(), "at a barrier nothing is left"


def test_partials_are_emitted_when_the_watermark_reaches_the_end_of_their_first_slice() -> None:
    operator, out = local(), Remembered()
    operator.on_batch(batch([(1, "a", 1), (9, "a", 2), (10, "a", 3)]), 0, out)
    operator.on_batch(batch([(2, "a", 5)]), 0, out)
    operator.on_watermark(9, out)
    assert not out.batches
    operator.on_watermark(10, out)
    assert partials(out) == [("a", 3, 8, 5, 10), ("a", 1, 3, 3, 20)]
    operator.on_batch(batch([(11, "a", 1)]), 0, out)
    operator.on_watermark(19, out)
    assert len(partials(out)) == 2
    operator.on_watermark(20, out)
    assert partials(out)[2:] == [("a", 1, 1, 1, 20)]


def test_rows_of_slices_far_apart_and_rows_that_count_several_times_add_up() -> None:
    """Slices that do not fit one grid: the buffered partials leave, or each row is a partial."""
    rows: list[Any] = [(10**9, "a", 1), (3, "a", 2), (10**8, "b", -1), (5, "a", 2)]
    operator, out = local(), Remembered()
    operator.on_batch(batch(rows[:1]), 0, out)
    operator.on_batch(batch(rows[1:2]), 0, out)
    far = batch(rows[1:])
    operator.on_batch(Batch(far.rows, np.array([3, 1, 2])), 0, out)
    operator.before_barrier(1, out)
    assert merged(partials(out)) == {
        ("a", 10): (6, 12, 2),
        ("b", 10**8 + 10): (1, -1, -1),
        ("a", 10**9 + 10): (1, 1, 1),
    }


def test_a_hop_has_one_partial_for_each_of_its_slices() -> None:
    operator, out = local(HopWindow(0, 12, 4)), Remembered()
    operator.on_batch(batch([(1, "a", 1), (3, "a", 1), (5, "a", 1)]), 0, out)
    operator.before_barrier(1, out)
    assert Counter(partials(out)) == Counter([("a", 2, 2, 1, 4), ("a", 1, 1, 1, 8)])


def test_late_rows_have_partials_of_their_own_and_rows_without_a_window_are_dropped() -> None:
    """A row that the first windows of its slice have missed says so; one that all have missed is dropped."""
    operator = build_operator(spec(HopWindow(0, 12, 4), phase=Phase.LOCAL), JobOptions())
    metrics, out = opened(operator).metrics, Remembered()
    operator.on_batch(batch([(9, "a", 1), (9, "a", 2), (1, "a", 4), (None, "a", 8)], [0, 13, 13, 13]), 0, out)
    operator.before_barrier(1, out)
    behind = [
        b
        for one in out.batches
        for b in (one.behind if one.behind is not None else [MIN_WATERMARK_US] * one.num_rows)
    ]
    found = {row[2]: int(b) for row, b in zip(partials(out), behind, strict=True)}
    assert found == {1: -(2**63), 2: 12}
    assert metrics.late_rows == 1 and metrics.counters == {"null_time_rows": 1}


def test_many_partials_are_emitted_before_they_take_the_memory() -> None:
    operator, out = local(options=JobOptions(batch_max_rows=2)), Remembered()
    operator.on_batch(batch([(1, str(k), 1) for k in range(7)]), 0, out)
    assert not out.batches
    operator.on_batch(batch([(1, "7", 1)]), 0, out)
    assert len(partials(out)) == 8


def test_where_aggregation_does_not_pay_each_row_is_a_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, out = local(), Remembered()
    monkeypatch.setattr(operator._reduction, "pays", lambda *_: True)
    operator.on_batch(batch([(1, "z", 5)]), 0, out)
    monkeypatch.setattr(operator._reduction, "pays", lambda *_: False)
    operator.on_batch(batch([(1, "a", 1), (1, "a", None)]), 0, out)
    assert Counter(partials(out)) == Counter(
        [("z", 1, 5, 5, 10), ("a", 1, 1, 1, 10), ("a", 1, None, None, 10)]
    )
