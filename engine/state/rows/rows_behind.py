"""RowsBehind: rows that came behind their split's watermark, until time has passed all that may still come
before them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.row_pieces import TooLarge
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer


@dataclass(frozen=True, eq=False)
class Turns:
    """Rows whose turn has come, and the watermark each was behind, int64."""

    batch: Batch
    reached: np.ndarray

    def of(self, chosen: np.ndarray) -> Turns:
        """Return the rows at some positions."""
        return Turns(self.batch.take(chosen), self.reached[chosen])


class RowsBehind(EventTimeBuffer):
    """Whether such a row is late may depend on rows of other splits, which came earlier as time goes but are
    still on their way.

    Once the watermark here is past the one a row was behind, every row that could have come before it has
    come.
    """

    def __init__(
        self, schema: pa.Schema, key_columns: Sequence[int], time_column: int, max_parallelism: int
    ) -> None:
        self._timed_by = time_column
        super().__init__(
            schema.append(pa.field("behind", pa.int64(), False)), key_columns, len(schema), max_parallelism
        )

    def timely(self, batch: Batch, watermark_us: int, lateness_us: int, metrics: OperatorMetrics) -> Batch:
        """Return the rows that are not behind the watermark of their split or the operator's, less the
        lateness, and let the others wait.

        Rows without a time are dropped and counted.
        """
        column = batch.rows.column(self._timed_by)
        if column.null_count:
            metrics.count("null_time_rows", column.null_count)
            batch = batch.filter(column.is_valid())
            column = batch.rows.column(self._timed_by)
        reached = (
            np.full(batch.num_rows, watermark_us)
            if batch.behind is None
            else np.maximum(batch.behind, watermark_us)
        )
        behind = col.words(column) < less(reached, lateness_us)
        if not behind.any():
            return batch
        waiting = batch.take(np.flatnonzero(behind))
        columns = [*waiting.rows.columns, array_of(reached[behind])]
        self.add(Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema), waiting.weights))
        return batch.take(np.flatnonzero(~behind))

    def turns(self, watermark_us: int) -> Turns | None:
        """Take out and return the rows whose turn has come, by what they were behind; None when there are
        none. Raises ``TooLarge``: which of them are late they tell of each other.
        """
        found = self.due(watermark_us)
        if not found:
            return None
        if len(found) > 1:
            raise TooLarge(sum(batch.size_bytes for batch in found))
        (due,) = found
        reached = numbers_of(due.rows.columns[-1])
        order = np.argsort(reached, kind="stable")
        return Turns(Batch(due.rows.select(range(len(self._schema) - 1)), due.weights), reached).of(order)


def less(times_us: np.ndarray, by_us: int) -> np.ndarray:
    """Return watermarks less some microseconds; none goes below the least one."""
    return np.maximum(times_us, MIN_WATERMARK_US + max(by_us, 0)) - by_us
