"""Tagged indexes: strings and rows of words to dense slots, by a hash table whose entries include a tag of
the hash.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.arrow_views import NO_BYTES, NO_WORDS
from penstock.engine.kernels.index import tagged_index as kernel
from penstock.engine.kernels.index.word_index import ALLOCATED, FREE, LIVE, NULL, ORIGIN, PASSED
from penstock.engine.state.frozen_arrays import FrozenViews
from penstock.engine.state.index import word_index
from penstock.engine.state.index.word_index import (
    at_least,
    emptied,
    grown,
    pays_to_rebuild,
    slots_in_use,
    slots_of,
)
from penstock.engine.state.mapped_arrays import Mapped

# 64 entries for up to 40 keys.
_FIRST_BITS = 6
# Slots that rows were found at last: half a megabyte, which stays in the nearer cache.
_RECENT_PLACES = 1 << 16
# Fewer rows at once are not worth such an array.
_ROWS_LEAST = 1_024
# Where fewer than one row in eight is found so, the next calls do without.
_FOUND_LEAST, _CALLS_WITHOUT = 8, 15


class TaggedSlots(Mapped):
    """A hash table of (tag, slot) entries, and its slots. Owners store the keys in arrays of ``capacity``
    elements, by slot.
    """

    MAPPED = ("table", "old", "free")

    def __init__(self) -> None:
        self._slots_last = 0
        self._begin()

    def reset(self) -> None:
        """Forget everything."""
        self._slots_last = self.allocated
        self._begin()

    def _begin(self) -> None:
        self.bits = _FIRST_BITS
        self.table = np.zeros(1 << self.bits, np.int64)
        # The table before, while the index grows: entries that were not migrated yet.
        self.old = NO_WORDS
        # A stack of freed slots, as long as it was ever needed.
        self.free = NO_WORDS
        # LIVE, ALLOCATED ..: see ``engine/kernels/index/tagged_index.py``.
        self.state = np.zeros(kernel.STATE_WORDS, np.int64)

    def __len__(self) -> int:
        return int(self.state[LIVE])

    @property
    def capacity(self) -> int:
        """The bound of the slots assigned until the table grows."""
        return slots_of(self.bits)

    @property
    def null_slot(self) -> int:
        """The slot of the NULL key, -1 when there is none."""
        return int(self.state[NULL]) - 1

    @property
    def full(self) -> bool:
        """Whether no slot is left to assign."""
        # No freed slot, and none that was never used.
        return self.state[FREE] == 0 and self.allocated == self.capacity

    def grow(self) -> None:
        """Reserve slots for more keys. Keys are not read: a table is made from its own entries, a large one
        while it is used.
        """
        self._finish_growing()
        # small tables grow fourfold, large ones double: few rebuilds, little unused memory
        bits = self.bits + (2 if self.bits < word_index.GRADUAL_BITS else 1)
        # an index that was emptied needs about as many slots again
        while bits < word_index.GRADUAL_BITS and slots_of(bits) < self._slots_last:
            bits += 1
        table = emptied(self.table, 1 << bits)
        if self.bits < word_index.GRADUAL_BITS:
            kernel.rebuild(self.table, table, bits, NO_BYTES)
        else:
            self.old = self.table
            self.state[[ORIGIN, PASSED]] = 0
        self.table, self.bits = table, bits

    def migrate(self, rows: int) -> None:
        """Move some entries of the table before, ahead of so many rows that may be new keys."""
        if not self.old.size:
            return
        passed = int(self.state[PASSED])
        places = max(word_index.MIGRATED_LEAST, word_index.MIGRATED_PER_ROW * rows)
        if kernel.migrate(self.old, self.table, self.bits, self.state, places):
            self.old = NO_WORDS
        else:
            word_index.release_passed(self.old, self.state, passed)

    def _finish_growing(self) -> None:
        """Move all that is left."""
        self.migrate(self.old.size)

    def remove(self, slots: np.ndarray, tags_of: Callable[[np.ndarray], np.ndarray]) -> None:
        """Free distinct live slots; ``tags_of`` returns the tags of the keys of slots."""
        state = self.state
        # The NULL key has a slot, but no entry in the table.
        keyed = slots[slots != self.null_slot] if self.null_slot >= 0 else slots
        if keyed.size < slots.size:
            state[NULL] = 0
        # Removing one by one probes for each; beyond a quarter of the keys one pass over the table is
        # cheaper.
        if pays_to_rebuild(slots.size, len(self)):
            self._finish_growing()
            dead = np.zeros(self.capacity, np.uint8)
            dead[keyed] = 1
            table = emptied(self.table, self.table.size)
            kernel.rebuild(self.table, table, self.bits, dead)
            self.table = table
        else:
            kernel.remove(keyed, tags_of(keyed), self.table, self.bits, self.old, state)
        # Reversed: the stack returns the slots in the order they were freed in.
        free = int(state[FREE]) + slots.size
        self.free = at_least(self.free, free)
        self.free[state[FREE] : free] = slots[::-1]
        state[FREE] = free
        state[LIVE] -= slots.size

    @property
    def allocated(self) -> int:
        """The bound of the slots assigned so far."""
        return int(self.state[ALLOCATED])

    def free_slots(self) -> np.ndarray:
        """Return the slots below ``allocated`` that no key has, a view."""
        return self.free[: self.state[FREE]]

    def live_slots(self) -> np.ndarray:
        """Return the slots of all keys, ascending."""
        return slots_in_use(self.allocated, self.free_slots())


class RowIndex(Mapped):
    """Rows of ``width`` int64 words to slots. ``keys`` int64[capacity, width] has each slot's row.

    Rows of keys that came not long ago are found without a hash, while enough rows are.
    """

    MAPPED = ("keys",)

    def __init__(self, width: int) -> None:
        self.width = width
        self._slots = TaggedSlots()
        self.keys = np.zeros((self._slots.capacity, width), np.int64)
        # see ``insert_rows``; none until many rows come at once
        self._recent = NO_WORDS
        # Calls until it is tried again whether rows are found so.
        self._calls_without = 0

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def capacity(self) -> int:
        """The bound of the slots assigned until the index grows."""
        return self._slots.capacity

    def lookup_or_insert(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the slot of each row (int64), new ones getting a free one, and the positions of the rows
        that were new.
        """
        out = self._run(rows, True)
        # the kernel marks a new row by -2 - slot, so that one pass returns slots and what was new
        fresh = np.flatnonzero(out < 0)
        out[fresh] = -2 - out[fresh]
        return out, fresh

    def lookup(self, rows: np.ndarray) -> np.ndarray:
        """Return the slot of each row, -1 where it is no key."""
        return self._run(rows, False)

    def _run(self, rows: np.ndarray, insert: bool) -> np.ndarray:
        out, recent = np.empty(len(rows), np.int64), self._recent_for(len(rows))
        done, self._slots.state[kernel.FOUND] = 0, 0
        while True:
            s = self._slots
            if insert:
                s.migrate(len(rows) - done)
            done = kernel.insert_rows(
                rows, done, s.table, s.bits, s.old, self.keys, s.free, s.state, recent, insert, out
            )
            if done == len(rows):
                if recent.size and s.state[kernel.FOUND] < len(rows) // _FOUND_LEAST:
                    self._calls_without = _CALLS_WITHOUT
                return out
            # the kernel stops when no slot is left and continues at row ``done``
            s.grow()
            self.keys = grown(self.keys, s.capacity)

    def _recent_for(self, rows: int) -> np.ndarray:
        """Return the slots found last, for a call with so many rows; empty where it does not pay."""
        if rows < _ROWS_LEAST:
            return NO_WORDS
        if self._calls_without:
            self._calls_without -= 1
            return NO_WORDS
        if not self._recent.size:
            self._recent = np.zeros(_RECENT_PLACES, np.int64)
        return self._recent

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots and forget their rows."""
        # Nothing left: small arrays again.
        if slots.size == len(self):
            self._slots.reset()
            self.keys = np.zeros((self._slots.capacity, self.width), np.int64)
            self._recent = NO_WORDS
        else:
            if self._calls_without:
                # not in use: forgetting one by one what windows remove took 5 % of q8
                self._recent = NO_WORDS
            elif self._recent.size:
                kernel.forget_recent(slots, self.keys, self._recent)
            self._slots.remove(slots, self._tags_of)

    def _tags_of(self, slots: np.ndarray) -> np.ndarray:
        tags = np.empty(slots.size, np.int64)
        kernel.tag_rows(slots, self.keys, tags)
        return tags

    @property
    def allocated(self) -> int:
        """The bound of the slots assigned so far."""
        return self._slots.allocated

    def free_slots(self) -> np.ndarray:
        """Return the slots below ``allocated`` that no key has, a view."""
        return self._slots.free_slots()

    def live_slots(self) -> np.ndarray:
        """Return the slots of all rows, ascending."""
        return self._slots.live_slots()


# Of the arena, in bytes.
_FIRST_BYTES = 1024


class StringIndex(Mapped):
    """One string column's values to slots, NULL being a key like others."""

    MAPPED = ("arena", "spans")

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._slots = TaggedSlots()
        self._views = FrozenViews()
        self._begin()

    def _reset(self) -> None:
        self._slots.reset()
        self._begin()

    def _begin(self) -> None:
        # The bytes of all strings, one after another, those of removed ones among them.
        self.arena = np.zeros(_FIRST_BYTES, np.uint8)
        # (slots, 2): start in the arena and length in bytes.
        self.spans = np.zeros((self._slots.capacity, 2), np.int64)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def capacity(self) -> int:
        """The bound of the slots assigned until the index grows."""
        return self._slots.capacity

    def lookup_or_insert(self, column: pa.Array) -> np.ndarray:
        """Return the slot of each string (int64), new ones getting a free one."""
        return self._run(column, True)

    def lookup(self, column: pa.Array) -> np.ndarray:
        """Return the slot of each string, -1 where it is no key."""
        return self._run(column, False)

    def _run(self, column: pa.Array, insert: bool) -> np.ndarray:
        offsets, data = col.string_parts(column)
        valid = col.validity(column)
        out = np.empty(len(column), np.int64)
        done = 0
        while True:
            s = self._slots
            if insert:
                s.migrate(out.size - done)
            done = kernel.insert_strings(
                offsets,
                data,
                valid,
                done,
                s.table,
                s.bits,
                s.old,
                self.arena,
                self.spans,
                s.free,
                s.state,
                insert,
                out,
            )
            if done == out.size:
                return out
            # It stops where slots or the arena ran out, before it has changed anything for that row.
            self._reserve(int(offsets[done + 1] - offsets[done]))

    def _reserve(self, length: int) -> None:
        s = self._slots
        if s.full:
            s.grow()
            self.spans = grown(self.spans, s.capacity)
        used = int(s.state[kernel.USED])
        if used + length > self.arena.size:
            # more than half of the arena is freed strings: compact it before growing it
            if s.state[kernel.GARBAGE] * 2 > used:
                self._compact()
            if int(s.state[kernel.USED]) + length > self.arena.size:
                self.arena = grown(self.arena, max(self.arena.size * 2, used + length))

    def _compact(self) -> None:
        live = self._slots.live_slots()
        offsets, data = _gather(self.spans[live], self.arena)
        # New arrays: a snapshot may still read the others. Pages of the arena that hold nothing cost nothing.
        self.arena, self.spans = emptied(self.arena, self.arena.size), emptied(self.spans, len(self.spans))
        self.arena[: data.size] = data
        self.spans[live, 0], self.spans[live, 1] = offsets[:-1], np.diff(offsets)
        self._slots.state[kernel.USED] = data.size
        self._slots.state[kernel.GARBAGE] = 0

    def widths(self, slots: np.ndarray) -> np.ndarray:
        """Return how many bytes the strings of slots are."""
        return self.spans[slots, 1]

    def freeze(self) -> Callable[[np.ndarray | None], Callable[[np.ndarray], pa.Array]]:
        """Return the strings of slots as they are now, to be copied later. Bytes in the arena never change:
        only where they are is copied.
        """
        arena, null = self.arena, self._slots.null_slot
        frozen = self._views.freeze([self.spans], self.allocated)

        def of(slots: np.ndarray | None) -> Callable[[np.ndarray], pa.Array]:
            (spans,) = frozen.copies(slots)
            return lambda at: self._strings(spans[at], arena, at if slots is None else slots[at], null)

        return of

    def keys(self, slots: np.ndarray) -> pa.Array:
        """Return the strings of slots."""
        return self._strings(self.spans[slots], self.arena, slots, self._slots.null_slot)

    def _strings(self, spans: np.ndarray, arena: np.ndarray, slots: np.ndarray, null: int) -> pa.Array:
        offsets, data = _gather(spans, arena)
        valid = (slots != null).view(np.uint8) if null >= 0 else col.NO_BYTES
        return col.array_of_strings(offsets, data, valid, self._kind)

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots and forget their strings."""
        self._views.save(slots)
        if slots.size == len(self):
            self._reset()
            return
        # Their bytes stay in the arena until it is compacted.
        self._slots.state[kernel.GARBAGE] += self.spans[slots, 1].sum()
        self._slots.remove(slots, self._tags_of)

    def _tags_of(self, slots: np.ndarray) -> np.ndarray:
        tags = np.empty(slots.size, np.int64)
        kernel.tag_strings(slots, self.spans, self.arena, tags)
        return tags

    @property
    def allocated(self) -> int:
        """The bound of the slots assigned so far."""
        return self._slots.allocated

    def free_slots(self) -> np.ndarray:
        """Return the slots below ``allocated`` that no key has, a view."""
        return self._slots.free_slots()

    def live_slots(self) -> np.ndarray:
        """Return the slots of all strings, ascending."""
        return self._slots.live_slots()


def _gather(spans: np.ndarray, arena: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and bytes of the strings at (start, length) pairs of an arena."""
    starts, lengths = np.ascontiguousarray(spans.T)
    offsets = np.zeros(len(spans) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    kernel.gather_strings(starts, lengths, arena, data)
    return offsets, data
