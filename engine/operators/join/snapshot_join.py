"""The snapshot join: rows wait until a table is loaded up to a point in its time. Then each row joins the
table as it is when the row passes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, ListState, Output, PendingOutput, start_output
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.join.regular_join import RegularJoinOperator
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.batch_buffer import BatchBuffer
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer
from penstock.planner.logical.joins.join import JoinFacts
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.physical.operator_specs import OperatorSpec


class SnapshotJoinOperator(RegularJoinOperator):
    """Port 0 is the stream, port 1 the changelog of the table. A change is applied when the watermark of port
    1 has reached its time; a late change, or one without a time, at once. Output is never retracted.

    Until the table is loaded, rows and the watermark of port 0 wait. A restored job whose subtasks had not
    all finished loading loads on in all of them.
    """

    passes_time = False

    def __init__(self, spec: OperatorSpec[SnapshotJoin, JoinFacts], options: JobOptions) -> None:
        super().__init__(spec, options)
        self._snapshot, self._zone = spec.node, options.time_zone
        # RegularJoin then stores no rows of port 0, and emits an unmatched one at once
        self._ended = [False, True]  # a row joins nothing but the table, whatever its kind
        self._rows_ended = False
        self._is_loaded = False
        self._build_us = MIN_WATERMARK_US
        # watermark of port 0; None while it is idle
        self._rows_us: int | None = MIN_WATERMARK_US
        # since when the table's watermark has not moved; None: it moved after the last tick
        self._moved_ms: float | None = None

    def open(self, context: Context) -> None:
        super().open(context)
        groups = context.key_groups.max_parallelism
        self._rows_waiting = BatchBuffer(self._schemas[0], self._keys[0], groups)
        # changes that wait for the table's watermark, with the time from which they count
        self._pending_schema = self._schemas[1].append(pa.field("counts from", pa.int64(), False))
        self._pending = EventTimeBuffer(self._pending_schema, self._keys[1], len(self._schemas[1]), groups)
        # loaded when the table's watermark reaches this: the time of the start, unless the query names one
        self._until_us = (
            self._now_us(context.clock.wall_ms())
            if self._snapshot.loaded_us is None
            else self._snapshot.loaded_us
        )

    def _now_us(self, wall_ms: int) -> int:
        """The moment in the table's time: in the session's time zone where its type has none."""
        offset = datetime.fromtimestamp(wall_ms / 1000, ZoneInfo(self._zone)).utcoffset()
        has_zone = self._schemas[1].field(self._snapshot.build_time).type.tz is not None
        return wall_ms * 1000 + (
            0 if has_zone or offset is None else round(offset.total_seconds() * 1_000_000)
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        # right: the table as it is; held: rows of port 0 before the load; pending: changes of the table
        return {"right": self._sides[1], "held": self._rows_waiting, "pending": self._pending}

    def state_ports(self) -> dict[str, int]:
        return {"right": 1, "pending": 1}

    def list_states(self) -> dict[str, ListState]:
        return {"loaded": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"loaded": self._is_loaded, "until_us": self._until_us}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        if items:
            # all, not any: rows that waited in one subtask may now be in another
            self._is_loaded = all(item["loaded"] for item in items)
            self._until_us = min(item["until_us"] for item in items)

    @property
    def _loading(self) -> bool:
        return not self._is_loaded

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        if port == 1:
            return start_output(self._counted(self._change(batch, out)))
        if self._loading:
            self._rows_waiting.add(batch)
            self._count_entries()
            return None
        return start_output(self._counted(self._join(batch, 0, out)))

    def _change(self, batch: Batch, out: Output) -> PendingOutput:
        times = batch.rows.column(self._snapshot.build_time)
        # a change without a time is applied at once: it has no time to wait for
        if times.null_count:
            has_time = truths(times.is_valid())
            yield from self._join(Batch(batch.rows, batch.weights).take(np.flatnonzero(~has_time)), 1, out)
            batch = batch.take(np.flatnonzero(has_time))
        batch = self._without_null_keys(batch, 1, out)
        if batch.num_rows:
            # all others wait until the table's watermark has reached their time
            since_us = self._counts_from(batch)
            rows = pa.RecordBatch.from_arrays(
                [*batch.rows.columns, array_of(since_us)], schema=self._pending_schema
            )
            self._pending.add(Batch(rows, batch.weights))
            # late changes: their time has been reached
            if since_us.min() <= self._build_us:
                yield from self._apply(out)

    def _counts_from(self, batch: Batch) -> np.ndarray:
        """The times of changes. A retraction waits for the insertion of its key that comes with it, so that
        an update is applied as a whole.
        """
        # (-1 old row, 10:00), (+1 new row, 10:05): applied one by one, the key had no row for five minutes
        times = np.asarray(col.words(batch.rows.column(self._snapshot.build_time)), np.int64)
        if batch.weights is None or (batch.weights > 0).all():
            return times
        keys = [batch.rows.column(key) for key in self._keys[1]]
        slots = (
            KeyIndex([key.type for key in keys]).lookup_or_insert(keys, batch.num_rows)
            if keys
            else np.zeros(batch.num_rows, np.int64)
        )
        added = batch.weights > 0
        # by key of the batch: the latest insertion
        latest = np.full(int(slots.max()) + 1, MIN_WATERMARK_US, np.int64)
        np.maximum.at(latest, slots[added], times[added])
        return np.where(added, times, np.maximum(times, latest[slots]))

    def _apply(self, out: Output) -> PendingOutput:
        """Apply the changes that the table's watermark has reached. A row at the time of the load belongs to
        it.
        """
        # due() returns times below its bound, so a time equal to the watermark is included
        for due in self._pending.due(min(self._build_us, MAX_WATERMARK_US - 1) + 1):
            yield from self._join(Batch(due.rows.select(range(len(self._schemas[1]))), due.weights), 1, out)

    def on_port_time(self, port: int, time_us: int | None, out: Output) -> PendingOutput | None:
        # the stream's watermark is forwarded; the table's only applies changes
        if port == 0:
            self._rows_us = time_us
            self._emit_time(out)
            self._count_entries()
            return None
        return None if time_us is None else start_output(self._counted(self._pass_build_time(time_us, out)))

    def _pass_build_time(self, time_us: int, out: Output) -> PendingOutput:
        self._build_us, self._moved_ms = time_us, None
        yield from self._apply(out)
        if self._loading and time_us >= self._until_us:
            yield from self._finish(out)

    def _emit_time(self, out: Output) -> None:
        if self._loading:
            return
        if self._rows_us is None:
            out.idle()
        elif self._rows_us > MIN_WATERMARK_US:
            self._context.metrics.watermark_us = self._rows_us
            out.watermark(self._rows_us)

    def _finish(self, out: Output) -> PendingOutput:
        """The table is loaded: join what has waited, and forward the watermark."""
        self._is_loaded = True
        # the rows before the watermark that waited behind them
        for batch in self._rows_waiting.release():
            yield
            yield from self._join(batch, 0, out)
        self._emit_time(out)
        self._release_table()

    def _release_table(self) -> None:
        """No row will join the table any more."""
        if self._rows_ended and self._is_loaded:
            self._ended[0] = True
            self._pending.release()
            self._forget(1)

    def on_port_end(self, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._counted(self._end_port(port, out)))

    def _end_port(self, port: int, out: Output) -> PendingOutput:
        # no further row: the table is freed as soon as nothing waits for it
        if port == 0:
            self._rows_ended = True
            self._release_table()
            return
        # the table has ended: all its changes count, and it is loaded
        self._build_us = MAX_WATERMARK_US
        yield from self._apply(out)
        if self._loading:
            yield from self._finish(out)

    @property
    def wants_ticks(self) -> bool:
        return super().wants_ticks or self._snapshot.idle_ms is not None

    def on_processing_time(self, now_ms: int, out: Output) -> PendingOutput | None:
        """Expire rows of the table by their time to live. A table whose watermark is idle for long counts as
        loaded.
        """
        super().on_processing_time(now_ms, out)
        if self._loading and self._snapshot.idle_ms is not None:
            # no time of day: one that is set forward would take a table that is being read for loaded
            since_ms = self._context.clock.monotonic_ms()
            self._moved_ms = since_ms if self._moved_ms is None else self._moved_ms
            if since_ms - self._moved_ms >= self._snapshot.idle_ms:
                return start_output(self._counted(self._finish(out)))
        return None

    def _count_entries(self) -> None:
        self._context.metrics.state_entries = (
            len(self._sides[1]) + len(self._rows_waiting) + len(self._pending)
        )
