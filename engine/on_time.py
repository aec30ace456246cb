"""Which rows of a batch are on time: not behind their own split's watermark, nor behind the operator's own."""

from __future__ import annotations

import numpy as np

from penstock.engine.arrays import truths
from penstock.engine.elements import MIN_WATERMARK_US, Batch
from penstock.engine.in_time import without_late
from penstock.engine.kernels import columns as col
from penstock.engine.metrics import OperatorMetrics


def on_time(batch: Batch, time_column: int, slack_us: int, watermark_us: int, metrics: OperatorMetrics) -> Batch:
    """Drop, count and tell of the late rows, whatever their split has seen; rows without a time are on time.

    ``slack_us``: how far below a watermark a time may be; ``watermark_us``: the operator's own watermark.
    """
    column = batch.rows.column(time_column)
    reached = np.full(batch.num_rows, watermark_us) if batch.behind is None else np.maximum(batch.behind, watermark_us)
    late = col.words(column) < np.maximum(reached, MIN_WATERMARK_US + max(slack_us, 0)) - slack_us
    if column.null_count:
        late &= truths(column.is_valid())
    batch = without_late(batch, late, reached, metrics)
    return Batch(batch.rows, batch.weights)
