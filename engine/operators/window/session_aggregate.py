"""Aggregation over SESSION windows: rows of a key no further apart than the gap form one session."""

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
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.emit_changes import ChangeBuffer
from penstock.engine.operators.window.window_aggregate import WINDOW_TIME_US, EarlyFireEmission
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.session_rows import SessionRows, Sessions
from penstock.engine.state.groups.session_state import SessionWindowState
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.event_time_buffer import RowsBehind, Turns, less
from penstock.engine.state.rows.row_difference import difference
from penstock.engine.windowing.late_row_filter import without_late
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.windows import Windowing
from penstock.planner.physical.operator_specs import OperatorSpec


class SessionAggregateOperator(Operator):
    """A session lasts from its first time to its last time plus the gap; a row exactly at that end still
    belongs to it.

    A row is late if its session would have ended by its split's watermark when it came. That session includes
    those it touches that had not ended by then. So rows behind their split's watermark wait for all rows with
    an earlier time, and are processed in that order. The sessions do not depend on how splits interleave.

    A session is emitted when the watermark is past its end, since a row at its end may still come. So the
    watermark is forwarded one microsecond lower, and windows above do not close before the sessions that end
    with them.
    """

    added_states = frozenset({"behind"})

    def __init__(self, spec: OperatorSpec[WindowAggregate, OperatorFacts], options: JobOptions) -> None:
        assert isinstance(spec.node.window, Windowing)
        self._time_column, self._gap_us = spec.node.window.time_column, spec.node.window.size_us
        self._lateness_us = spec.node.emission.lateness_us
        self._keys = spec.node.keys
        self._schema = spec.schema.to_arrow()
        self._input = spec.node.input.schema.to_arrow()
        self._key_types = [self._input.field(key).type for key in spec.node.keys]
        # insert-only: RetractSessionOperator stores rows instead and aggregates them anew
        self._accumulators = Accumulators(spec.node.aggregates, True, options.time_zone)
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        groups = context.key_groups.max_parallelism
        self._state = SessionWindowState(self._key_types, self._accumulators, groups)
        self._behind = RowsBehind(self._input, self._keys, self._time_column, groups)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"sessions": self._state, "behind": self._behind}

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        # rows behind a watermark are buffered until their turn
        batch = self._behind.timely(batch, self._watermark_us, self._lateness_us, self._metrics)
        if batch.num_rows:
            times = col.words(batch.rows.column(self._time_column))
            # each row is a session [time, time + gap]; those that touch are merged, with their accumulators
            sessions = self._state.open(
                [batch.rows.column(key) for key in self._keys], times, times + self._gap_us
            )
            self._accumulators.add(sessions, batch.rows, batch.weights)
        self._count_entries()
        return None

    def _count_entries(self) -> None:
        self._metrics.state_entries = len(self._state) + len(self._behind)

    def _take_turns(self, turns: Turns) -> None:
        """Add rows behind a watermark to the sessions that had not ended by it; drop and count the late
        ones.
        """
        rows = turns.batch.rows
        times, ended_us = col.words(rows.column(self._time_column)), less(turns.reached, self._lateness_us)
        sessions = self._state.open_in_turn(
            [rows.column(key) for key in self._keys], times, self._gap_us, ended_us
        )
        # -1: no session that was open at the row's watermark accepts it
        late = sessions < 0
        batch = without_late(turns.batch, late, turns.reached, self._metrics)
        self._accumulators.add(sessions[~late], batch.rows, batch.weights)

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        # before sessions close: a row behind its split's watermark may still extend or merge one of them
        turns = self._behind.turns(time_us)
        if turns is not None:
            self._take_turns(turns)
        state = self._state
        # end < watermark, not <=: a row at the end still belongs to the session
        ended = state.ended(time_us)
        if ended.size:
            yield from emit_batch(self._batch(ended), out)
            state.remove(ended)
            self._metrics.windows_closed += int(ended.size)
        self._count_entries()
        self._watermark_us = time_us

    def passes_on(self, time_us: int) -> int:
        # At watermark w the sessions that end before w are emitted. A session that ends at w is emitted
        # later, with window_time below w: a window above that closed at w would drop it.
        return time_us - 1 if MIN_WATERMARK_US < time_us < MAX_WATERMARK_US else time_us

    def _batch(self, sessions: np.ndarray) -> Batch:
        """Return the results of sessions."""
        starts, ends = self._state.bounds(sessions)
        columns = self._state.key_columns(sessions) + self._accumulators.results(sessions)
        # the last three columns: window_start, window_end, window_time
        for times, field in zip((starts, ends, ends - WINDOW_TIME_US), list(self._schema)[-3:], strict=True):
            columns.append(array_of(times).view(field.type))
        return Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


