"""PaneGroups: the groups of a few batches, numbered without a hash table of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.index import slots as kernel
from penstock.engine.state.groups.dense_pane_groups import DensePaneGroups
from penstock.engine.state.index.key_index import KeyIndex

_CELLS_MAX = 1 << 22
"""Cells reserved at most, 32 MB: beyond them rows are too sparse for their groups to have several rows."""
_KEYS_MAX = 1 << 14
"""More keys than these are forgotten when the groups are cleared: they no longer fit the nearer cache."""


class PaneGroups:
    """Numbers the distinct (slice, key) pairs of rows 0, 1, 2, ... until ``clear``. A slice is named by its
    end, a multiple of ``slice_us`` beside the others.

    Keys that are one column of words close together are numbered by ``DensePaneGroups``. Of others a pair is
    a cell of a grid, slices by slots of keys: a row costs one hash lookup and one array access. Keys stay in
    their index over ``clear``, for most come again. Nothing here is state at a barrier.
    """

    def __init__(self, key_types: Sequence[pa.DataType], slice_us: int = 1) -> None:
        self._slice_us = slice_us
        self._index = KeyIndex(key_types)
        self._key_type = key_types[0] if key_types else pa.null()
        has_words = len(key_types) == 1 and (
            col.is_word(self._key_type) or pa.types.is_integer(self._key_type)
        )
        self._dense = DensePaneGroups(slice_us) if has_words else None
        # by cell: the number + 1 of its group, 0 for none; a row of the grid has ``_stride`` cells
        self._marks = np.zeros(0, np.int64)
        self._stride = 0
        # the end of the first slice of the grid, unknown until rows come
        self._first_end: int | None = None
        self._cells: list[np.ndarray] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count + (0 if self._dense is None else len(self._dense))

    def number(
        self, key_columns: Sequence[pa.Array], num_rows: int, ends: np.ndarray | None = None
    ) -> np.ndarray | None:
        """Return the group of each row, int64. ``None``: the slices do not fit the grid; after ``clear`` they
        may. Without ``ends`` all rows are of one slice; so are they with one.
        """
        if self._dense is not None and not self._count:
            if not key_columns[0].null_count:
                one_slice = np.zeros(1, np.int64)
                into = self._dense.number(col.words(key_columns[0]), one_slice if ends is None else ends)
                if into is not None:
                    return into
            if len(self._dense):
                # the groups so far, in their order: they keep their numbers
                words, dense_ends = self._dense.groups()
                if self._number_keyed([self._key_column(words)], words.size, dense_ends) is None:
                    return None
                self._dense.clear()
        return self._number_keyed(key_columns, num_rows, ends)

    def _number_keyed(
        self, key_columns: Sequence[pa.Array], num_rows: int, ends: np.ndarray | None
    ) -> np.ndarray | None:
        """Number rows by the slots of their keys."""
        # does nothing while there are keys: one that begins again would hash the first of them
        self._index.expect([key_columns])
        slots = self._index.lookup_or_insert(key_columns, num_rows)
        if ends is None or not ends.size:
            panes, slices = np.zeros(num_rows, np.int64), 1
        else:
            lowest, highest = int(ends.min()), int(ends.max())
            first = lowest if self._first_end is None else self._first_end
            slices = (highest - first) // self._slice_us + 1
            if lowest < first or slices * self._index.capacity > _CELLS_MAX:
                # without a group nothing else forgets the keys: they would grow with the stream
                if not self._count:
                    self._forget_keys()
                return None
            self._first_end = first
            # one number where all rows are of one slice
            panes = np.ascontiguousarray(np.broadcast_to((ends - first) // self._slice_us, num_rows))
        self._reserve(slices)
        into, cells = np.empty(num_rows, np.int64), np.empty(num_rows, np.int64)
        count = kernel.number_cells(panes, slots, self._stride, self._marks, self._count, into, cells)
        if count > self._count:
            self._cells.append(cells[: count - self._count])
            self._count = count
        return into

    def groups(self) -> tuple[list[pa.Array], np.ndarray]:
        """Return the key columns of all groups, and the ends of their slices (int64)."""
        if self._dense is not None and len(self._dense):
            words, ends = self._dense.groups()
            return [self._key_column(words)], ends
        panes, slots = np.divmod(self._all_cells(), max(self._stride, 1))
        return self._index.keys(slots), (self._first_end or 0) + panes * self._slice_us

    def clear(self) -> None:
        """Forget all groups."""
        if self._dense is not None:
            self._dense.clear()
        self._marks[self._all_cells()] = 0
        self._cells, self._count, self._first_end = [], 0, None
        if len(self._index) > _KEYS_MAX:
            self._forget_keys()

    def _key_column(self, words: np.ndarray) -> pa.Array:
        return col.array_of_words(words, col.NO_BYTES, self._key_type)

    def _forget_keys(self) -> None:
        """Begin a new index and grid; there are no groups, so the marks are zeros and can be used again."""
        self._index.remove(self._index.live_slots())
        self._stride = 0

    def _all_cells(self) -> np.ndarray:
        # the empty array makes it work for no groups
        return np.concatenate([np.zeros(0, np.int64), *self._cells])

    def _reserve(self, slices: int) -> None:
        """Make the grid as large as the keys and slices; groups keep their numbers."""
        stride = self._index.capacity
        if stride == self._stride and slices * stride <= self._marks.size:
            return
        if not self._count and slices * stride <= self._marks.size:
            self._stride = stride
            return
        panes, slots = np.divmod(self._all_cells(), max(self._stride, 1))
        cells = panes * stride + slots
        # twice the slices that are needed now, so that the grid seldom moves
        self._marks = np.zeros(2 * max(slices, int(panes.max(initial=0)) + 1) * stride, np.int64)
        self._marks[cells] = np.arange(1, self._count + 1)
        self._stride, self._cells = stride, [cells]
