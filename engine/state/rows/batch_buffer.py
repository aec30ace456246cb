"""BatchBuffer: whole batches in order of arrival, with weights and lateness, until they are due."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.operator import TrackedState
from penstock.engine.api.row_pieces import LIMITS, take_in_pieces
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels.stable_hash import groups_of_keys
from penstock.engine.state.change_tracking import Arrivals
from penstock.engine.state.state_snapshot import SLOT, by_group, whole
from penstock.engine.storage.spill_files import SpilledRows, SpillFiles


class BatchBuffer(TrackedState):
    """Batches of one schema. Snapshots have key_group (of the key columns; none: group 0), weight, behind
    (NULL: on time) and the columns.
    """

    def __init__(self, schema: pa.Schema, key_columns: Sequence[int], max_parallelism: int) -> None:
        self._schema = schema
        self._keys = list(key_columns)
        self._max_parallelism = max_parallelism
        # In memory, in order of arrival; the spilled ones came before all of these.
        self._batches: list[Batch] = []
        self._spilled = SpilledRows()
        # Of each spilled batch its weights and the watermarks its rows were behind: numbers stay in memory.
        self._spilled_marks: list[tuple[np.ndarray | None, np.ndarray | None]] = []
        self.changes = Arrivals()

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self._all())

    def _all(self) -> list[Batch]:
        marked = zip(self._spilled.batches, self._spilled_marks, strict=True)
        return [*(Batch(rows, weights, behind) for rows, (weights, behind) in marked), *self._batches]

    def _row_numbers(self) -> list[np.ndarray] | None:
        """Return the numbers of the rows of each batch. ``None``: they are positions in order of arrival, for
        all batches are released at once.
        """
        return None

    def spillable_bytes(self) -> int:
        """Return the bytes of the rows in memory."""
        return sum(batch.rows.nbytes for batch in self._batches)

    def spill(self, files: SpillFiles) -> None:
        """Write the rows in memory to disk."""
        self._spilled.add(files.write([batch.rows for batch in self._batches], self._schema))
        self._spilled_marks += [(batch.weights, batch.behind) for batch in self._batches]
        self._batches = []

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        if batch.num_rows:
            self.changes.take(batch.num_rows)
            self._batches.append(batch)

    def release(self) -> list[Batch]:
        """Return all batches in order and forget them."""
        batches = self._all()
        self._batches, self._spilled, self._spilled_marks = [], SpilledRows(), []
        # Numbers start at 0 again, so no snapshot taken before this can be the base of an incremental one.
        self.changes.reset()
        return batches

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Rows are shared with their batches; slots are their numbers."""
        # Batches never change, so holding references is enough: nothing is copied at the barrier.
        batches, kept = self._all(), self._row_numbers()

        # Called by the writer's thread, possibly after the buffer has released its rows.
        def pieces() -> Iterator[pa.Table]:
            chosen = list(zip(_counted(batches) if kept is None else kept, batches, strict=True))
            if slots is not None:
                among = (_among(slots, numbers, batch) for numbers, batch in chosen)
                chosen = [chosen_rows for chosen_rows in among if chosen_rows is not None]
            rows = pa.Table.from_batches([batch.rows for _, batch in chosen], self._schema)
            numbers = np.concatenate([np.zeros(0, np.int64), *(numbers for numbers, _ in chosen)])
            weights = [np.ones(b.num_rows, np.int64) if b.weights is None else b.weights for _, b in chosen]
            behind = [
                pa.nulls(b.num_rows, pa.int64()) if b.behind is None else array_of(b.behind)
                for _, b in chosen
            ]
            groups = np.zeros(rows.num_rows, np.uint16)
            # Rows without key columns belong to group 0, which one subtask owns.
            if self._keys and rows.num_rows:
                groups = groups_of_keys(rows.select(self._keys), self._max_parallelism)
            order, first = by_group(groups, numbers)
            columns = [
                array_of(np.concatenate([np.zeros(0, np.int64), *weights])),
                pa.chunked_array(behind, pa.int64()),
                *rows.columns,
            ]
            # On disk: key_group, @slot (the row's number), weight, behind, c0 ...
            names = ["weight", "behind", *[f"c{i}" for i in range(len(self._schema))]]
            first_of = 0
            for piece in take_in_pieces(pa.table(columns, names=names), order, LIMITS.batch_bytes):
                marks = [column.slice(first_of, piece.num_rows) for column in first]
                yield pa.table([*marks, *piece.columns], names=["key_group", SLOT, *names])
                first_of += piece.num_rows
            # Without rows no piece was cut, but a snapshot needs one for its schema.
            if not first_of:
                yield pa.table([*first, *columns], names=["key_group", SLOT, *names])

        return pieces

    def restore(self, part: pa.Table) -> None:
        part = part.combine_chunks()
        rows = (
            # Behind key_group, weight and behind; @slot is not restored: rows get new numbers.
            pa.Table.from_arrays(part.columns[3:], schema=self._schema).combine_chunks().to_batches()
            if len(self._schema)
            else []
        )
        if not rows:
            return
        weights = numbers_of(part.column("weight"))
        behind = part.column("behind")
        # NULL is on time: no watermark is before the least one.
        late = None if behind.null_count == len(behind) else numbers_of(behind.fill_null(-(2**63)))
        self.add(Batch(rows[0], None if (weights == 1).all() else weights, late))


def _counted(batches: Sequence[Batch]) -> list[np.ndarray]:
    """Return the positions of the rows of each batch among all rows."""
    ends = np.cumsum([batch.num_rows for batch in batches])
    return [np.arange(end - batch.num_rows, end) for end, batch in zip(ends.tolist(), batches, strict=True)]


def _among(slots: np.ndarray, numbers: np.ndarray, batch: Batch) -> tuple[np.ndarray, Batch] | None:
    """Return the rows of a batch whose numbers are among ``slots``; ``None`` when none are. Both lists of
    numbers ascend.
    """
    # Where each number would be in ``slots``; one beyond the end is compared with the last and differs.
    positions = np.searchsorted(slots, numbers)
    matched = (
        np.flatnonzero(slots[np.minimum(positions, slots.size - 1)] == numbers)
        if slots.size
        else positions[:0]
    )
    if matched.size == numbers.size:
        return numbers, batch
    return (numbers[matched], batch.take(matched)) if matched.size else None
