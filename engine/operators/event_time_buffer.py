"""EventTimeBufferOperator: the base of OVER and MATCH_RECOGNIZE, whose rows wait in partitions until the
watermark has passed them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from penstock.catalog.schema import Role
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    KeyGroups,
    ListState,
    Operator,
    Output,
    PendingOutput,
    start_output,
)
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.operators.window.window_aggregate import WINDOW_TIME_US
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.partition_accumulators import PartitionLives, PartitionTotals
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.time_to_live import EXPIRED
from penstock.engine.windowing.late_row_filter import drop_late_and_null_times
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.physical.operator_specs import OperatorSpec

RowsT = TypeVar("RowsT", bound=TimedRows)


class EventTimeBufferOperator(Operator, Generic[RowsT]):
    """Buffers rows by partition, and processes those of a time together once the watermark has passed it, so
    that peers are never separated. Rows without a time, and late rows, are dropped and counted.

    ``_pass_time`` processes them. Beside its rows each partition has totals; both expire together.
    """

    def __init__(self, spec: OperatorSpec[Any, Any], options: JobOptions) -> None:
        self._node, self._facts = spec.node, spec.facts
        self._input = spec.node.input.schema.to_arrow()
        self._order = RowOrder(spec.node.order, self._input, options.time_zone, spec.facts.arrival)
        key = spec.node.order[0].expression
        assert isinstance(key, Column)
        self._time_column = key.index
        # window_time is one millisecond before the window's end, so such rows pass that much later
        of_window = spec.node.input.schema[key.index].role is Role.WINDOW_TIME
        self._slack_us = WINDOW_TIME_US - 1 if of_window else 0
        self._zone = options.time_zone
        self._distinct = DistinctSlots()
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        types = [self._input.field(key).type for key in self._node.partition]
        self._keys = KeyIndex(types)
        self._lives = PartitionLives(self._facts.ttl_ms, context.clock)
        self._rows = self._buffer(context.key_groups)
        accumulators = Accumulators(self._total_calls(), True, self._zone)
        self._totals = PartitionTotals(
            types, self._keys, accumulators, context.key_groups.max_parallelism, self._lives.writes
        )

    @abstractmethod
    def _buffer(self, groups: KeyGroups) -> RowsT:
        """Return the buffer of rows, empty."""

    def _total_calls(self) -> Sequence[AggregateCall]:
        """Return the aggregates over all rows that have passed."""
        return ()

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows, "totals": self._totals}

    def list_states(self) -> dict[str, ListState]:
        return {"passed": self._rows.passed_time}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        batch = drop_late_and_null_times(
            batch,
            self._time_column,
            max(self._watermark_us, self._rows.passed_us),
            self._slack_us,
            self._metrics,
        )
        # a row of weight 2 is two rows
        for rows in batch.single_rows():
            self._rows.hold(rows.rows)
        self._metrics.state_entries = len(self._rows)

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        self._watermark_us = max(time_us, MIN_WATERMARK_US + self._slack_us) - self._slack_us
        return start_output(self._pass_time(time_us, out))

    @abstractmethod
    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        """Process the rows that pass: those below ``_watermark_us``, which is ``time_us`` less the slack."""

    @property
    def wants_ticks(self) -> bool:
        return self._facts.ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Expire the state of partitions without a row for long enough; rows that wait do not expire."""
        expired = self._lives.expire(now_ms, self._keys, self._rows, self._totals)
        if expired.size:
            self._clear(expired)
            self._metrics.count(EXPIRED, int(expired.size))
            self._metrics.state_entries = len(self._rows)

    @abstractmethod
    def _clear(self, expired: np.ndarray) -> None:
        """Drop those of the expired partitions that have no row left."""

    def _unused(self, slots: np.ndarray) -> np.ndarray:
        """Return the slots that have no row."""
        used = np.zeros(self._keys.capacity, np.bool_)
        used[self._rows.slots(self._rows.store.live_ids())] = True
        return slots[~used[slots]]
