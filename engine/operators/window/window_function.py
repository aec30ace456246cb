"""Windowing table functions: TUMBLE, HOP, CUMULATE and SESSION. Each row is emitted once per window it falls
in, with the window's columns appended.
"""

from __future__ import annotations

from itertools import pairwise

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
from penstock.engine.api.row_pieces import cut_repeats
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.expressions.datum import nulls_of, values_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.window.window_aggregate import WINDOW_TIME_US
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.session_rows import SessionRows
from penstock.engine.state.groups.session_state import SessionWindowState
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.event_time_buffer import RowsBehind, Turns
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from penstock.engine.windowing.late_row_filter import drop_late_and_null_times, without_late
from penstock.engine.windowing.window_arithmetic import assign, window_counts
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.physical.operator_specs import OperatorSpec


class WindowFunctionOperator(Operator):
    """Rows with a NULL time are in no window: dropped and counted. Late rows are forwarded with their marks;
    the operator that closes windows decides.
    """

    def __init__(self, spec: OperatorSpec[WindowTable, OperatorFacts], options: JobOptions) -> None:
        self._window = spec.node.window
        self._schema = spec.schema.to_arrow()
        self._kinds = [field.type for field in self._schema][-3:]

    def open(self, context: Context) -> None:
        self._metrics = context.metrics

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        # WHERE the time IS NOT NULL: such a row is in no window
        batch = self._timed(batch)
        # HOP and CUMULATE: one row becomes several
        if batch.num_rows and self._window.overlapping:
            return start_output(self._in_pieces(batch, out))
        if batch.num_rows:
            self._assign_windows(batch, out)
        return None

    def _in_pieces(self, batch: Batch, out: Output) -> PendingOutput:
        """Emit rows with all their windows, as many rows at once as fit in one piece."""
        counts = window_counts(values_of(batch.rows.column(self._window.time_column)), self._window)
        for first, last in cut_repeats(counts, batch.rows):
            if first:
                yield
            self._assign_windows(batch.slice(first, last - first), out)

    def _assign_windows(self, batch: Batch, out: Output) -> None:
        rows, starts, ends = assign(values_of(batch.rows.column(self._window.time_column)), self._window)
        # TUMBLE has one window a row: the rows stay as they are
        if self._window.overlapping:
            batch = batch.take(rows)
        columns = [*batch.rows.columns, *self._window_columns(starts, ends)]
        out.collect(batch.with_rows(pa.RecordBatch.from_arrays(columns, schema=self._schema)))

    def _timed(self, batch: Batch) -> Batch:
        """Return the rows with a time."""
        missing = nulls_of(batch.rows.column(self._window.time_column))
        if missing is None:
            return batch
        self._metrics.count("null_time_rows", int(missing.sum()))
        return batch.filter(array_of(~missing))

    def _window_columns(self, starts: np.ndarray, ends: np.ndarray) -> list[pa.Array]:
        # window_start, window_end, window_time
        parts = (starts, ends, ends - WINDOW_TIME_US)
        return [array_of(part).view(kind) for part, kind in zip(parts, self._kinds, strict=True)]


