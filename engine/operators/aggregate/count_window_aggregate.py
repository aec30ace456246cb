"""GROUP BY over windows of n rows of a partition: a window is emitted at its n-th row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.types import BIGINT
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, Operator, Output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.group_state import GroupState
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.time_to_live import EXPIRED, LastWrites
from penstock.planner.expressions.nodes import AggregateCall
from penstock.planner.logical.aggregate import CountWindowAggregate
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.physical.operator_specs import OperatorSpec

# a hidden COUNT(*) behind the query's aggregates: it says when a window is complete
_ROW_COUNT = AggregateCall("count", (), BIGINT, False)


class CountWindowAggregateOperator(Operator):
    """Emits the row of a window when its ``size``-th row has come, and drops the window. At the end of the
    input it emits the windows that have fewer rows.

    The input is append-only, and each row carries the number of its window. So a window never receives more
    than ``size`` rows. The state is one window of each partition, the one that is not complete.
    """

    def __init__(self, spec: OperatorSpec[CountWindowAggregate, PartitionFacts], options: JobOptions) -> None:
        node = spec.node
        self._keys = node.keys
        self._size = node.size
        self._schema = spec.schema.to_arrow()
        self._key_types = [node.input.schema.to_arrow().field(key).type for key in node.keys]
        self._accumulators = Accumulators((*node.aggregates, _ROW_COUNT), True, options.time_zone)
        self._distinct = DistinctSlots()
        self._ttl_ms = spec.facts.ttl_ms

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        writes = LastWrites(self._ttl_ms, context.clock) if self._ttl_ms else None
        self._state = GroupState(
            self._key_types, self._accumulators, context.key_groups.max_parallelism, writes
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"groups": self._state}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        state = self._state
        # an input row of weight 2 is two rows of the window
        for rows in batch.single_rows():
            slots = state.slots([rows.rows.column(key) for key in self._keys], rows.num_rows)
            # each window once, however many of its rows the batch has
            touched = self._distinct.of(slots, state.keys.capacity)
            state.mark(touched)
            self._accumulators.add(slots, rows.rows, None)
            if state.writes is not None:
                state.writes.touch(touched, state.keys.capacity)
            # the planner numbers windows by n rows, so no row for a complete window can follow
            complete = touched[self._accumulators.last_counts(touched) == self._size]
            if complete.size:
                self._emit(complete, out)
        self._metrics.state_entries = len(state.keys)

    def _emit(self, slots: np.ndarray, out: Output) -> None:
        # the hidden COUNT(*) is no column of the output
        columns = self._state.keys.keys(slots) + self._accumulators.results(slots)[:-1]
        out.collect(Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema)))
        self._state.remove(slots)

    @property
    def wants_ticks(self) -> bool:
        return self._ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Expire windows that have had no row for their TTL; nothing is emitted for them."""
        expired = self._state.due(now_ms)
        if expired.size:
            self._state.remove(expired)
            self._metrics.count(EXPIRED, int(expired.size))
            self._metrics.state_entries = len(self._state.keys)

    def on_end(self, out: Output) -> None:
        # the last window of each partition has fewer rows than `size`: no row can complete it any more
        slots = self._state.keys.live_slots()
        if slots.size:
            self._emit(slots, out)
