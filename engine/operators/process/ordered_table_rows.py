"""The rows of a table argument with ORDER BY: pending until the watermark has passed them, then in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.catalog.schema import Role, Schema
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.exchange.batch_concat import all_weights, take_rows_from
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.window.window_aggregate import WINDOW_TIME_US
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.windowing.late_row_filter import drop_late_and_null_times
from penstock.planner.expressions.nodes import Column, SortKey


class OrderedTableRows:
    """Buffers the rows of one table. ``order``: its ORDER BY, the first key an ascending event time.

    Rows without a time, and late rows, are dropped and counted: rows after them may have been processed. All
    columns break ties, so that batches and splits do not matter.
    """

    def __init__(
        self,
        schema: Schema,
        keys: Sequence[int],
        order: Sequence[SortKey],
        options: JobOptions,
        max_parallelism: int,
    ) -> None:
        time = order[0].expression
        assert isinstance(time, Column)
        self._time_column = time.index
        # window_time is one millisecond before the window's end, so such rows pass that much later
        of_window = schema[time.index].role is Role.WINDOW_TIME
        self._slack_us = WINDOW_TIME_US - 1 if of_window else 0
        self._order = RowOrder(list(order), schema.to_arrow(), options.time_zone)
        self.rows = EventTimeBuffer(schema.to_arrow(), keys, self._time_column, max_parallelism)

    def add(self, batch: Batch, watermark_us: int, metrics: OperatorMetrics) -> None:
        """Buffer a batch. ``watermark_us``: the watermark that the operator has passed on."""
        reached = self._less_slack(watermark_us)
        batch = drop_late_and_null_times(batch, self._time_column, reached, self._slack_us, metrics)
        self.rows.add(Batch(batch.rows, batch.weights))

    def due(self, watermark_us: int) -> Iterator[Batch]:
        """Remove and return the rows that a watermark has passed, in order."""
        due = self.rows.due(self._less_slack(watermark_us))
        if not due:
            return
        order = self._order.sorted_pieces([batch.rows for batch in due])
        weighted = any(batch.weights is not None for batch in due)
        yield from take_rows_from(due, order, all_weights(due)[order] if weighted else None)

    def _less_slack(self, watermark_us: int) -> int:
        return max(watermark_us, MIN_WATERMARK_US + self._slack_us) - self._slack_us
