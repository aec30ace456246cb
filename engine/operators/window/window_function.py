"""TUMBLE, HOP and CUMULATE as tables: each row once per window it falls in, with the window's columns
appended.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output, Rest, begun
from penstock.engine.api.row_pieces import cut_repeats
from penstock.engine.api.stream_elements import Batch
from penstock.engine.expressions.datum import nulls_of, values_of
from penstock.engine.windowing.window_arithmetic import assign, window_counts
from penstock.planner.physical.operator_specs import WindowTableSpec

WINDOW_TIME_US = 1000
"""``window_time`` is one millisecond before the window's end."""


class WindowTableOperator(Operator):
    """Rows with a NULL time are in no window: dropped and counted. Late rows pass with their marks; the
    operator that closes windows decides.
    """

    def __init__(self, spec: WindowTableSpec, options: JobOptions) -> None:
        self._window = spec.window
        self._schema = spec.schema.to_arrow()
        self._kinds = [field.type for field in self._schema][-3:]

    def open(self, context: Context) -> None:
        self._metrics = context.metrics

    def on_batch(self, batch: Batch, port: int, out: Output) -> Rest | None:
        batch = self._timed(batch)
        if batch.num_rows and self._window.overlapping:
            return begun(self._in_pieces(batch, out))
        if batch.num_rows:
            self._give(batch, out)
        return None

    def _in_pieces(self, batch: Batch, out: Output) -> Rest:
        """Emit rows with all their windows, as many rows at once as make no more than a piece together."""
        counts = window_counts(values_of(batch.rows.column(self._window.time_column)), self._window)
        for first, last in cut_repeats(counts, batch.rows):
            if first:
                yield
            self._give(batch.slice(first, last - first), out)

    def _give(self, batch: Batch, out: Output) -> None:
        rows, starts, ends = assign(values_of(batch.rows.column(self._window.time_column)), self._window)
        if self._window.overlapping:
            batch = batch.take(rows)
        columns = [*batch.rows.columns, *self._window_columns(starts, ends)]
        out.collect(batch.with_rows(pa.RecordBatch.from_arrays(columns, schema=self._schema)))

    def _timed(self, batch: Batch) -> Batch:
        """Return the rows that have a time."""
        missing = nulls_of(batch.rows.column(self._window.time_column))
        if missing is None:
            return batch
        self._metrics.count("null_time_rows", int(missing.sum()))
        return batch.filter(array_of(~missing))

    def _window_columns(self, starts: np.ndarray, ends: np.ndarray) -> list[pa.Array]:
        parts = (starts, ends, ends - WINDOW_TIME_US)
        return [array_of(part).view(kind) for part, kind in zip(parts, self._kinds, strict=True)]
