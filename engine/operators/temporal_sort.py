"""Temporal sort: rows wait until the watermark has passed their time, and are then emitted in order."""

from __future__ import annotations

import numpy as np

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    ListState,
    Operator,
    Output,
    PendingOutput,
    start_output,
)
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.exchange.batch_concat import all_weights, take_rows_from
from penstock.engine.operators.window.window_aggregate import WINDOW_TIME_US
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.watermark_state import OperatorWatermarkState
from penstock.engine.windowing.late_row_filter import drop_late_and_null_times
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.sort import TemporalSort
from penstock.planner.physical.operator_specs import OperatorSpec


class TemporalSortOperator(Operator):
    """Runs in one task. Rows without a time, and late rows, are dropped and counted. A row that is retracted
    before it is emitted is not emitted.
    """

    def __init__(self, spec: OperatorSpec[TemporalSort, OperatorFacts], options: JobOptions) -> None:
        self._schema = spec.schema.to_arrow()
        self._time_column = spec.node.time_column
        # window_time is one millisecond before the window's end, so such rows pass that much later
        self._slack_us = WINDOW_TIME_US - 1 if spec.node.of_windows else 0
        self._order = RowOrder(spec.node.keys, self._schema, options.time_zone)
        self._passed = OperatorWatermarkState()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._rows = EventTimeBuffer(self._schema, (), self._time_column, context.key_groups.max_parallelism)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def list_states(self) -> dict[str, ListState]:
        return {"passed": self._passed}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # a row behind the watermark would have to be emitted before rows that are out already
        batch = drop_late_and_null_times(
            batch, self._time_column, self._passed.us, self._slack_us, self._metrics
        )
        if batch.num_rows:
            self._rows.add(Batch(batch.rows, batch.weights))
            self._metrics.state_entries = len(self._rows)

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        """Rows of a window wait until the watermark has reached its end, which is later than their time."""
        self._passed.us = max(time_us, MIN_WATERMARK_US + self._slack_us) - self._slack_us
        due = self._rows.due(self._passed.us)
        order = self._order.sorted_pieces([batch.rows for batch in due])
        # a negative weight is a retraction that came before its row: nothing is emitted for it
        if any(batch.weights is not None for batch in due):
            weights = np.maximum(all_weights(due)[order], 0)
            order, weights = order[weights > 0], weights[weights > 0]
            due = take_rows_from(due, order, weights)
        else:
            due = take_rows_from(due, order, None)
        for number, piece in enumerate(piece for batch in due for piece in batch.single_rows()):
            if number:
                yield
            out.collect(Batch(piece.rows))
        self._metrics.state_entries = len(self._rows)
