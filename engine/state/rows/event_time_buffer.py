"""EventTimeBuffer: weighted rows that wait until time has passed them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.batch_concat import gathered
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.batch_buffer import BatchBuffer

_PIECES_MAX = 32


class EventTimeBuffer(BatchBuffer):
    """Held rows with a time; none of the times is NULL. A row keeps the number it came with as long as it
    waits.
    """

    def __init__(
        self, schema: pa.Schema, key_columns: Sequence[int], time_column: int, max_parallelism: int
    ) -> None:
        super().__init__(schema, key_columns, max_parallelism)
        self._time_column = time_column
        self._clear()

    def _clear(self) -> None:
        self._batches = []
        self._numbers: list[np.ndarray] = []
        self._times: list[np.ndarray] = []
        self._bounds: list[tuple[int, int]] = []

    def _numbered(self) -> list[tuple[np.ndarray, Batch]]:
        return list(zip(self._numbers, self._batches, strict=True))

    def add(self, batch: Batch) -> None:
        if not batch.num_rows:
            return
        if self.changes.full(batch.num_rows):
            self.changes.reset()
            self._numbers = [self.changes.take(waiting.num_rows) for waiting in self._batches]
        self._keep(batch, self.changes.take(batch.num_rows))
        if len(self._batches) > _PIECES_MAX:
            merged, numbers, first = (
                gathered([Batch(held.rows, held.weights) for held in self._batches]),
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
        """None: they are looked through whenever time goes on."""
        return 0

    def release(self) -> list[Batch]:
        batches = self._batches
        self._clear()
        self.changes.reset()
        return batches

    def due(self, time_us: int) -> Batch | None:
        """Take out and return the rows with a time below ``time_us``, what they take back of each other
        cancelled; None when there are none.
        """
        pieces = list(zip(self._batches, self._numbers, self._times, self._bounds, strict=True))
        if not any(first < time_us for *_, (first, _) in pieces):
            return None
        due, gone = [], []
        self._clear()
        for batch, numbers, times, (first, last) in pieces:
            if last < time_us:
                due.append(batch)
                gone.append(numbers)
            elif first >= time_us:
                self._keep(batch, numbers)
            else:
                ready = times < time_us
                due.append(batch.take(np.flatnonzero(ready)))
                gone.append(numbers[ready])
                self._keep(batch.take(np.flatnonzero(~ready)), numbers[~ready])
        self.changes.release(np.concatenate(gone), len(self))
        return _cancelled(_together(due))


def _together(batches: Sequence[Batch]) -> Batch:
    size = sum(batch.size_bytes for batch in batches)
    if size > LIMITS.array_bytes:
        raise TooLarge(size)
    rows = pa.concat_batches([batch.rows for batch in batches])
    if all(batch.weights is None for batch in batches):
        return Batch(rows)
    return Batch(
        rows,
        np.concatenate([np.ones(b.num_rows, np.int64) if b.weights is None else b.weights for b in batches]),
    )


def _cancelled(batch: Batch) -> Batch:
    if batch.weights is None:
        return batch
    slots = KeyIndex(batch.rows.schema.types).lookup_or_insert(batch.rows.columns, batch.num_rows)
    _, first, inverse = np.unique(slots, return_index=True, return_inverse=True)
    net = np.zeros(first.size, np.int64)
    np.add.at(net, inverse, batch.weights)
    left = np.flatnonzero(net)
    return Batch(batch.rows.take(array_of(first[left])), net[left])
