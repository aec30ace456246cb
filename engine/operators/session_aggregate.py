"""Aggregation over SESSION windows: rows of a key no further apart than the gap are one session."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.arrays import array_of
from engine.elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from engine.in_time import without_late
from engine.job_options import JobOptions
from engine.kernels import columns as col
from engine.operator import Context, KeyedState, Operator, Output
from engine.operators.window_aggregate import WINDOW_TIME_US
from engine.state.accumulators import Accumulators
from engine.state.session_state import SessionState
from planner.physical import WindowAggregateSpec
from planner.windowing import Windowing


class SessionAggregateOperator(Operator):
    """A session lasts from its first time to its last time plus the gap; a row at exactly that end still belongs to it.

    Whatever order rows come in, the sessions are the same: a row is late when it is behind its split's watermark (it might have joined a session
    that is gone), and a session is emitted when the watermark is past its end (a row at its end might still come). So time goes on from here one
    microsecond behind, and windows above do not close before the sessions that end with them have come.
    """

    def __init__(self, spec: WindowAggregateSpec, options: JobOptions) -> None:
        assert isinstance(spec.window, Windowing)
        self._time_column, self._gap_us = spec.window.time_column, spec.window.size_us
        self._lateness_us = spec.emission.lateness_us
        self._keys = spec.keys
        self._schema = spec.schema.to_arrow()
        self._key_types = [spec.input_schema.to_arrow().field(key).type for key in spec.keys]
        self._accumulators = Accumulators(spec.aggregates, True, options.time_zone)
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._state = SessionState(self._key_types, self._accumulators, context.key_groups.max_parallelism)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"sessions": self._state}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        batch = self._in_time(batch)
        if not batch.num_rows:
            return
        times = col.words(batch.rows.column(self._time_column))
        sessions = self._state.open([batch.rows.column(key) for key in self._keys], times, times + self._gap_us)
        self._accumulators.add(sessions, batch.rows, batch.weights)
        self._metrics.state_entries = len(self._state)

    def _in_time(self, batch: Batch) -> Batch:
        """Drop and count the rows without a time and the late ones."""
        column = batch.rows.column(self._time_column)
        if column.null_count:
            self._metrics.count("null_time_rows", column.null_count)
            batch = batch.filter(column.is_valid())
            column = batch.rows.column(self._time_column)
        bounds = np.full(batch.num_rows, self._watermark_us) if batch.behind is None else np.maximum(batch.behind, self._watermark_us)
        late = col.words(column) < np.maximum(bounds, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        return without_late(batch, late, bounds, self._metrics)

    def on_watermark(self, time_us: int, out: Output) -> None:
        state = self._state
        ended = state.ended(time_us)
        if ended.size:
            out.collect(self._batch(ended))
            state.remove(ended)
            self._metrics.windows_closed += int(ended.size)
            self._metrics.state_entries = len(state)
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
