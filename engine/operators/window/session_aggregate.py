"""Aggregation over SESSION windows: rows of a key no further apart than the gap are one session."""

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
from penstock.planner.logical.windows import Windowing
from penstock.planner.physical.operator_specs import WindowAggregateSpec


class SessionAggregateOperator(Operator):
    """A session lasts from its first time to its last time plus the gap; a row at exactly that end still
    belongs to it.

    A row is late when its session, with those it touches that had not ended by its split's watermark when it
    came, would have ended by then. So rows behind their split's watermark wait until all have come that came
    earlier as time goes, and take their turn: which sessions there are does not depend on how splits
    interleave. A session is emitted when the watermark is past its end (a row at its end might still come).
    So time goes on from here one microsecond behind, and windows above do not close before the sessions that
    end with them have come.
    """

    added_states = frozenset({"behind"})

    def __init__(self, spec: WindowAggregateSpec, options: JobOptions) -> None:
        assert isinstance(spec.window, Windowing)
        self._time_column, self._gap_us = spec.window.time_column, spec.window.size_us
        self._lateness_us = spec.emission.lateness_us
        self._keys = spec.keys
        self._schema = spec.schema.to_arrow()
        self._input = spec.input_schema.to_arrow()
        self._key_types = [self._input.field(key).type for key in spec.keys]
        self._accumulators = Accumulators(spec.aggregates, True, options.time_zone)
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        groups = context.key_groups.max_parallelism
        self._state = SessionWindowState(self._key_types, self._accumulators, groups)
        self._behind = RowsBehind(self._input, self._keys, self._time_column, groups)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"sessions": self._state, "behind": self._behind}

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        batch = self._behind.timely(batch, self._watermark_us, self._lateness_us, self._metrics)
        if batch.num_rows:
            times = col.words(batch.rows.column(self._time_column))
            sessions = self._state.open(
                [batch.rows.column(key) for key in self._keys], times, times + self._gap_us
            )
            self._accumulators.add(sessions, batch.rows, batch.weights)
        self._count_entries()
        return None

    def _count_entries(self) -> None:
        self._metrics.state_entries = len(self._state) + len(self._behind)

    def _take_turns(self, turns: Turns) -> None:
        """Make rows that came behind a watermark part of the sessions that had not ended by then; drop and
        count the others, which are late.
        """
        rows = turns.batch.rows
        times, ended_us = col.words(rows.column(self._time_column)), less(turns.reached, self._lateness_us)
        sessions = self._state.open_in_turn(
            [rows.column(key) for key in self._keys], times, self._gap_us, ended_us
        )
        late = sessions < 0
        batch = without_late(turns.batch, late, turns.reached, self._metrics)
        self._accumulators.add(sessions[~late], batch.rows, batch.weights)

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        turns = self._behind.turns(time_us)
        if turns is not None:
            self._take_turns(turns)
        state = self._state
        ended = state.ended(time_us)
        if ended.size:
            yield from emit_batch(self._batch(ended), out)
            state.remove(ended)
            self._metrics.windows_closed += int(ended.size)
        self._count_entries()
        self._watermark_us = time_us

    def passes_on(self, time_us: int) -> int:
        return time_us - 1 if MIN_WATERMARK_US < time_us < MAX_WATERMARK_US else time_us

    def _batch(self, sessions: np.ndarray) -> Batch:
        """Return the results of sessions."""
        starts, ends = self._state.bounds(sessions)
        columns = self._state.key_columns(sessions) + self._accumulators.results(sessions)
        for times, field in zip((starts, ends, ends - WINDOW_TIME_US), list(self._schema)[-3:], strict=True):
            columns.append(array_of(times).view(field.type))
        return Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


