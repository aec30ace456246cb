"""DensePaneGroups: groups of slices by words of keys that lie close together, numbered without any index."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.index import pane_cells as kernel

_CELLS_PER_ROW = 8
"""Cells of four bytes that a row may cost. 250,000 bids in 28 slices need 3.8 each."""
_CELLS_LEAST, _CELLS_MOST = 1 << 12, 1 << 22


class DensePaneGroups:
    """Numbers the distinct (slice, word) pairs of rows 0, 1, 2, ... until ``clear``, as ``PaneGroups`` does.

    A pair is a cell of a grid, slices by words from the least on: a row takes 3 ns, where looking its key up
    and numbering it took 9. The grid grows with what comes, while it has few cells for its rows.
    """

    def __init__(self, slice_us: int) -> None:
        self._slice_us = slice_us
        # by cell: the number + 1 of its group, 0 for none
        self._marks = np.zeros(0, np.int32)
        # least and greatest end, and word, of the grid
        self._ends, self._range = (0, -1), (0, -1)
        # of each piece of groups: their words, the ends of their slices, and their cells
        self._pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def number(self, words: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
        """Return the group of each row, int64. ``None``, without a change: the rows are not dense beside the
        groups. ``ends`` has one element where all rows are of one slice.
        """
        if not words.size or not self._cover(words, ends):
            return None
        into, firsts, cells = (np.empty(words.size, np.int64) for _ in range(3))
        first_end, (base, last) = self._ends[0], self._range
        count = kernel.number_dense(
            np.ascontiguousarray(ends),
            words,
            first_end,
            self._slice_us,
            base,
            last - base + 1,
            self._marks,
            self._count,
            into,
            firsts,
            cells,
        )
        if (fresh := count - self._count) > 0:
            rows = firsts[:fresh]
            of_rows = ends[rows] if ends.size > 1 else np.full(fresh, ends[0])
            self._pieces.append((words[rows], of_rows, cells[:fresh].copy()))
            self._count = count
        return into

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the words of all groups, and the ends of their slices."""
        words, ends, _ = zip(*self._pieces, strict=True) if self._pieces else ((), (), ())
        nothing = np.zeros(0, np.int64)
        return np.concatenate([nothing, *words]), np.concatenate([nothing, *ends])

    def clear(self) -> None:
        """Forget all groups."""
        self._unmark()
        self._pieces, self._count = [], 0

    def _cover(self, words: np.ndarray, ends: np.ndarray) -> bool:
        """Make the grid have a cell for each row; return False where it would be too large."""
        lows, highs = (int(words.min()), int(ends.min())), (int(words.max()), int(ends.max()))
        (least, last), (first_end, last_end) = self._range, self._ends
        fits = least <= lows[0] and highs[0] <= last and first_end <= lows[1] and highs[1] <= last_end
        if self._count and fits:
            return True
        if self._count:
            lows = (min(least, lows[0]), min(first_end, lows[1]))
            highs = (max(last, highs[0]), max(last_end, highs[1]))
        width, slices = highs[0] - lows[0] + 1, (highs[1] - lows[1]) // self._slice_us + 1
        most = min(_CELLS_MOST, max(_CELLS_LEAST, _CELLS_PER_ROW * (words.size + self._count)))
        if width * slices > most:
            return False
        # small batches widen the grid again and again: each time by half as many words and slices again
        if self._count:
            width = max(width, min(width * 3 // 2, most // slices))
            slices = max(slices, min(slices * 3 // 2, most // width))
        self._unmark()
        self._range = (lows[0], lows[0] + width - 1)
        self._ends = (lows[1], lows[1] + (slices - 1) * self._slice_us)
        if width * slices > self._marks.size:
            self._marks = np.zeros(width * slices, np.int32)
        self._mark_again(width)
        return True

    def _mark_again(self, width: int) -> None:
        """Mark the cells that groups have in a new grid."""
        pieces, first = self._pieces, 0
        self._pieces = []
        for words, ends, _ in pieces:
            cells = (ends - self._ends[0]) // self._slice_us * width + (words - self._range[0])
            kernel.fill(cells, first, self._marks)
            self._pieces.append((words, ends, cells))
            first += cells.size

    def _unmark(self) -> None:
        for _, _, cells in self._pieces:
            kernel.clear(cells, self._marks)
