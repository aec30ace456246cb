"""Top-N within windows of rows that are never taken back: each window's first rows are given once, when it
closes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Output, Rest, begun, given
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels.arrow_views import words
from penstock.engine.operators.over.partitions import Partitions, partitioned
from penstock.engine.operators.rank.partition_top_n_append import FirstRowsOperator
from penstock.engine.state.rows.partition_expiry import PartitionEnds
from penstock.engine.windowing.window_assigner import WindowRows
from penstock.planner.physical.operator_specs import PartitionTopSpec


class WindowTopOperator(FirstRowsOperator):
    """Keeps the first rows of each open window. Rows later than their window are dropped and counted."""

    def __init__(self, spec: PartitionTopSpec, options: JobOptions) -> None:
        super().__init__(spec, options)
        assert spec.window is not None
        self._window = spec.window
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        super().open(context)
        self._placing = WindowRows(self._window, context.metrics)
        self._ends: PartitionEnds | None = None

    def on_batch(self, batch: Batch, port: int, out: Output) -> Rest | None:
        return super().on_batch(self._placing.place(batch, self._watermark_us).batch, port, out)

    def _merge(self, rows: pa.RecordBatch, slots: np.ndarray, out: Output) -> None:
        self._noted().note(slots, words(rows.column(self._window.end_column)), self._keys.capacity)
        super()._merge(rows, slots, out)

    def _give(
        self,
        part: Partitions,
        old: np.ndarray,
        kept: np.ndarray,
        gone: np.ndarray,
        new: np.ndarray,
        out: Output,
    ) -> None:
        """Nothing is said while a window is open."""

    def _noted(self) -> PartitionEnds:
        """The ends of windows, those of restored rows included."""
        if self._ends is None:
            self._ends = PartitionEnds()
            held = self._rows.store.take(self._rows.store.live_ids())
            slots = self._keys.lookup([held.column(key) for key in self._spec.partition], held.num_rows)
            self._ends.note(slots, words(held.column(self._window.end_column)), self._keys.capacity)
        return self._ends

    def on_watermark(self, time_us: int, out: Output) -> Rest | None:
        return begun(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> Rest:
        self._watermark_us = time_us
        ended = self._noted().due(self._keys.live_slots(), time_us)
        if not ended.size:
            return
        positions, ids = self._rows.links.expand(ended)
        part = partitioned(self._rows.store.take(ids), positions, self._order, self._rows.store.arrived(ids))
        yield from given(self._ranked(part.rows, self._peers.ranks(part, self._spec.rank)), out)
        self._rows.remove(ids)
        self._keys.remove(ended)
        if self._best is not None:
            self._best.forget(ended)
        self._metrics.windows_closed += int(ended.size)
        self._metrics.state_entries = len(self._rows)
