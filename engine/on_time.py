"""Which rows of a batch are on time: not behind their own split's watermark, nor behind the operator's own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.elements import MIN_WATERMARK_US, Batch
from engine.kernels import columns as col


def on_time(batch: Batch, time_column: int, slack_us: int, watermark_us: int) -> tuple[Batch, int]:
    """Return the rows on time, whatever their split has seen, and how many were late; rows without a time are on time.

    ``slack_us``: how far below a watermark a time may be; ``watermark_us``: the operator's own watermark.
    """
    column = batch.rows.column(time_column)
    bounds = watermark_us if batch.behind is None else np.maximum(batch.behind, watermark_us)
    late = col.words(column) < np.maximum(bounds, MIN_WATERMARK_US + max(slack_us, 0)) - slack_us
    if column.null_count:
        late &= column.is_valid().to_numpy(zero_copy_only=False)
    count = int(np.count_nonzero(late))
    if count:
        batch = batch.filter(pa.array(~late))
    return Batch(batch.rows, batch.weights), count
