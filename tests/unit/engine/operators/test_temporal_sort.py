"""Temporal sort against sorted(): rows in any order, watermarks in between, retractions, late rows, restore."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, Batch
from penstock.engine.operators.temporal_sort import TemporalSortOperator
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.windows import window_fields
from tests.harness.length import examples
from tests.harness.operator_specs import temporal_sort_spec
from tests.harness.operators import done
from tests.harness.operators import opened as opened_in
from tests.unit.engine.operators.changelogs import (
    Change,
    Collected,
    batch_of,
    context,
    restored,
    snapshots,
)

SCHEMA = Schema((Field("t", TIMESTAMP, True, Role.EVENT_TIME), Field("n", BIGINT)))
KEYS = (
    SortKey(Column(TIMESTAMP, True, index=0, name="t")),
    SortKey(Column(BIGINT, True, index=1, name="n"), True, False),
)
SPEC = temporal_sort_spec("s", "sort", SCHEMA, KEYS)
EPOCH = datetime(1970, 1, 1)


def at(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


def sort() -> TemporalSortOperator:
    return TemporalSortOperator(SPEC, JobOptions())


def in_order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """By time, then by the number downwards, NULLs last."""
    return row[0], row[1] is None, -(row[1] or 0)


ROWS = st.lists(st.tuples(st.integers(0, 30), st.sampled_from([None, -1, 1, 2, 2**62])), max_size=30)


@settings(max_examples=examples(80), deadline=None, derandomize=True)
@given(rows=ROWS, cuts=st.lists(st.integers(1, 9)), data=st.data())
def test_rows_come_out_sorted_when_the_watermark_is_past_them(
    rows: list[Any], cuts: list[int], data: st.DataObject
) -> None:
    operator, out, first, passed = sort(), Collected(), 0, 0
    operator.open(context())
    while first < len(rows):
        size = cuts.pop() if cuts else 3
        operator.on_batch(
            batch_of([((at(t), n), 1) for t, n in rows[first : first + size]], SCHEMA.to_arrow()), 0, out
        )
        first += size
        least = min((t for t, _ in rows[first:]), default=31)
        if data.draw(st.booleans()):
            passed = max(passed, least)
            done(operator.on_watermark(passed, out))
            expected = sorted(((t, n) for t, n in rows[:first] if t < passed), key=in_order)
            assert out.changes() == [((at(t), n), 1) for t, n in expected]
        if data.draw(st.booleans()):
            operator = restored(sort(), context(), snapshots([operator]))  # type: ignore[assignment]
    done(operator.on_watermark(MAX_WATERMARK_US, out))
    assert out.changes() == [((at(t), n), 1) for t, n in sorted(rows, key=in_order)]


def test_a_row_that_is_retracted_in_time_is_not_emitted_and_copies_are() -> None:
    operator, out = sort(), Collected()
    operator.open(context())
    changes: list[Change] = [
        ((at(5), 1), 2),
        ((at(3), 1), 1),
        ((at(5), 1), -1),
        ((at(3), 1), -1),
        ((at(4), 2), 3),
    ]
    for change in changes:
        operator.on_batch(batch_of([change], SCHEMA.to_arrow()), 0, out)
    done(operator.on_watermark(6, out))
    assert out.changes() == [((at(4), 2), 1)] * 3 + [((at(5), 1), 1)]


def test_late_rows_and_rows_without_a_time_are_dropped_and_counted() -> None:
    operator, out = sort(), Collected()
    metrics = opened_in(operator).metrics
    done(operator.on_watermark(10, out))
    operator.on_batch(
        batch_of([((at(9), 1), 1), ((at(10), 2), 1), ((None, 3), 1)], SCHEMA.to_arrow()), 0, out
    )
    behind = batch_of([((at(14), 4), 1), ((at(15), 5), 1)], SCHEMA.to_arrow())
    operator.on_batch(Batch(behind.rows, None, np.array([15, 15])), 0, out)
    assert (metrics.late_rows, metrics.counters, metrics.state_entries) == (2, {"null_time_rows": 1}, 2)
    done(operator.on_watermark(MAX_WATERMARK_US, out))
    assert [row[1] for row, _ in out.changes()] == [2, 5] and metrics.state_entries == 0


def test_what_was_emitted_before_a_restore_is_still_late_after_it() -> None:
    operator, out = sort(), Collected()
    operator.open(context())
    done(operator.on_watermark(10, out))
    again = restored(sort(), context(), snapshots([operator]))
    again.on_batch(batch_of([((at(9), 1), 1), ((at(10), 2), 1)], SCHEMA.to_arrow()), 0, out)
    done(again.on_watermark(MAX_WATERMARK_US, out))
    assert [row[1] for row, _ in out.changes()] == [2]


@pytest.mark.parametrize(("watermark_us", "emitted"), [(1_000_999, 0), (1_001_000, 1)])
def test_rows_of_windows_wait_for_the_end_of_their_window(watermark_us: int, emitted: int) -> None:
    """Their time is one millisecond before it."""
    schema = Schema((window_fields()[2], Field("n", BIGINT)))
    key = SortKey(Column(TIMESTAMP, False, index=0, name="window_time"))
    operator, out = (
        TemporalSortOperator(temporal_sort_spec("s", "sort", schema, (key,)), JobOptions()),
        Collected(),
    )
    operator.open(context())
    operator.on_batch(batch_of([((at(1_000_000), 1), 1)], schema.to_arrow()), 0, out)
    done(operator.on_watermark(watermark_us, out))
    assert len(out.changes()) == emitted
