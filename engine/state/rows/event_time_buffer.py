"""EventTimeBuffer: rows pending until the watermark passes them. RowsBehind: rows behind the watermark of
their split.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.row_pieces import TooLarge
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.exchange.batch_concat import all_weights, concat_batches, take_rows_from
from penstock.engine.kernels import arrow_views as col
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.state.rows.batch_buffer import BatchBuffer
from penstock.engine.state.rows.row_difference import net_weights

# Every advance of the watermark looks at each batch, so beyond this many they are merged.
_PIECES_MAX = 32


class EventTimeBuffer(BatchBuffer):
    """Pending rows with a time; none of the times is NULL. A row has the same number as long as it is
    pending.
    """

    def __init__(
        self, schema: pa.Schema, key_columns: Sequence[int], time_column: int, max_parallelism: int
    ) -> None:
        super().__init__(schema, key_columns, max_parallelism)
        self._time_column = time_column
        self._clear()

    def _clear(self) -> None:
        self._batches = []
        # One entry for each batch: numbers and times of its rows (int64, microseconds), its earliest and
        # latest time.
        self._numbers: list[np.ndarray] = []
        self._times: list[np.ndarray] = []
        self._bounds: list[tuple[int, int]] = []

    def _row_numbers(self) -> list[np.ndarray] | None:
        return list(self._numbers)

    def add(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        # Numbers are 32 bits in a snapshot. Renumbered rows cannot be told from older ones, so ``reset``
        # makes the next snapshot a whole one.
        if self.changes.full(batch.num_rows):
            self.changes.reset()
            self._numbers = [self.changes.take(waiting.num_rows) for waiting in self._batches]
        self._keep(batch, self.changes.take(batch.num_rows))
        if len(self._batches) > _PIECES_MAX:
            # The numbers stay with their rows: merging is no change that a snapshot would have to write.
            merged, numbers, first = (
                concat_batches([Batch(one.rows, one.weights) for one in self._batches]),
                np.concatenate(self._numbers),
                0,
            )
            self._clear()
            for piece in merged:
                self._keep(piece, numbers[first : first + piece.num_rows])
                first += piece.num_rows

    def _keep(self, batch: Batch, numbers: np.ndarray) -> None:
        self._batches.append(batch)
        self._numbers.append(numbers)
        times = col.words(batch.rows.column(self._time_column))
        self._times.append(times)
        self._bounds.append((int(times.min()), int(times.max())))

    def spillable_bytes(self) -> int:
        """None can be spilled: all rows are scanned whenever time advances."""
        return 0

    def release(self) -> list[Batch]:
        batches = self._batches
        self._clear()
        self.changes.reset()
        return batches

    def due(self, time_us: int) -> list[Batch]:
        """Remove and return the rows with a time below ``time_us``; retractions cancel the rows they match.
        Returns no batch, one, or as few as Arrow allows.
        """
        pieces = list(zip(self._batches, self._numbers, self._times, self._bounds, strict=True))
        # The usual answer, without touching a row.
        if not any(first < time_us for *_, (first, _) in pieces):
            return []
        due, gone = [], []
        self._clear()
        for batch, numbers, times, (first, last) in pieces:
            # the whole batch is due
            if last < time_us:
                due.append(Batch(batch.rows, batch.weights))
                gone.append(numbers)
            # none of it is
            elif first >= time_us:
                self._keep(batch, numbers)
            else:
                # the batch is split; its other rows keep their numbers
                ready = times < time_us
                some = batch.take(np.flatnonzero(ready))
                due.append(Batch(some.rows, some.weights))
                gone.append(numbers[ready])
                self._keep(batch.take(np.flatnonzero(~ready)), numbers[~ready])
        self.changes.release(np.concatenate(gone), len(self))
        return _cancelled(concat_batches(due))


def _cancelled(due: list[Batch]) -> list[Batch]:
    # Without weights there are no retractions: nothing can cancel.
    if all(batch.weights is None for batch in due):
        return due
    first, net = net_weights(due, all_weights(due))
    # A row and its retraction that were both pending leave no trace.
    left = np.flatnonzero(net)
    return take_rows_from(due, first[left], net[left])


@dataclass(frozen=True, eq=False)
class Turns:
    """Late rows that can be decided on now, and the watermark each was behind, int64."""

    batch: Batch
    reached: np.ndarray

    def of(self, chosen: np.ndarray) -> Turns:
        """Return the rows at some positions."""
        return Turns(self.batch.take(chosen), self.reached[chosen])


class RowsBehind(EventTimeBuffer):
    """A buffer of rows behind the watermark of their split. Whether such a row is late may depend on rows of
    other splits with an earlier time that have not arrived yet.

    Once the operator's watermark is past the one a row was behind, every row that could precede it has
    arrived.
    """

    def __init__(
        self, schema: pa.Schema, key_columns: Sequence[int], time_column: int, max_parallelism: int
    ) -> None:
        # ``_time_column`` is the column ``behind`` here: a row is due once the watermark passes what the row
        # was behind.
        self._timed_by = time_column
        super().__init__(
            schema.append(pa.field("behind", pa.int64(), False)), key_columns, len(schema), max_parallelism
        )

    def timely(self, batch: Batch, watermark_us: int, lateness_us: int, metrics: OperatorMetrics) -> Batch:
        """Return the rows that are not behind the watermark of their split or the operator's, less the
        lateness, and buffer the others.

        Rows without a time are dropped and counted.
        """
        column = batch.rows.column(self._timed_by)
        # A row without a time is in no window and no order.
        if column.null_count:
            metrics.count("null_time_rows", column.null_count)
            batch = batch.filter(column.is_valid())
            column = batch.rows.column(self._timed_by)
        # A row that came late from its split carries that split's watermark; others are compared with the
        # operator's.
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
        """Remove and return the rows that the watermark has passed, by the watermark they were behind; None
        when there are none. Raises ``TooLarge``: whether one is late depends on the others, so they must be
        one batch.
        """
        due_batches = self.due(watermark_us)
        if not due_batches:
            return None
        # Whether one of them is late depends on the others, so they cannot be decided piece by piece.
        if len(due_batches) > 1:
            raise TooLarge(sum(batch.size_bytes for batch in due_batches))
        (due,) = due_batches
        reached = numbers_of(due.rows.columns[-1])
        # By the watermark each was behind; rows behind the same one in order of arrival.
        order = np.argsort(reached, kind="stable")
        return Turns(Batch(due.rows.select(range(len(self._schema) - 1)), due.weights), reached).of(order)


def less(times_us: np.ndarray, by_us: int) -> np.ndarray:
    """Return watermarks less some microseconds; none goes below the least one."""
    # First raised, then lowered: the subtraction cannot go below the least int64.
    return np.maximum(times_us, MIN_WATERMARK_US + max(by_us, 0)) - by_us