class SessionFunctionOperator(Operator):
    """Drops and counts rows without a time, and rows whose session has ended. Rows behind a watermark are
    processed in their order of time, as in ``SessionAggregateOperator``.

    A session is over when the watermark is past its end, since a row at its end still belongs to it. So the
    watermark is forwarded one microsecond lower, and windows above do not close before the sessions that end
    with them.
    """

    passes_time = False
    added_states = frozenset({"behind"})

    def __init__(self, spec: OperatorSpec[WindowTable, OperatorFacts], options: JobOptions) -> None:
        self._window = spec.node.window
        self._schema = spec.schema.to_arrow()
        # the input's columns: all but the three of the window
        self._input = pa.schema(list(self._schema)[:-3])
        self._zone = options.time_zone
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        types = [self._input.field(key).type for key in self._window.partition_keys]
        groups = context.key_groups
        # sessions without aggregates: only their bounds; the rows are stored beside them
        self._sessions = SessionWindowState(types, Accumulators((), True, self._zone), groups.max_parallelism)
        keys, time = self._window.partition_keys, self._window.time_column
        self._rows = TimedRows(self._input, keys, time, self._sessions.keys, groups)
        self._behind = RowsBehind(self._input, keys, time, groups.max_parallelism)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"sessions": self._sessions, "rows": self._rows, "behind": self._behind}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # rows behind a watermark are buffered until every row with an earlier time has come
        batch = self._behind.timely(batch, self._watermark_us, 0, self._metrics)
        if batch.num_rows:
            times = col.words(batch.rows.column(self._window.time_column))
            self._sessions.open(
                [batch.rows.column(key) for key in self._window.partition_keys],
                times,
                times + self._window.size_us,
            )
            self._link(batch)
        self._count_entries()

    def _link(self, batch: Batch) -> None:
        # a row of weight 2 is stored, and later emitted, twice
        for rows in batch.single_rows():
            self._rows.link(rows.rows)

    def _count_entries(self) -> None:
        self._metrics.state_entries = len(self._rows) + len(self._behind)

    def _take_turns(self, turns: Turns) -> None:
        """Add rows behind a watermark to the sessions; drop and count those whose session would have
        ended.
        """
        rows = turns.batch.rows
        times = col.words(rows.column(self._window.time_column))
        keys = [rows.column(key) for key in self._window.partition_keys]
        # -1: no session that was open at the row's watermark accepts it
        late = self._sessions.open_in_turn(keys, times, self._window.size_us, turns.reached) < 0
        self._link(without_late(turns.batch, late, turns.reached, self._metrics))

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        turns = self._behind.turns(time_us)
        if turns is not None:
            # one group of rows for each watermark they were behind, in ascending order
            for first, end in pairwise(
                [*np.unique(turns.reached, return_index=True)[1].tolist(), turns.reached.size]
            ):
                # by session: a row is found in its session by key and time
                # sessions that had ended by then close before the rows are added, so they cannot take them
                yield from self._close(int(turns.reached[first]), out)
                self._take_turns(turns.of(np.arange(first, end)))
        yield from self._advance(time_us, out)

    def _advance(self, time_us: int, out: Output) -> PendingOutput:
        yield from self._close(time_us, out)
        self._watermark_us = time_us
        # the chain forwards no watermark for this operator; the end of time is forwarded by the task
        if MIN_WATERMARK_US < time_us < MAX_WATERMARK_US:
            out.watermark(time_us - 1)

    def on_idle(self, out: Output) -> None:
        out.idle()

    def _close(self, time_us: int, out: Output) -> PendingOutput:
        """Emit and drop the sessions that are over."""
        ended = self._sessions.ended(time_us)
        if ended.size:
            yield from emit_batch(self._rows_of(ended), out)
            self._sessions.remove(ended)
            self._metrics.windows_closed += int(ended.size)
        self._count_entries()

    def _rows_of(self, ended: np.ndarray) -> Batch:
        """Return and drop the rows of sessions. A row belongs to the last session of its key that begins at
        its time or before, if that session is over.
        """
        # An as-of join: starts of ended sessions and rows of their keys in one list, sorted by key, then
        # time. A row belongs to the last session start before it.
        keys, (starts, ends) = self._sessions.key_slots(ended), self._sessions.bounds(ended)
        buffered = np.unique(keys)
        positions, ids = self._rows.passed.expand(buffered)
        all_keys = np.concatenate([keys, buffered[positions]])
        all_times = np.concatenate([starts, self._rows.times(ids)])
        # the first entries are sessions, the others rows
        is_row = np.arange(all_keys.size) >= ended.size
        # at equal times the session's start comes first: its first row has that time
        order = np.lexsort((is_row, all_times, all_keys))
        # for each entry the position of the last session start up to it
        latest = np.maximum.accumulate(np.where(is_row[order], -1, np.arange(order.size)))
        found = np.flatnonzero(is_row[order] & (latest >= 0))
        session, row = order[latest[found]], order[found] - ended.size
        # another key's session, or a row of a session that is still open, does not count
        mine = (keys[session] == buffered[positions[row]]) & (
            self._rows.times(ids[row]) <= ends[session] - self._window.size_us
        )
        session, row = session[mine], row[mine]
        turn = np.argsort(session, kind="stable")  # sessions by end, their rows by time
        session, row = session[turn], row[turn]
        rows = self._rows.store.take(ids[row])
        columns = list(rows.columns)
        for times, field in zip((starts, ends, ends - WINDOW_TIME_US), list(self._schema)[-3:], strict=True):
            columns.append(array_of(times[session]).view(field.type))
        # emitted rows leave the state
        self._rows.forget(ids[row], ids[:0])
        return Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


class RetractSessionFunctionOperator(SessionFunctionOperator):
    """Retracting variant: rows behind their split's watermark, and retractions behind it, are late: dropped
    and counted.
    """

    added_states = frozenset()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        window = self._window
        self._keys = KeyIndex([self._input.field(key).type for key in window.partition_keys])
        groups = context.key_groups.max_parallelism
        self._buffered = SessionRows(
            self._input, window.partition_keys, window.time_column, window.size_us, self._keys, groups
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._buffered}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        batch = drop_late_and_null_times(
            batch, self._window.time_column, self._watermark_us, 0, self._metrics
        )
        # a row and its retraction in one batch cancel out
        batch = self._buffered.consolidated(batch, keep=True)
        if batch.num_rows:
            slots = self._keys.lookup_or_insert(
                [batch.rows.column(key) for key in self._window.partition_keys], batch.num_rows
            )
            # a retraction removes the stored row, which has not been emitted: the output has no retraction
            self._keys.remove(self._buffered.change(batch, slots, np.zeros(batch.num_rows, np.int64)))
            self._metrics.state_entries = len(self._buffered)

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        yield from self._advance(time_us, out)

    def _close(self, time_us: int, out: Output) -> PendingOutput:
        ended = self._buffered.ended(time_us)
        if len(ended):
            # all rows of the ended sessions, each with its weight
            columns = list(self._buffered.store.take(ended.ids).columns)
            for times, field in zip(
                (ended.starts, ended.ends, ended.ends - WINDOW_TIME_US), list(self._schema)[-3:], strict=True
            ):
                columns.append(array_of(times[ended.of]).view(field.type))
            rows = Batch(
                pa.RecordBatch.from_arrays(columns, schema=self._schema),
                self._buffered.store.weights(ended.ids),
            )
            for number, piece in enumerate(rows.single_rows()):
                if number:
                    yield
                out.collect(piece)
            self._metrics.windows_closed += len(ended)
        self._buffered.forget(ended, time_us)
        self._metrics.state_entries = len(self._buffered)
