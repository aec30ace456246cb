"""The late-row filter: drops, counts and reports rows behind the watermark.

A row is late by the watermark of its own split when it came (``Batch.behind``), or by the operator's own.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.metrics.operator_metrics import OperatorMetrics


def drop_late_and_null_times(
    batch: Batch, time_column: int, own_us: int, slack_us: int, metrics: OperatorMetrics
) -> Batch:
    """Drop and count rows without a time, and late rows: those behind ``own_us``, or more than ``slack_us``
    behind the watermark of their split. ``own_us`` is the operator's watermark with the slack subtracted.
    """
    column = batch.rows.column(time_column)
    if column.null_count:
        metrics.count("null_time_rows", column.null_count)
        batch = batch.filter(column.is_valid())
        column = batch.rows.column(time_column)
    # the later of two watermarks, less the slack: the operator's own and that of the row's split
    bounds = (
        np.full(batch.num_rows, own_us)
        if batch.behind is None
        else np.maximum(batch.behind, own_us + slack_us) - slack_us
    )
    return without_late(batch, col.words(column) < bounds, bounds, metrics)


def without_late(
    batch: Batch,
    late: np.ndarray,
    bounds: np.ndarray,
    metrics: OperatorMetrics,
    ends: np.ndarray | None = None,
) -> Batch:
    """Drop, count and report the late rows of a mask. ``bounds``: the watermark that each row is behind;
    ``ends``: the ends of their last windows, where there are windows.
    """
    if not late.any():
        return batch
    metrics.late(batch.rows.filter(array_of(late)), bounds[late], None if ends is None else ends[late])
    return batch.filter(array_of(~late))


def drop_late(
    batch: Batch, time_column: int, slack_us: int, watermark_us: int, metrics: OperatorMetrics
) -> Batch:
    """Drop, count and report late rows; rows without a time are never late. The remaining rows have no
    ``behind``.

    ``slack_us``: how far below a watermark a time may be; ``watermark_us``: the operator's own watermark.
    """
    column = batch.rows.column(time_column)
    reached = (
        np.full(batch.num_rows, watermark_us)
        if batch.behind is None
        else np.maximum(batch.behind, watermark_us)
    )
    # the maximum keeps the subtraction from underflowing before the first watermark
    late = col.words(column) < np.maximum(reached, MIN_WATERMARK_US + max(slack_us, 0)) - slack_us
    if column.null_count:
        late &= truths(column.is_valid())
    batch = without_late(batch, late, reached, metrics)
    return Batch(batch.rows, batch.weights)
