"""Accumulators of one aggregate (``Part``) and the table of int64 columns by slot that most of them use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.kernels.index import slots as kernel
from penstock.engine.state import mapped_arrays
from penstock.engine.state.frozen_arrays import Columns, FrozenColumns, FrozenViews
from penstock.engine.state.index.word_index import emptied, grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.storage.reserved_memory import GROWN_LEAST_BYTES
from penstock.engine.storage.spill_files import SpillFiles, pages_of


class Part(Protocol):
    """State by slot of one aggregated column. ``weights`` of length 0 mean +1 each; values passed to ``add``
    are never NULL.
    """

    def reserve(self, capacity: int) -> None:
        """Grow to slots below ``capacity``; new slots are empty."""

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        """Add weighted values to slots (which may repeat)."""

    def clear(self, slots: np.ndarray) -> None:
        """Empty these slots."""

    def merge(self, into: np.ndarray, other: Any, slots: np.ndarray) -> None:
        """Add the state of another part's ``slots`` to the slots ``into``."""

    def save(self, slots: np.ndarray) -> None:
        """Save slots for the snapshots that are not copied yet, before they change."""

    def freeze(self, count: int) -> FrozenColumns:
        """Return the state of slots below ``count`` as it is now, as columns for a checkpoint."""

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        """Set the state of empty slots from such columns."""


class TablePart(Mapped):
    """A part whose whole state is ``width`` int64 columns per slot, zero being empty: ``table`` int64
    [capacity, width].

    The columns are the part's own until ``share`` replaces them by columns of a wider table, which its owner
    reserves and clears. Results are read from a ``state``: int64 [width, n], the columns of n slots.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._own = SlotTable(width)
        # Of the part's own table; the owner of a wider one has views of that.
        self._views = FrozenViews()
        # Until ``share``: a part alone, as under DISTINCT, uses its own table.
        self.table: np.ndarray = self._own.rows[:, :width]

    def share(self, table: np.ndarray) -> None:
        """Use these columns of a wider table, which its owner reserves and clears."""
        self.table = table

    def reserve(self, capacity: int) -> None:
        # A larger table is a new array: the view must follow it.
        if self._own.reserve(capacity):
            self.table = self._own.rows[:, : self.width]

    def copy_table(self) -> None:
        """Replace the part's own table by a copy: a snapshot may still read the other."""
        self._own.copy_rows()
        self.table = self._own.rows[:, : self.width]

    def spillable_bytes(self) -> int:
        return super().spillable_bytes() + self._own.in_memory_bytes()

    def spill(self, files: SpillFiles) -> None:
        super().spill(files)
        if self._own.in_memory_bytes():
            self._own.move(files)
            self.table = self._own.rows[:, : self.width]

    def clear(self, slots: np.ndarray) -> None:
        self.table[slots] = 0

    def state(self, slots: np.ndarray) -> np.ndarray:
        """Return the state of slots."""
        # (width, slots), each column contiguous.
        return np.ascontiguousarray(self.table[slots].T)

    def save(self, slots: np.ndarray) -> None:
        self._views.save(slots)

    def freeze(self, count: int) -> FrozenColumns:
        frozen = self._views.freeze([self.table], count)

        def of(slots: np.ndarray | None) -> Columns:
            (table,) = frozen.copies(slots)
            return lambda at: self.arrays(np.ascontiguousarray(table[at].T))

        return of

    def arrays(self, state: np.ndarray) -> list[pa.Array]:
        """Return a state as columns for a checkpoint, which share its memory."""
        return [array_of(column) for column in state]

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        for k, column in enumerate(columns):
            self.table[slots, k] = numbers_of(column)


class FloatPart(TablePart):
    """A part whose table is of float64."""

    def arrays(self, state: np.ndarray) -> list[pa.Array]:
        # The table is int64 throughout; floats are the same bits read differently.
        return [array_of(column) for column in state.view(np.float64)]

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        super().restore(slots, [column.view(pa.int64()) for column in columns])


# Words of eight bytes in a cache line of 64.
LINE_WORDS = 8


def line_aligned(rows: int, width: int) -> np.ndarray:
    """Return zeros int64[rows, width] whose first row starts a cache line."""
    flat = np.zeros(rows * width + LINE_WORDS, np.int64)
    # Words to skip until the next multiple of 64 bytes.
    first = (-flat.ctypes.data // 8) % LINE_WORDS
    return flat[first : first + rows * width].reshape(rows, width)


def padded(width: int) -> int:
    """Return the words reserved for a row of ``width`` words. Up to a cache line that is a power of two, so
    that no row crosses a line; beyond it, ``width``.
    """
    return 1 << max(0, width - 1).bit_length() if width <= LINE_WORDS else width


def gathered(rows: np.ndarray, width: int, slots: np.ndarray) -> np.ndarray:
    """Return the first ``width`` words of rows as columns, int64[width, slots]."""
    # Columns are contiguous in the result: results are computed column by column.
    out = np.empty((width, slots.size), np.int64)
    kernel.gather(slots, rows[:, :width], out, 0, 1)
    return out


class SlotTable:
    """``rows`` int64[capacity, width]; rows of zeros are empty. An owner who moves it to disk shares it
    anew then.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows = line_aligned(0, padded(width))

    def reserve(self, capacity: int) -> bool:
        """Reserve rows for slots below ``capacity``; return whether the table moved for it."""
        if capacity <= len(self.rows):
            return False
        # New rows are zeros, which is empty.
        wide = padded(self.width)
        if pages_of(self.rows) is None and 8 * capacity * wide < GROWN_LEAST_BYTES:
            wider = line_aligned(capacity, wide)
            wider[: len(self.rows)] = self.rows
            self.rows = wider
        else:
            # large arrays begin a page, so a cache line too
            self.rows = grown(self.rows, capacity)
        return True

    def copy_rows(self) -> None:
        """Replace the rows by a copy: a snapshot may still read the others."""
        rows = emptied(self.rows, len(self.rows))
        rows[:] = self.rows
        self.rows = rows

    def in_memory_bytes(self) -> int:
        """Return its bytes when it is large and in memory, else 0."""
        # Small arrays stay in memory: see ``LEAST_BYTES``.
        return (
            self.rows.nbytes
            if self.rows.nbytes >= mapped_arrays.LEAST_BYTES and pages_of(self.rows) is None
            else 0
        )

    def move(self, files: SpillFiles) -> None:
        """Move into a mapped file; the table grows there from now on."""
        self.rows = files.copied(self.rows)

    def gathered(self, slots: np.ndarray) -> np.ndarray:
        """Return the state of slots as columns, int64[width, slots]."""
        return gathered(self.rows, self.width, slots)

    def gather_half(self, slots: np.ndarray, pairs: np.ndarray, half: int) -> None:
        """Write the state of slots to every second column of ``pairs`` int64[width, 2 * slots], from ``half``
        (0 or 1) on.
        """
        kernel.gather(slots, self.rows[:, : self.width], pairs, half, 2)

    def clear(self, slots: np.ndarray) -> None:
        """Empty rows."""
        kernel.empty(slots, self.rows)
