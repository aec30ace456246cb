"""WordIndex: int64 words to dense slots, the fastest index and the base of the others; and how their arrays
grow.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.arrow_views import NO_BYTES
from penstock.engine.kernels.index import word_index as kernel
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.storage.spill_files import zeros_beside

# 64 pairs for up to 40 keys.
_FIRST_BITS = 6


def slots_of(bits: int) -> int:
    """Return how many keys a table of ``2**bits`` entries may have: five eighths of that, so that probes are
    short.
    """
    return (5 << bits) >> 3


def slots_in_use(allocated: int, free: np.ndarray) -> np.ndarray:
    """Return the slots below ``allocated`` that are not ``free``, ascending. The table is not read: a
    checkpoint asks for them while rows wait.
    """
    if not free.size:
        return np.arange(allocated)
    live = np.ones(allocated, np.bool_)
    live[free] = False
    return np.flatnonzero(live)


def pays_to_rebuild(removed: int, live: int) -> bool:
    """Return whether one pass over the whole table is cheaper than removing keys one by one."""
    return removed * 4 > live


class WordIndex(Mapped):
    """Words to slots, NULL being a key like others. ``keys`` int64 has each slot's word; ``len()`` is the
    number of live keys.

    ``fresh`` are the slots that the last ``lookup_or_insert`` assigned to new keys.
    """

    MAPPED = ("_table", "keys", "_free")

    def __init__(self) -> None:
        self._reset(_FIRST_BITS)

    def _reset(self, bits: int) -> None:
        self._bits = bits
        # (word, slot + 1) pairs side by side; slot + 1 is 0 in an empty pair.
        self._table = np.zeros(2 << bits, np.int64)
        self.keys = np.zeros(slots_of(bits), np.int64)
        self._free = np.zeros(slots_of(bits), np.int64)
        # LIVE, ALLOCATED, FREE, NULL, FRESH: see ``engine/kernels/index/word_index.py``.
        self._state = np.zeros(5, np.int64)
        self.fresh = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return int(self._state[kernel.LIVE])

    @property
    def capacity(self) -> int:
        """The bound of the slots assigned until the index grows."""
        return self.keys.size

    @property
    def null_slot(self) -> int:
        """The slot of the NULL key, -1 when there is none."""
        return int(self._state[kernel.NULL]) - 1

    def lookup_or_insert(self, words: np.ndarray, valid: np.ndarray = NO_BYTES) -> np.ndarray:
        """Return the slot of each word (int64), new keys getting a free one; ``valid`` bytes mark which
        are not NULL (none: all).
        """
        out, fresh = np.empty(words.size, np.int64), np.empty(words.size, np.int64)
        self._state[kernel.FRESH] = 0
        done = 0
        while (
            done := kernel.insert(
                words, valid, done, self._table, self._bits, self.keys, self._free, self._state, out, fresh
            )
        ) < words.size:
            self._grow()
        self.fresh = fresh[: self._state[kernel.FRESH]]
        return out

    def lookup(self, words: np.ndarray, valid: np.ndarray = NO_BYTES) -> np.ndarray:
        """Return the slot of each word, -1 where it is no key."""
        out = np.empty(words.size, np.int64)
        kernel.find(words, valid, self._table, self._bits, self._state, out)
        return out

    def _grow(self) -> None:
        # Small tables grow fourfold, large ones double: few rebuilds, little unused memory.
        bits = self._bits + (2 if self._bits < 16 else 1)
        table = zeros_beside(self._table, 2 << bits)
        kernel.rebuild(self._table, self._bits, table, bits, NO_BYTES)
        self.keys = grown(self.keys, slots_of(bits))
        self._free = grown(self._free, slots_of(bits))
        self._table, self._bits = table, bits

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots and forget their keys."""
        # Nothing left: a small table again. Capacity shrinks.
        if slots.size == len(self):
            self._reset(_FIRST_BITS)
            return
        state = self._state
        keyed = slots[slots != self.null_slot] if self.null_slot >= 0 else slots
        if keyed.size < slots.size:
            state[kernel.NULL] = 0
        if pays_to_rebuild(slots.size, len(self)):
            dead = np.zeros(self.keys.size, np.uint8)
            dead[keyed] = 1
            table = zeros_beside(self._table, self._table.size)
            kernel.rebuild(self._table, self._bits, table, self._bits, dead)
            self._table = table
        else:
            kernel.remove(self.keys[keyed], self._table, self._bits, state)
        # Reversed: the stack returns the slots in the order they were freed in.
        self._free[state[kernel.FREE] : state[kernel.FREE] + slots.size] = slots[::-1]
        state[kernel.FREE] += slots.size
        state[kernel.LIVE] -= slots.size

    def live_slots(self) -> np.ndarray:
        """Return the slots of all keys, ascending."""
        state = self._state
        return slots_in_use(int(state[kernel.ALLOCATED]), self._free[: state[kernel.FREE]])


def grown(array: np.ndarray, size: int) -> np.ndarray:
    """Return a copy of an array with ``size`` first elements, the new ones zero. A spilled array is copied
    into a mapped file too.
    """
    wider = zeros_beside(array, (size, *array.shape[1:]))
    wider[: len(array)] = array
    return wider
