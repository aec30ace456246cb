"""Marks rows that are late for every window they fall in, as the window operator above would decide it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine import windows
from engine.arrays import array_of
from engine.elements import MIN_WATERMARK_US, Batch
from engine.expressions.columns import nulls_of, values_of
from engine.job_options import JobOptions
from engine.operator import Operator, Output
from planner.physical import LateMarkSpec
from planner.windowing import WindowKind


class LateMarkOperator(Operator):
    """Decides by the watermark of the row's own split, or its own; what stands above sees none that is further on."""

    def __init__(self, spec: LateMarkSpec, options: JobOptions) -> None:
        self._window = spec.window
        self._lateness_us = spec.lateness_us
        self._schema = spec.schema.to_arrow()
        self._watermark_us = MIN_WATERMARK_US

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        column = batch.rows.column(self._window.time_column)
        times = values_of(column)
        bounds = np.full(times.size, self._watermark_us) if batch.behind is None else np.maximum(batch.behind, self._watermark_us)
        reach = np.maximum(bounds, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        if self._window.kind is WindowKind.SESSION:
            ends, late = times + self._window.size_us, times < reach
        else:
            ends = windows.last_window_end(windows.slice_end(times, self._window), self._window)
            late = ends <= reach
        missing = nulls_of(column)
        if missing is not None:
            late &= ~missing
        kind = self._schema[-1].type
        marks = [array_of(late), array_of(ends, missing).view(kind), array_of(bounds, bounds == MIN_WATERMARK_US).view(kind)]
        out.collect(batch.with_rows(pa.RecordBatch.from_arrays([*batch.rows.columns, *marks], schema=self._schema)))

    def on_watermark(self, time_us: int, out: Output) -> None:
        self._watermark_us = time_us
