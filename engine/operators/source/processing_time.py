"""Processing time: rows are stamped by the clock, which is also the watermark of what follows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, ListState, Operator, Output
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.state.watermark_state import OperatorWatermarkState
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.time_attributes import ProcessingTime
from penstock.planner.physical.operator_specs import OperatorSpec


class ProcessingTimeOperator(Operator):
    """Time never decreases, neither with the clock nor over a restore, so no row is late. Watermarks of the
    input end here.
    """

    passes_time = False

    def __init__(self, spec: OperatorSpec[ProcessingTime, OperatorFacts], options: JobOptions) -> None:
        self._column = spec.node.time_column
        self._schema = spec.schema.to_arrow()
        self._last = OperatorWatermarkState()
        self._sent_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._context = context

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # the time first, then the rows: a row never has a time below an emitted watermark
        self._advance(self._context.clock.wall_ms())
        columns = batch.rows.columns
        # one time for the whole batch
        times = array_of(np.full(batch.num_rows, self._last.us, np.int64))
        columns[self._column] = times.view(self._schema[self._column].type)
        out.collect(
            Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema), batch.weights, None, batch.origin)
        )

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """The next row's time is not before this one, so windows that end by now are complete."""
        self._advance(now_ms)
        # watermarks are emitted at ticks, not with each batch
        if self._sent_us < self._last.us:
            self._sent_us = self._last.us
            self._context.metrics.watermark_us = self._sent_us
            out.watermark(self._sent_us)

    def on_watermark(self, time_us: int, out: Output) -> None:
        """Of the input only its end is forwarded."""
        if time_us == MAX_WATERMARK_US:
            self._sent_us = time_us

    def _advance(self, now_ms: int) -> None:
        # a clock that is set back repeats the last time; a restore starts from the stored one
        self._last.us = max(self._last.us, now_ms * 1000)

    def list_states(self) -> dict[str, ListState]:
        return {"clock": self._last}
