"""The LOCAL phase of a split window aggregate: one partial row per key and slice, before the exchange."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine import windows
from engine.elements import MIN_WATERMARK_US, Batch
from engine.job_options import JobOptions
from engine.operator import Context, Operator, Output
from engine.state.accumulators import Accumulators
from engine.state.window_state import WindowState
from engine.window_rows import WindowRows
from planner.physical import WindowAggregateSpec
from planner.windowing import Windowing


class LocalWindowAggregateOperator(Operator):
    """Holds partials only until the next watermark, barrier or full buffer, so it has no state to declare.

    Rows late for some windows of their slice are kept apart, and their partial says so by ``Batch.behind``.
    """

    def __init__(self, spec: WindowAggregateSpec, options: JobOptions) -> None:
        assert isinstance(spec.window, Windowing)
        self._window = spec.window
        self._keys = spec.keys
        self._schema = spec.schema.to_arrow()
        self._key_types = [spec.input_schema.to_arrow().field(key).type for key in spec.keys]
        self._accumulators = Accumulators(spec.aggregates, spec.insert_only, options.time_zone)
        self._entries_max = options.batch_max_rows
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._rows = WindowRows(self._window, context.metrics)
        self._state = WindowState(self._window, self._key_types, self._accumulators)

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        placed = self._rows.place(batch, self._watermark_us)
        if placed.ends.size:
            self._state.add([placed.batch.rows.column(key) for key in self._keys], placed)
            if len(self._state) >= self._entries_max:
                self._flush(out)

    def on_watermark(self, time_us: int, out: Output) -> None:
        self._flush(out)
        self._watermark_us = time_us

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        self._flush(out)

    def on_end(self, out: Output) -> None:
        self._flush(out)

    def _flush(self, out: Output) -> None:
        state = self._state
        if not len(state):
            return
        entries, ends = state.all_entries()
        missed = state.missed(entries)
        columns = state.keys.keys(state.key_slots(entries)) + self._accumulators.results(entries)
        columns.append(pa.array(ends).view(self._schema.field(len(columns)).type))
        behind = None
        if missed.any():
            behind = np.where(missed > 0, ends + (missed - 1) * windows.slice_size(self._window), MIN_WATERMARK_US)
        rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        state.remove(state.slices()[0])
        out.collect(Batch(rows, behind=behind))
