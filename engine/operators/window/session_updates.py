"""SESSION over rows that are updated: sessions that never close, whose rows follow every change."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    Operator,
    Output,
    PendingOutput,
    emit_batch,
    start_output,
)
from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.window.window_aggregate import WINDOW_TIME_US
from penstock.engine.state.groups.updated_sessions import Bounds, SessionChanges, UpdatedSessions
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.time_to_live import ABSENT, EXPIRED, LastWrites
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.physical.operator_specs import OperatorSpec


class UpdatingSessionFunctionOperator(Operator):
    """Each row with the bounds of its session, retracted and emitted anew when these change. A row that comes
    may merge two sessions, and one that goes may split its session.

    Rows with a NULL time are in no session: dropped and counted. No row is late. With a time to live a key is
    dropped when no row of it has come for so long; what was emitted stays, as of a Top-N.
    """

    def __init__(self, spec: OperatorSpec[WindowTable, PartitionFacts], options: JobOptions) -> None:
        self._window, self._ttl_ms = spec.node.window, spec.facts.ttl_ms
        self._input = spec.node.input.schema.to_arrow()
        self._schema = spec.schema.to_arrow()
        self._kinds = [field.type for field in self._schema][-3:]

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        keys = self._window.partition_keys
        self._index = KeyIndex([self._input.field(key).type for key in keys])
        self._rows = UpdatedSessions(
            self._input,
            keys,
            self._window.time_column,
            self._window.size_us,
            self._index,
            context.key_groups.max_parallelism,
            LastWrites(self._ttl_ms, context.clock) if self._ttl_ms else None,
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    @property
    def wants_ticks(self) -> bool:
        return self._ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Drop keys that have expired; nothing is emitted."""
        slots = self._rows.due(now_ms)
        if not slots.size:
            return
        before = len(self._rows)
        self._rows.forget_keys(slots)
        self._index.remove(slots)
        self._metrics.count(EXPIRED, before - len(self._rows))
        self._metrics.state_entries = len(self._rows)

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._change(batch, out))

    def _change(self, batch: Batch, out: Output) -> PendingOutput:
        # 1. a row and its retraction in one batch cancel out
        batch = self._rows.consolidated(self._timed(batch), keep=True)
        # 2. with a time to live, retractions of expired rows are dropped and counted
        if self._ttl_ms:
            batch, absent = self._rows.without_absent(batch)
            if absent:
                self._metrics.count(ABSENT, absent)
        if not batch.num_rows:
            return
        slots = self._index.lookup_or_insert(
            [batch.rows.column(key) for key in self._window.partition_keys], batch.num_rows
        )
        batch, slots = self._rows.one_each(batch, slots)
        # 3. rows that go stay stored until they have been retracted
        changes = self._rows.changes_of(batch, slots)
        yield from self._emit_changes(batch, changes, out)
        self._index.remove(self._rows.apply(batch, slots, changes))
        self._metrics.state_entries = len(self._rows)

    def _timed(self, batch: Batch) -> Batch:
        """Return the rows with a time."""
        column = batch.rows.column(self._window.time_column)
        if not column.null_count:
            return batch
        self._metrics.count("null_time_rows", column.null_count)
        return batch.filter(column.is_valid())

    def _emit_changes(self, batch: Batch, changes: SessionChanges, out: Output) -> PendingOutput:
        store = self._rows.store
        sizes = 2 * store.sizes(changes.ids)
        for number, (first, last) in enumerate(cut(sizes, LIMITS.piece_rows, LIMITS.piece_bytes)):
            if number:
                yield
            # the retraction of a row and its insertion are in one batch
            some = np.arange(first, last)
            left, here = changes.before.at(some), changes.after.at(some)
            rows = store.take(np.tile(changes.ids[some], 2))
            weights = np.concatenate([-left.weights, here.weights])
            starts, ends = np.concatenate([left.starts, here.starts]), np.concatenate([left.ends, here.ends])
            yield from self._emit(rows, Bounds(starts, ends, weights), out)
        # rows that come are last: each may replace one of its key that goes
        if changes.places.size:
            yield from self._emit(batch.rows.take(array_of(changes.places)), changes.coming, out)

    def _emit(self, rows: pa.RecordBatch, bounds: Bounds, out: Output) -> PendingOutput:
        # a row that goes has weight 0 now
        some = np.flatnonzero(bounds.weights)
        if some.size < rows.num_rows:
            rows, bounds = rows.take(array_of(some)), bounds.at(some)
        parts = (bounds.starts, bounds.ends, bounds.ends - WINDOW_TIME_US)
        columns = [array_of(part).view(kind) for part, kind in zip(parts, self._kinds, strict=True)]
        made = pa.RecordBatch.from_arrays([*rows.columns, *columns], schema=self._schema)
        yield from emit_batch(Batch(made, None if (bounds.weights == 1).all() else bounds.weights), out)
