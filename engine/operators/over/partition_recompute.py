"""Base of operators that recompute whole partitions under any changes. Per batch they emit the difference of
a touched partition's output before and after.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    Operator,
    Output,
    PendingOutput,
    emit_all,
    start_output,
)
from penstock.engine.api.row_pieces import LIMITS, TooLarge, cut
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels.arrow_views import words
from penstock.engine.operators.over.partitions import Partitions, partitioned
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.rows.row_difference import difference
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.time_to_live import ABSENT, EXPIRED, LastWrites, PartitionEnds
from penstock.engine.windowing.window_assigner import WindowAssigner
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.over import Over, OverFacts, PartitionTop
from penstock.planner.physical.operator_specs import OperatorSpec

# a row of weight w counts as w rows
_NO_LIMIT = np.iinfo(np.int64).max


class PartitionRecompute(Operator):
    """Stores all rows by partition and emits the difference of ``show`` for the touched partitions; a row of
    weight w counts as w rows.

    Partitions within windows are dropped when their window closes; later rows of them are dropped and
    counted.
    """

    def __init__(
        self,
        spec: OperatorSpec[Over, OverFacts] | OperatorSpec[PartitionTop, PartitionFacts],
        options: JobOptions,
    ) -> None:
        self._partition = spec.node.partition
        self._insert_only = spec.facts.insert_only
        self._ttl_ms = spec.facts.ttl_ms
        self._window = spec.node.window
        self._input = spec.node.input.schema.to_arrow()
        self._schema = spec.schema.to_arrow()
        self._order = RowOrder(spec.node.order, self._input, options.time_zone, spec.facts.arrival)
        self._most_copies = _NO_LIMIT
        self._distinct = DistinctSlots()
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._keys = KeyIndex([self._input.field(key).type for key in self._partition])
        groups = context.key_groups.max_parallelism
        writes = LastWrites(self._ttl_ms, context.clock) if self._ttl_ms else None
        stored = {
            "retracting": not self._insert_only,
            # no match counts: this is one side of no join
            "counts": False,
            "by_key": True,
            "numbered": self._order.arrival != 0,
        }
        self._rows = JoinSide(self._input, self._partition, self._keys, groups, writes=writes, **stored)
        self._ends: PartitionEnds | None = None
        self._assigner = None if self._window is None else WindowAssigner(self._window, context.metrics)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def show(self, part: Partitions) -> list[pa.Array]:
        """Return the output columns of whole partitions."""
        raise AssertionError(type(self))

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._take(batch, out))

    def _take(self, batch: Batch, out: Output) -> PendingOutput:
        # 1. partitions by window: rows whose window has ended are dropped and counted
        if self._assigner is not None:
            batch = self._assigner.assign(batch, self._watermark_us).batch
        # 2. a row and its retraction in one batch cancel out
        batch = self._rows.consolidated(batch, keep=True)
        # 3. retractions of expired rows are dropped and counted
        if self._ttl_ms:
            batch, absent = self._rows.without_absent(batch)
            if absent:
                self._metrics.count(ABSENT, absent)
        if not batch.num_rows:
            return
        slots = self._keys.lookup_or_insert(
            [batch.rows.column(key) for key in self._partition], batch.num_rows
        )
        # 4. recompute the touched partitions, as many at once as fit
        touched = self._distinct.of(slots, self._keys.capacity)
        if self._window is not None:
            self._partition_ends().note(
                slots, words(batch.rows.column(self._window.end_column)), self._keys.capacity
            )
        for some in self._rows.at_once(touched):
            mine = np.flatnonzero(np.isin(slots, some))
            whole = mine.size == slots.size
            yield from self._change(
                some, batch if whole else batch.take(mine), slots if whole else slots[mine], out
            )
        self._metrics.state_entries = len(self._rows)

    def _change(self, touched: np.ndarray, batch: Batch, slots: np.ndarray, out: Output) -> PendingOutput:
        """Change whole partitions, and emit the difference of their output."""
        # compute the old output, change the rows, compute the new one: the difference is emitted
        before = self._shown(touched)
        emptied = self._rows.change(batch, slots, np.zeros(batch.num_rows, np.int64))
        changes = difference([before], [self._shown(touched)])
        # only now: `_shown` needs the slots of partitions that are empty after the change
        self._keys.remove(emptied)
        yield from emit_all(changes, out)

    def _shown(self, slots: np.ndarray) -> Batch:
        positions, ids = self._rows.links.expand(slots)
        # a row of weight 3 has three ranks; one of negative weight (its insertion is still to come) has none
        counts = np.clip(self._rows.store.weights(ids), 0, self._most_copies)
        if (counts != 1).any():
            # as often as a row is there it has an ordinal: refused before the copies take the memory
            size = int((counts.astype(np.float64) * np.maximum(self._rows.store.sizes(ids), 8)).sum())
            if size > LIMITS.array_bytes:
                raise TooLarge(size)
            positions, ids = np.repeat(positions, counts), np.repeat(ids, counts)
        part = partitioned(
            self._rows.store.take(ids), slots[positions], self._order, self._rows.store.arrived(ids)
        )
        return Batch(pa.RecordBatch.from_arrays(self.show(part), schema=self._schema))

    def _partition_ends(self) -> PartitionEnds:
        """The window ends of partitions, those of restored rows included."""
        assert self._window is not None
        # after a restore the ends are computed from the stored rows
        if self._ends is None:
            self._ends = PartitionEnds()
            store = self._rows.store
            live = store.live_ids()
            for first, last in cut(store.sizes(live), max(live.size, 1), LIMITS.chunk_bytes):
                rows = store.take(live[first:last])
                slots = self._keys.lookup([rows.column(key) for key in self._partition], rows.num_rows)
                self._ends.note(slots, words(rows.column(self._window.end_column)), self._keys.capacity)
        return self._ends

    def on_watermark(self, time_us: int, out: Output) -> None:
        # The rows of a closed window are dropped without a retraction: its output is final.
        self._watermark_us = time_us
        if self._window is None:
            return
        ended = self._partition_ends().due(self._keys.live_slots(), time_us)
        if ended.size:
            self._forget(ended)
            self._metrics.windows_closed += int(ended.size)

    def _forget(self, slots: np.ndarray) -> None:
        """Drop whole partitions."""
        _, ids = self._rows.links.expand(slots)
        self._rows.remove(ids)
        self._keys.remove(slots)
        self._metrics.state_entries = len(self._rows)

    @property
    def wants_ticks(self) -> bool:
        return self._ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Expire whole partitions by their time to live. Their output stays; nothing is emitted."""
        expired = self._rows.due(now_ms)
        if expired.size:
            self._forget(expired)
            self._metrics.count(EXPIRED, int(expired.size))


def columns_of(rows: pa.RecordBatch, more: Sequence[pa.Array]) -> list[pa.Array]:
    """Return the columns of rows with more appended."""
    return [*rows.columns, *more]
