"""Which rows come in time for an operator that lets rows pass by time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.elements import Batch
from engine.kernels import columns as col
from engine.metrics import OperatorMetrics


def in_time(batch: Batch, time_column: int, own_us: int, slack_us: int, metrics: OperatorMetrics) -> Batch:
    """Drop and count the rows without a time, and those behind ``own_us`` or the watermark of their split, less ``slack_us``, when they came."""
    column = batch.rows.column(time_column)
    if column.null_count:
        metrics.count("null_time_rows", column.null_count)
        batch = batch.filter(column.is_valid())
        column = batch.rows.column(time_column)
    late = col.words(column) < (own_us if batch.behind is None else np.maximum(batch.behind, own_us + slack_us) - slack_us)
    count = int(np.count_nonzero(late))
    metrics.late_rows += count
    return batch.filter(pa.array(~late)) if count else batch
