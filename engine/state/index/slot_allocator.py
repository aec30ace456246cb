"""What indexes over keys that stand elsewhere share: the tagged table, its slots and its free list."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.arrow_views import NO_BYTES
from penstock.engine.kernels.index import tagged_index as kernel
from penstock.engine.kernels.index.word_index import FREE, LIVE, NULL
from penstock.engine.state.index.word_index import grown, pays_to_rebuild, slots_of
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.storage.spill_files import zeros_beside

_FIRST_BITS = 6


class TaggedSlots(Mapped):
    """A table of (tag, slot) entries with its slots; owners hold the keys in arrays of ``capacity``
    elements.
    """

    MAPPED = ("table", "tags", "free")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.bits = _FIRST_BITS
        self.table = np.zeros(1 << self.bits, np.int64)
        self.tags = np.zeros(slots_of(self.bits), np.int64)
        self.free = np.zeros(slots_of(self.bits), np.int64)
        self.state = np.zeros(6, np.int64)

    def __len__(self) -> int:
        return int(self.state[LIVE])

    @property
    def capacity(self) -> int:
        """The bound of slots given so far and until the table grows."""
        return self.tags.size

    @property
    def null_slot(self) -> int:
        """The slot of the NULL key, -1 when there is none."""
        return int(self.state[NULL]) - 1

    @property
    def full(self) -> bool:
        """Whether no slot is left to give."""
        return self.state[FREE] == 0 and self.state[1] == self.tags.size

    def grow(self) -> None:
        """Make room for more keys: the table is filled again from itself, keys are not touched."""
        bits = self.bits + (2 if self.bits < 16 else 1)
        table = zeros_beside(self.table, 1 << bits)
        kernel.rebuild(self.table, table, bits, NO_BYTES)
        self.tags = grown(self.tags, slots_of(bits))
        self.free = grown(self.free, slots_of(bits))
        self.table, self.bits = table, bits

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots."""
        state = self.state
        keyed = slots[slots != self.null_slot] if self.null_slot >= 0 else slots
        if keyed.size < slots.size:
            state[NULL] = 0
        if pays_to_rebuild(slots.size, len(self)):
            dead = np.zeros(self.capacity, np.uint8)
            dead[keyed] = 1
            table = zeros_beside(self.table, self.table.size)
            kernel.rebuild(self.table, table, self.bits, dead)
            self.table = table
        else:
            kernel.remove(keyed, self.tags, self.table, self.bits)
        self.free[state[FREE] : state[FREE] + slots.size] = slots[::-1]
        state[FREE] += slots.size
        state[LIVE] -= slots.size

    def live_slots(self) -> np.ndarray:
        """Return the slots of all keys, ascending."""
        slots = (self.table[self.table != 0] & 0xFFFFFFFF) - 1
        if self.null_slot >= 0:
            slots = np.append(slots, self.null_slot)
        live = np.zeros(self.capacity, np.bool_)
        live[slots] = True
        return np.flatnonzero(live)
