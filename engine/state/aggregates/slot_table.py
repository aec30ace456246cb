"""SlotTable: one int64 row per slot for all parts of accumulators, so that a slot's state is one cache
line and not one per part.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.index import slots as kernel
from penstock.engine.state import mapped_arrays
from penstock.engine.storage.spill_files import SpillFiles, pages_of, zeros_beside

LINE_WORDS = 8


def line_aligned(rows: int, width: int) -> np.ndarray:
    """Return zeros int64[rows, width] whose first row starts a cache line."""
    flat = np.zeros(rows * width + LINE_WORDS, np.int64)
    first = (-flat.ctypes.data // 8) % LINE_WORDS
    return flat[first : first + rows * width].reshape(rows, width)


def padded(width: int) -> int:
    """Return the words of a row that holds ``width``: a power of two up to a line, so that no row lies
    across two; then as few as need be.
    """
    return 1 << max(0, width - 1).bit_length() if width <= LINE_WORDS else width


class SlotTable:
    """``rows`` int64[capacity, width]; rows of zeros are empty. An owner who moves it to disk shares it
    anew then.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows = line_aligned(0, padded(width))

    def reserve(self, capacity: int) -> bool:
        """Have rows for slots below ``capacity``; return whether the table moved for it."""
        if capacity <= len(self.rows):
            return False
        wide = padded(self.width)
        wider = (
            line_aligned(capacity, wide)
            if pages_of(self.rows) is None
            else zeros_beside(self.rows, (capacity, wide))
        )
        wider[: len(self.rows)] = self.rows
        self.rows = wider
        return True

    def in_memory_bytes(self) -> int:
        """Return its bytes when it is large and in memory, else 0."""
        return (
            self.rows.nbytes
            if self.rows.nbytes >= mapped_arrays.LEAST_BYTES and pages_of(self.rows) is None
            else 0
        )

    def move(self, files: SpillFiles) -> None:
        """Lie in a mapped file from now on."""
        self.rows = files.copied(self.rows)

    def gathered(self, slots: np.ndarray) -> np.ndarray:
        """Return the state of slots as columns, int64[width, slots]."""
        out = np.empty((self.width, slots.size), np.int64)
        kernel.gather(slots, self.rows[:, : self.width], out, 0, 1)
        return out

    def gather_half(self, slots: np.ndarray, pairs: np.ndarray, half: int) -> None:
        """Write the state of slots to every second place of ``pairs`` int64[width, 2 * slots], from
        ``half`` (0 or 1) on.
        """
        kernel.gather(slots, self.rows[:, : self.width], pairs, half, 2)

    def clear(self, slots: np.ndarray) -> None:
        """Empty rows."""
        kernel.empty(slots, self.rows)
