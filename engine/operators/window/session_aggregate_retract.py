"""Aggregation over SESSION windows of rows that may be taken back: taking back the row between two others
splits their session.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.operator import Context, KeyedState, Output, Rest, begun, given
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.change_buffer import ThinnedChanges
from penstock.engine.operators.window.session_aggregate_early_fire import SessionChangesOperator
from penstock.engine.operators.window.window_aggregate import WINDOW_TIME_US
from penstock.engine.state.groups.session_rows import SessionRows, Sessions
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.row_difference import difference
from penstock.engine.state.rows.rows_behind import less
from penstock.engine.windowing.late_row_filter import without_late


class SessionUpdatesOperator(SessionChangesOperator):
    """Keeps the rows of open sessions. A row and its taking back are each late or not by themselves: what is
    not taken back in time stays. Late is what is behind its split's watermark: whether the session it is of
    has ended may be another matter once rows are taken back.

    A row on time can only be part of an open session, and parts of one that it leaves are open too: they end
    no earlier than its time.
    """

    added_states = frozenset()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._changes = ThinnedChanges(self._emission.every_us, context.clock)
        self._index = KeyIndex(self._key_types)
        groups = context.key_groups.max_parallelism
        self._rows = SessionRows(
            self._input, self._keys, self._time_column, self._gap_us, self._index, groups
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> Rest | None:
        return begun(self._change(batch, out))

    def _change(self, batch: Batch, out: Output) -> Rest:
        batch = self._rows.consolidated(self._in_time(batch), keep=True)
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

    def _in_time(self, batch: Batch) -> Batch:
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
            sessions if self._emission.early else sessions.kept(sessions.ends < self._watermark_us)
        )

    def on_watermark(self, time_us: int, out: Output) -> Rest | None:
        return begun(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> Rest:
        ended = self._rows.ended(time_us)
        closing = ended.kept(ended.ends >= self._watermark_us)
        if len(closing):
            self._metrics.windows_closed += len(closing)
            if not self._emission.early:
                yield from given(self._results(closing), out)
            yield from self._changes.give(out)
        else:
            yield from self._changes.give_due(out)
        over_us = max(time_us, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        self._rows.forget(ended.kept(ended.ends < over_us), over_us)
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
