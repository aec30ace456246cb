"""Unbounded GROUP BY: one row per key, retracted and replaced as it changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.types import BIGINT
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, Operator, Output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import weights_of
from penstock.engine.exchange.batch_concat import concat_batches
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.mini_batch import MiniBatch
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.group_state import GroupState
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.rows.row_difference import changed_pairs
from penstock.engine.state.time_to_live import ABSENT, EXPIRED, LastWrites
from penstock.planner.expressions.nodes import AggregateCall
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.physical.operator_specs import OperatorSpec

_ROW_COUNT = AggregateCall("count", (), BIGINT, False)


class GroupAggregateOperator(Operator):
    """For each changed key, emits the old row with weight -1, if there was one, and the new row with weight
    +1, if the group is not empty.

    Ready batches are processed together, up to a few full ones: a key then changes once, not once per batch.
    A key whose row is unchanged emits nothing. Without keys there is always one row, emitted over no rows at
    the first barrier or the end.
    """

    gathers = True

    def __init__(self, spec: OperatorSpec[Aggregate, PartitionFacts], options: JobOptions) -> None:
        self._keys = spec.node.keys
        self._schema = spec.schema.to_arrow()
        self._key_types = [spec.node.input.schema.to_arrow().field(key).type for key in spec.node.keys]
        self._accumulators = Accumulators(
            (*spec.node.aggregates, _ROW_COUNT), spec.facts.insert_only, options.time_zone
        )
        self._distinct = DistinctSlots()
        self._options = options
        self._ttl_ms = spec.facts.ttl_ms
        self._takes_back = not spec.facts.insert_only

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._held = MiniBatch(self._options, context.clock)
        self._owns_the_one_row = not self._keys and context.key_groups.start == 0 and context.subtask == 0
        writes = LastWrites(self._ttl_ms, context.clock) if self._ttl_ms else None
        self._state = GroupState(
            self._key_types, self._accumulators, context.key_groups.max_parallelism, writes
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"groups": self._state}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        if self._held.add(batch, behind=self.rows_behind):
            self._take(out)

    def buffered_until_ms(self) -> float | None:
        return self._held.until_ms

    def release(self, out: Output) -> None:
        self._take(out)

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        """A checkpoint sees the result over the rows so far, also when there were none."""
        self._take(out)
        self._emit_global_row(out)

    def _take(self, out: Output) -> None:
        """Add the rows of the buffered batches and emit what they changed."""
        batches = self._held.take()
        if not batches:
            return
        state, accumulators = self._state, self._accumulators
        if state.writes is not None and self._takes_back:
            batches = [self._without_absent(batch) for batch in concat_batches(batches)]
        known = len(state.keys)
        slots = [
            state.slots([batch.rows.column(key) for key in self._keys], batch.num_rows) for batch in batches
        ]
        touched = self._distinct.of(
            slots[0] if len(slots) == 1 else np.concatenate(slots), state.keys.capacity
        )
        state.changes.mark(touched, state.keys.capacity)
        before = accumulators.before(touched)
        for its, batch in zip(slots, batches, strict=True):
            accumulators.add(its, batch.rows, batch.weights)
        if state.writes is not None:
            state.writes.touch(touched, state.keys.capacity)
        self._emit(touched, accumulators.before_and_after(touched, before), known > 0, out)
        self._metrics.state_entries = len(state.keys)

    def _without_absent(self, batch: Batch) -> Batch:
        """Drop the retractions of rows that belonged to an expired group: a new group begins with a row that
        was inserted.
        """
        weights = weights_of(batch)
        if not (weights < 0).any():
            return batch
        absent = np.flatnonzero(
            self._state.keys.lookup([batch.rows.column(key) for key in self._keys], batch.num_rows) < 0
        )
        same = KeyIndex(batch.rows.schema.types).lookup_or_insert(
            batch.rows.take(array_of(absent)).columns, absent.size
        )
        net = np.bincount(same, weights[absent], minlength=absent.size)[same]
        gone = absent[net < 0]
        self._metrics.count(ABSENT, int(gone.size))
        left = np.ones(batch.num_rows, np.bool_)
        left[gone] = False
        return batch.take(np.flatnonzero(left))

    @property
    def wants_ticks(self) -> bool:
        return self._ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Expire groups by their time to live; nothing is emitted for them."""
        if self._state.writes is None:
            return
        self._take(out)
        expired = self._state.due(now_ms)
        if expired.size:
            self._state.remove(expired)
            self._metrics.count(EXPIRED, int(expired.size))
            self._metrics.state_entries = len(self._state.keys)

    def _emit(self, touched: np.ndarray, pairs: list[pa.Array], known: bool, out: Output) -> None:
        """Emit the old and the new row of each changed key next to each other; drop the keys that have no row
        left.
        """
        *results, count = pairs
        counts = col.words(count).reshape(-1, 2)
        has_row = counts > 0 if self._keys else np.tile([known, True], (touched.size, 1))
        changed = (has_row[:, 0] != has_row[:, 1]) | changed_pairs(results, touched.size)
        emitted = (has_row & changed[:, np.newaxis]).ravel()
        if emitted.any():
            out.collect(self._batch(touched, results, emitted))
        if self._keys:
            over = counts[:, 1] == 0 if self._state.writes is None else counts[:, 1] <= 0
            self._state.remove(touched[over])

    def _batch(self, touched: np.ndarray, results: list[pa.Array], emitted: np.ndarray) -> Batch:
        rows = pa.RecordBatch.from_arrays(
            self._state.keys.keys(np.repeat(touched, 2)) + results, schema=self._schema
        )
        weights = np.tile([-1, 1], touched.size)
        if not emitted.all():
            positions = np.flatnonzero(emitted)
            rows, weights = rows.take(array_of(positions)), weights[positions]
        return Batch(rows, weights if emitted[0::2].any() else None)

    def on_end(self, out: Output) -> None:
        self._take(out)
        self._emit_global_row(out)

    def _emit_global_row(self, out: Output) -> None:
        if self._owns_the_one_row and not len(self._state.keys):
            slots = self._state.slots([], 1)
            self._state.changes.mark(slots, 1)
            out.collect(
                Batch(pa.RecordBatch.from_arrays(self._accumulators.results(slots)[:-1], schema=self._schema))
            )