class EarlyFireSessionOperator(EarlyFireEmission, SessionAggregateOperator):
    """Emits the difference of a key's sessions before and after a batch, for a row may merge sessions.

    With early results all sessions are emitted, else those the watermark has passed. A session is dropped
    when the watermark is ``lateness_us`` past its end; a later row cannot be part of it.
    """

    def __init__(self, spec: OperatorSpec[WindowAggregate, OperatorFacts], options: JobOptions) -> None:
        super().__init__(spec, options)
        self._emission = spec.node.emission

    def open(self, context: Context) -> None:
        super().open(context)
        self._changes = ChangeBuffer(self._emission, context.clock)

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._change(batch, out))

    def _change(self, batch: Batch, out: Output) -> PendingOutput:
        batch = self._behind.timely(batch, self._watermark_us, self._lateness_us, self._metrics)
        if batch.num_rows:
            # what was emitted for the keys of the batch, before and after: (A, 10:00-10:05), (A, 10:08-10:10)
            # may become one (A, 10:00-10:10); the difference retracts the first two
            before = self._shown(batch)
            times = col.words(batch.rows.column(self._time_column))
            sessions = self._state.open(
                [batch.rows.column(key) for key in self._keys], times, times + self._gap_us
            )
            self._accumulators.add(sessions, batch.rows, batch.weights)
            yield from self._changes.add(difference([before], [self._shown(batch)]), out)
        self._count_entries()

    def _shown(self, batch: Batch) -> Batch:
        """Return the emitted results of the keys of some rows."""
        # without early results a session was emitted only if it ended before the watermark
        sessions = self._state.of_keys([batch.rows.column(key) for key in self._keys], batch.num_rows)
        return self._batch(
            sessions
            if self._emission.early
            else sessions[self._state.bounds(sessions)[1] < self._watermark_us]
        )

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        turns = self._behind.turns(time_us)
        if turns is not None:
            # rows that come late but are allowed retract and replace what was emitted for their keys
            before = self._shown(turns.batch)
            self._take_turns(turns)
            yield from self._changes.add(difference([before], [self._shown(turns.batch)]), out)
        state = self._state
        ended = state.ended(time_us)
        # sessions that end between the last watermark and this one; the others have been emitted
        closing = ended[state.bounds(ended)[1] >= self._watermark_us]
        if closing.size:
            self._metrics.windows_closed += int(closing.size)
            if not self._emission.early:
                # EMIT FINAL with lateness: this is the first row of the session
                yield from emit_batch(self._batch(closing), out)
            # a window that closes does not wait for the interval of EMIT CHANGES
            yield from self._changes.flush(out)
        else:
            yield from self._changes.flush_due(out)
        # no row that is still accepted can touch them: their results are final
        over = ended[
            state.bounds(ended)[1] < max(time_us, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        ]
        if over.size:
            state.remove(over)
        self._count_entries()
        self._watermark_us = time_us


class RetractSessionOperator(EarlyFireSessionOperator):
    """Stores the rows of open sessions, for inputs with retractions. A row and its retraction are late or not
    each on its own: what is not retracted in time stays. Late is what is behind its split's watermark: after
    a retraction its session may not have ended.

    A row that is not late can only be part of an open session. If its retraction splits that session, the
    parts are open too: they end no earlier than its time.
    """

    added_states = frozenset()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._changes = ChangeBuffer(self._emission, context.clock)
        self._index = KeyIndex(self._key_types)
        groups = context.key_groups.max_parallelism
        self._rows = SessionRows(
            self._input, self._keys, self._time_column, self._gap_us, self._index, groups
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._change(batch, out))

    def _change(self, batch: Batch, out: Output) -> PendingOutput:
        # a row and its retraction in one batch cancel out and change no session
        batch = self._rows.consolidated(self._drop_late(batch), keep=True)
        if not batch.num_rows:
            return
        slots = self._index.lookup_or_insert([batch.rows.column(key) for key in self._keys], batch.num_rows)
        # keys, not sessions: a row may merge the sessions of its key, and its retraction split them
        touched = np.unique(slots)
        before = self._now_shown(touched)
        emptied = self._rows.change(batch, slots, np.zeros(batch.num_rows, np.int64))
        # retract the sessions that changed, emit the new ones
        if before is not None:
            after = self._now_shown(touched)
            assert after is not None
            yield from self._changes.add(difference([before], [after]), out)
        self._index.remove(emptied)
        self._metrics.state_entries = len(self._rows)

    def _drop_late(self, batch: Batch) -> Batch:
        """Drop and count the rows without a time and the late ones."""
        # a row with a NULL time is in no session
        column = batch.rows.column(self._time_column)
        if column.null_count:
            self._metrics.count("null_time_rows", column.null_count)
            batch = batch.filter(column.is_valid())
            column = batch.rows.column(self._time_column)
        bounds = (
            np.full(batch.num_rows, self._watermark_us)
            if batch.behind is None
            else np.maximum(batch.behind, self._watermark_us)
        )
        return without_late(batch, col.words(column) < less(bounds, self._lateness_us), bounds, self._metrics)

    def _now_shown(self, slots: np.ndarray) -> Batch | None:
        """Return the emitted results of keys; None where a session is only emitted when it is dropped."""
        # a session is emitted once, when it closes, and then dropped: nothing is ever retracted
        if not (self._emission.early or self._lateness_us):
            return None
        sessions = self._rows.of_slots(slots)
        return self._results(
            sessions if self._emission.early else sessions.filter(sessions.ends < self._watermark_us)
        )

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        # all sessions that are over; `closing` are those the last watermark had not reached
        ended = self._rows.ended(time_us)
        closing = ended.filter(ended.ends >= self._watermark_us)
        if len(closing):
            self._metrics.windows_closed += len(closing)
            if not self._emission.early:
                yield from emit_batch(self._results(closing), out)
            yield from self._changes.flush(out)
        else:
            yield from self._changes.flush_due(out)
        # the lateness is over for these: their rows are dropped; the maximum prevents an underflow
        over_us = max(time_us, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        self._rows.forget(ended.filter(ended.ends < over_us), over_us)
        self._metrics.state_entries = len(self._rows)
        self._watermark_us = time_us

    def _results(self, sessions: Sessions) -> Batch:
        """Return the results of sessions."""
        store = self._rows.store
        # sessions have no accumulators here: aggregates are computed from the stored rows
        accumulators = self._accumulators.fresh()
        accumulators.reserve(len(sessions))
        accumulators.add(sessions.of, store.take(sessions.ids), store.weights(sessions.ids))
        columns = self._index.keys(sessions.key_slots) + accumulators.results(np.arange(len(sessions)))
        for times, field in zip(
            (sessions.starts, sessions.ends, sessions.ends - WINDOW_TIME_US),
            list(self._schema)[-3:],
            strict=True,
        ):
            columns.append(array_of(times).view(field.type))
        return Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
