"""EntryIndex: the entries of windows by pane and key slot."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.arrow_views import NO_WORDS
from penstock.engine.kernels.index import pane_cells as cells_kernel
from penstock.engine.kernels.index import word_index as kernel
from penstock.engine.state.groups.recent_entries import RecentEntries
from penstock.engine.state.index.direct_index import DirectIndex
from penstock.engine.state.index.word_index import emptied

_KEY_BITS = 32
_KEY = (1 << _KEY_BITS) - 1
_NEAR_BITS = 2
"""The low bits of an entry's pane are the lowest of its word. Few panes are open at a time and their numbers
are used again, so the words of the first four panes are dense: ``DirectIndex`` has an array of them.
"""
_NEAR = (1 << _NEAR_BITS) - 1
_CELLS_PER_ENTRY = 16
"""Cells of four bytes that an entry may cost: a hash table costs 26 to 102 bytes."""
_CELLS_LEAST = 1 << 20
"""A grid of so many cells, 4 MB, is small enough however few its entries are."""
# Entries of more slots are looked up each: cells, and numbers of recent ones, are stored in 32 bits.
_SLOTS_MOST = (1 << 31) - 1
_NO_CELLS = np.zeros(0, np.int32)


class EntryIndex(DirectIndex):
    """(pane, key slot) pairs to entries, by a grid of panes by key slots. A partial row of bids by auction,
    of which half are new pairs, takes 19 ns; it took 33 with a hash of the pair.

    Where a grid would be sparse it is given up until the index is empty again. Then entries are found by
    their words, which ``keys`` has either way, or by the one that their key had last.
    """

    MAPPED = ("_cells",)

    def __init__(self) -> None:
        self._recent = RecentEntries(_NEAR_BITS)
        super().__init__()

    def _reset(self, bits: int) -> None:
        super()._reset(bits)
        self._cells, self._panes, self._stride = _NO_CELLS, 0, 0
        self._gridded = True

    def entries(
        self, panes: np.ndarray, numbers: np.ndarray | None, key_slots: np.ndarray, key_capacity: int
    ) -> np.ndarray:
        """Return the entry of each row, new pairs getting one. A row is of the pane that its number is the
        position of in ``panes`` (None: all are of the first). Key slots are below ``key_capacity``.
        """
        self.fresh = NO_WORDS
        if self._covers(panes, key_slots.size, key_capacity):
            return self._insert_cells(panes, numbers, key_slots)
        bases = words_of(panes, np.zeros(panes.size, np.int64))
        if self.capacity > _SLOTS_MOST:
            words = key_slots << _NEAR_BITS
            return self.lookup_or_insert(words | (bases if numbers is None else bases[numbers]))
        entries, missing = self._recent.find((bases, numbers), key_slots, key_capacity, self.keys)
        if missing.size:
            self._recent.settle(key_slots_of(missing), self.lookup_or_insert(missing), entries)
        return entries

    def _insert_cells(
        self, panes: np.ndarray, numbers: np.ndarray | None, key_slots: np.ndarray
    ) -> np.ndarray:
        out, fresh = np.empty(key_slots.size, np.int64), np.empty(key_slots.size, np.int64)
        bases, firsts = words_of(panes, np.zeros(panes.size, np.int64)), panes * self._stride
        numbers = NO_WORDS if numbers is None else numbers
        done, state = 0, self._state
        state[kernel.FRESH] = 0
        while (
            done := cells_kernel.insert(
                numbers,
                bases,
                firsts,
                key_slots,
                done,
                _NEAR_BITS,
                self._cells,
                self.keys,
                self._free,
                state,
                out,
                fresh,
            )
        ) < key_slots.size:
            # an index that was emptied has about as many entries again
            self._grow_slots(max(2 * self.capacity, self._slots_last * 5 // 4))
        self.fresh = fresh[: state[kernel.FRESH]]
        return out

    def _covers(self, panes: np.ndarray, rows: int, key_capacity: int) -> bool:
        """Make the grid have a cell for each row, or give it up; return whether there is one."""
        if not self._gridded or not panes.size:
            return self._gridded
        needed = int(panes.max()) + 1
        if needed <= self._panes and key_capacity <= self._stride and self.capacity <= _SLOTS_MOST:
            return True
        stride, count = max(self._stride, key_capacity), max(self._panes, needed)
        most = max(_CELLS_LEAST, _CELLS_PER_ENTRY * (len(self) + rows))
        if stride * count > most or self.capacity > _SLOTS_MOST:
            self._gridded, self._cells = False, _NO_CELLS
            self._hash_all()
            return False
        # numbers of panes grow one by one: room for half as many again
        if self._panes < needed and self._panes:
            count = max(count, min(count * 3 // 2 + 2, most // stride))
        cells = emptied(self._cells, stride * count)
        cells.reshape(count, stride)[: self._panes, : self._stride] = self._cells.reshape(
            self._panes, self._stride
        )
        self._cells, self._panes, self._stride = cells, count, stride
        return True

    def _forget(self, keyed: np.ndarray, rebuild: bool) -> None:
        if self._gridded:
            cells_kernel.forget(keyed, self.keys, self._stride, _NEAR_BITS, _KEY_BITS, self._cells)
        else:
            super()._forget(keyed, rebuild)

    def remove(self, slots: np.ndarray) -> None:
        if not self._gridded:
            self._recent.forget(key_slots_of(self.keys[slots]))
        super().remove(slots)


# A word has the high bits of the pane, 32 bits of the key slot, and the low bits of the pane.
def words_of(panes: np.ndarray, key_slots: np.ndarray) -> np.ndarray:
    """Return the words of entries."""
    return ((panes >> _NEAR_BITS << _KEY_BITS | key_slots) << _NEAR_BITS) | (panes & _NEAR)


def key_slots_of(words: np.ndarray) -> np.ndarray:
    """Return the key slots in the words of entries."""
    return (words >> _NEAR_BITS) & _KEY


def panes_of(words: np.ndarray) -> np.ndarray:
    """Return the panes in the words of entries."""
    return (words >> (_KEY_BITS + _NEAR_BITS) << _NEAR_BITS) | (words & _NEAR)
