"""RowIndex: rows of int64 words to dense slots."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.index import tagged_index as kernel
from penstock.engine.state.index.slot_allocator import TaggedSlots
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped


class RowIndex(Mapped):
    """Rows of ``width`` int64 words to slots. ``keys`` int64[capacity, width] holds each slot's row."""

    MAPPED = ("keys",)

    def __init__(self, width: int) -> None:
        self.width = width
        self._slots = TaggedSlots()
        self.keys = np.zeros((self._slots.capacity, width), np.int64)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def capacity(self) -> int:
        """The bound of slots given so far and until the index grows."""
        return self._slots.capacity

    def lookup_or_insert(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the slot of each row (int64), new ones getting a free one, and the positions of the rows
        that were new.
        """
        out = self._run(rows, True)
        fresh = np.flatnonzero(out < 0)
        out[fresh] = -2 - out[fresh]
        return out, fresh

    def lookup(self, rows: np.ndarray) -> np.ndarray:
        """Return the slot of each row, -1 where it is no key."""
        return self._run(rows, False)

    def _run(self, rows: np.ndarray, give: bool) -> np.ndarray:
        out = np.empty(len(rows), np.int64)
        done = 0
        while True:
            s = self._slots
            done = kernel.insert_rows(
                rows, done, s.table, s.bits, self.keys, s.tags, s.free, s.state, give, out
            )
            if done == len(rows):
                return out
            s.grow()
            self.keys = grown(self.keys, s.capacity)

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots and forget their rows."""
        if slots.size == len(self):
            self._slots.reset()
            self.keys = np.zeros((self._slots.capacity, self.width), np.int64)
        else:
            self._slots.remove(slots)

    def live_slots(self) -> np.ndarray:
        """Return the slots of all rows, ascending."""
        return self._slots.live_slots()