class EarlyFireSessionOperator(EarlyFireEmission, SessionAggregateOperator):
    """What a batch changes is the difference of the sessions its keys show before it and after it, for a row
    may unite sessions.

    Shown are all sessions where they give early results, else those the watermark is past. A session is
    forgotten when the watermark is ``lateness_us`` past its end; no row that comes later can be part of it
    then.
    """

    def __init__(self, spec: WindowAggregateSpec, options: JobOptions) -> None:
        super().__init__(spec, options)
        self._emission = spec.emission

    def open(self, context: Context) -> None:
        super().open(context)
        self._changes = ChangeBuffer(self._emission.every_us, context.clock)

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._change(batch, out))

    def _change(self, batch: Batch, out: Output) -> PendingOutput:
        batch = self._behind.timely(batch, self._watermark_us, self._lateness_us, self._metrics)
        if batch.num_rows:
            before = self._shown(batch)
            times = col.words(batch.rows.column(self._time_column))
            sessions = self._state.open(
                [batch.rows.column(key) for key in self._keys], times, times + self._gap_us
            )
            self._accumulators.add(sessions, batch.rows, batch.weights)
            yield from self._changes.add(difference([before], [self._shown(batch)]), out)
        self._count_entries()

    def _shown(self, batch: Batch) -> Batch:
        """Return the results that are shown of the keys of some rows."""
        sessions = self._state.of_keys([batch.rows.column(key) for key in self._keys], batch.num_rows)
        return self._batch(
            sessions
            if self._emission.early
            else sessions[self._state.bounds(sessions)[1] < self._watermark_us]
        )

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        turns = self._behind.turns(time_us)
        if turns is not None:
            before = self._shown(turns.batch)
            self._take_turns(turns)
            yield from self._changes.add(difference([before], [self._shown(turns.batch)]), out)
        state = self._state
        ended = state.ended(time_us)
        closing = ended[state.bounds(ended)[1] >= self._watermark_us]
        if closing.size:
            self._metrics.windows_closed += int(closing.size)
            if not self._emission.early:
                yield from emit_batch(self._batch(closing), out)
            yield from self._changes.flush(out)
        else:
            yield from self._changes.flush_due(out)
        over = ended[
            state.bounds(ended)[1] < max(time_us, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        ]
        if over.size:
            state.remove(over)
        self._count_entries()
        self._watermark_us = time_us


class RetractSessionOperator(EarlyFireSessionOperator):
    """Keeps the rows of open sessions. A row and its taking back are each late or not by themselves: what is
    not taken back in time stays. Late is what is behind its split's watermark: whether the session it is of
    has ended may be another matter once rows are taken back.

    A row on time can only be part of an open session, and parts of one that it leaves are open too: they end
    no earlier than its time.
    """

    added_states = frozenset()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._changes = ChangeBuffer(self._emission.every_us, context.clock)
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
        batch = self._rows.consolidated(self._drop_late(batch), keep=True)
        if not batch.num_rows:
            return
        slots = self._index.lookup_or_insert([batch.rows.column(key) for key in self._keys], batch.num_rows)
        touched = np.unique(slots)
        before = self._now_shown(touched)
        emptied = self._rows.change(batch, slots, np.zeros(batch.num_rows, np.int64))
        if before is not None:
            after = self._now_shown(touched)
            assert after is not None
            yield from self._changes.add(difference([before], [after]), out)
        self._index.remove(emptied)
        self._metrics.state_entries = len(self._rows)

    def _drop_late(self, batch: Batch) -> Batch:
        """Drop and count the rows without a time and the late ones."""
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
        """Return the results that have been given of keys; None where none are before their session is
        gone.
        """
        if not (self._emission.early or self._lateness_us):
            return None
        sessions = self._rows.of_slots(slots)
        return self._results(
            sessions if self._emission.early else sessions.filter(sessions.ends < self._watermark_us)
        )

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        ended = self._rows.ended(time_us)
        closing = ended.filter(ended.ends >= self._watermark_us)
        if len(closing):
            self._metrics.windows_closed += len(closing)
            if not self._emission.early:
                yield from emit_batch(self._results(closing), out)
            yield from self._changes.flush(out)
        else:
            yield from self._changes.flush_due(out)
        over_us = max(time_us, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        self._rows.forget(ended.filter(ended.ends < over_us), over_us)
        self._metrics.state_entries = len(self._rows)
        self._watermark_us = time_us

    def _results(self, sessions: Sessions) -> Batch:
        """Return the results of sessions."""
        store = self._rows.store
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
