"""EventTimeBufferOperator: when rows pass, which are dropped and counted, and what expires. Its subclasses have
tests of their own.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import INT
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import KeyGroups, Output, PendingOutput
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.event_time_buffer import EventTimeBufferOperator
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from penstock.engine.state.time_to_live import EXPIRED
from penstock.planner.expressions.nodes import AggregateCall, SortKey
from penstock.planner.logical.over import Frame, OverFacts
from penstock.planner.physical.operator_specs import InputSchema
from tests.harness.operator_specs import over_spec, with_node
from tests.unit.engine.operators.changelogs import Collected, batch_of, context
from tests.unit.engine.operators.partition_runs import SCHEMA, START, column, micros

SECOND = 1_000_000
RANK = AggregateCall("row_number", (), INT, False)
NUMBERED = Schema((*SCHEMA.fields, Field("v0", INT)))


class Passing(EventTimeBufferOperator[TimedRows]):
    """Stores every row that passes, and lists the seconds of those that pass together."""

    def __init__(self, role: Role | None = None, ttl_ms: int = 0) -> None:
        spec = over_spec(
            "o", "over", NUMBERED, SCHEMA, (0,), (SortKey(column(1)),), Frame(), (RANK,), None, True, True
        )
        fields = list(SCHEMA.fields)
        fields[1] = replace(fields[1], role=role)
        spec = with_node(spec, input=InputSchema(Schema(tuple(fields))))
        super().__init__(replace(spec, facts=OverFacts((True,), ttl_ms, in_time=True)), JobOptions())
        self.passed: list[list[int]] = []
        self.cleared: list[int] = []
        self.context = context()
        self.open(self.context)
        self.out = Collected()

    def _buffer(self, groups: KeyGroups) -> TimedRows:
        return TimedRows(
            self._input, self._node.partition, self._time_column, self._keys, groups, self._lives.writes
        )

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        due = self._rows.due(self._watermark_us)
        if due.size:
            self.passed.append(sorted(((self._rows.times(due) - micros(START)) // SECOND).tolist()))
            self._lives.touch(self._rows.slots(due), self._keys.capacity)
            self._rows.keep(due)
        yield from ()

    def _clear(self, expired: np.ndarray) -> None:
        self.cleared += self._unused(expired).tolist()

    def feed(self, *seconds: float | None, behind: int | None = None) -> None:
        """Add a row of partition 1 for each time, in seconds behind ``START``."""
        times = [None if second is None else START + timedelta(seconds=second) for second in seconds]
        batch = batch_of([((1, time, 1, "a"), 1) for time in times], SCHEMA.to_arrow())
        if behind is not None:
            batch = Batch(batch.rows, batch.weights, np.full(batch.num_rows, micros(START) + behind * SECOND))
        self.on_batch(batch, 0, self.out)

    def watermark(self, second: float) -> None:
        self.on_watermark(micros(START) + int(second * SECOND), self.out)


def test_rows_pass_together_once_the_watermark_is_past_their_time() -> None:
    operator = Passing()
    operator.feed(3, 1, 3, 2)
    operator.watermark(3)
    assert operator.passed == [[1, 2]]
    operator.watermark(3.000001)
    assert operator.passed == [[1, 2], [3, 3]]


def test_late_rows_and_rows_without_a_time_are_dropped_and_counted() -> None:
    operator = Passing()
    operator.feed(5, None)
    operator.feed(3, behind=4)
    operator.watermark(6)
    operator.feed(5, 6)
    operator.watermark(7)
    assert operator.passed == [[5], [6]]
    assert operator.context.metrics.late_rows == 2
    assert operator.context.metrics.counters["null_time_rows"] == 1


@pytest.mark.parametrize(("role", "passes"), [(None, True), (Role.WINDOW_TIME, False)])
def test_rows_of_a_window_pass_with_its_end(role: Role | None, passes: bool) -> None:
    """window_time is a millisecond before the end of the window."""
    operator = Passing(role)
    operator.feed(9.999)
    operator.watermark(9.9995)
    assert bool(operator.passed) is passes
    operator.watermark(10)
    assert operator.passed == [[9]]


def test_rows_that_have_passed_expire_and_those_that_wait_do_not() -> None:
    operator = Passing(ttl_ms=1_000)
    assert operator.wants_ticks and not Passing().wants_ticks
    clock = operator.context.clock
    assert isinstance(clock, ManualClock)
    operator.feed(1, 5)
    operator.watermark(2)
    clock.advance(999)
    operator.on_processing_time(clock.wall_ms(), operator.out)
    assert EXPIRED not in operator.context.metrics.counters
    clock.advance(2)
    operator.on_processing_time(clock.wall_ms(), operator.out)
    # the partition has a row that waits: its state has expired, and it is still there
    assert operator.context.metrics.counters[EXPIRED] == 1 and not operator.cleared
    operator.watermark(6)
    assert operator.passed == [[1], [5]]
    # the time of a write is rounded up by a hundredth of the time to live
    clock.advance(1_010)
    operator.on_processing_time(clock.wall_ms(), operator.out)
    assert operator.cleared == [0]
