"""WordIndex: int64 words to dense slots, the fastest index and the base of the others; and how their arrays
grow.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import ClassVar, Protocol

import numpy as np

from penstock.engine.kernels.arrow_views import NO_BYTES, NO_WORDS
from penstock.engine.kernels.index import partitioned_build as build
from penstock.engine.kernels.index import word_index as kernel
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.storage.reserved_memory import extend_array, release_zeros, reserve_zeros
from penstock.engine.storage.spill_files import pages_of, zeros_beside

# 64 pairs for up to 40 keys.
FIRST_BITS = 6
GRADUAL_BITS = 16
"""From so many places on (2 to the power) a table grows while it is used. A rebuild takes a millisecond
there, and half a second at ten million keys.
"""
MIGRATED_PER_ROW = 4
"""Places migrated for each row. Until its last pair is migrated, the table before gets new keys of a quarter
of its places at most: it is never filled by more than seven eighths. With six places for each row a step
wrote to 3 pages more of two tables.

More places are passed than new keys come. So the last run, which may grow beyond the place that migration
began at, only covers places that were passed, even if all new keys have one home. A pair in a place behind
them would be migrated while its word is still looked up in the table before.
"""
MIGRATED_LEAST = 4_096
"""Places migrated in a step of few rows: 20 microseconds."""
PARTITIONED_LEAST = 1 << 16
"""A table of fewer words stays in the cache without partitions."""
_PARTITION_PLACES_BITS = 15
"""Of places of one partition: 512 KB, half of a core's cache."""
_PARTITION_BITS_MOST = 12
"""More partitions written to at once would not stay in the cache themselves."""
_PAIRS_PER_STEP = 1 << 18
"""Words inserted in a step: 5 ms."""
# Places of a page of 2 MB: a step before may have passed some of them.
_RELEASED_AGAIN = 1 << 18

Words = tuple[np.ndarray, np.ndarray]
"""Words and the bytes that mark which are not NULL (none: all)."""
SlotsInSteps = Generator[None, None, np.ndarray]
"""Work in steps, each of some milliseconds, that returns slots."""


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


class AssignedSlots(Protocol):
    """The slots that an index has assigned."""

    @property
    def allocated(self) -> int:
        """The bound of the slots assigned so far."""

    def free_slots(self) -> np.ndarray:
        """Return the slots below ``allocated`` that no key has, a view."""


def slots_at_barrier(index: AssignedSlots) -> Callable[[np.ndarray | None], np.ndarray]:
    """Return what returns, later and in any thread, those of ascending slots that are live now; all of them
    for ``None``.
    """
    allocated, free = index.allocated, index.free_slots().copy()

    def live(slots: np.ndarray | None) -> np.ndarray:
        if slots is None:
            return slots_in_use(allocated, free)
        # a slot may have been tracked while there were more of them
        slots = slots[slots < allocated]
        if not free.size:
            return slots
        is_free = np.zeros(allocated, np.bool_)
        is_free[free] = True
        return slots[~is_free[slots]]

    return live


def pays_to_rebuild(removed: int, live: int) -> bool:
    """Return whether one pass over the whole table is cheaper than removing keys one by one."""
    return removed * 4 > live


class WordIndex(Mapped):
    """Words to slots, NULL being a key like others. ``keys`` int64 has each slot's word; ``len()`` is the
    number of live keys.

    ``fresh`` are the slots that the last ``lookup_or_insert`` assigned to new keys.
    """

    MAPPED: ClassVar[tuple[str, ...]] = ("_table", "_old", "keys", "_free")

    def __init__(self) -> None:
        # the slots of an index that was emptied: about as many are needed again
        self._slots_last = 0
        self._reset(FIRST_BITS)

    def _reset(self, bits: int) -> None:
        self._bits = bits
        # (word, slot + 1) pairs side by side; slot + 1 is 0 in an empty pair.
        self._table = np.zeros(2 << bits, np.int64)
        # The table before, while the index grows: pairs that were not migrated yet.
        self._old = NO_WORDS
        self.keys = np.zeros(slots_of(bits), np.int64)
        # A stack of freed slots, as long as it was ever needed.
        self._free = NO_WORDS
        # LIVE, ALLOCATED ..: see ``engine/kernels/index/word_index.py``.
        self._state = np.zeros(kernel.STATE_WORDS, np.int64)
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
        self._migrate(words.size)
        done = 0
        while (
            done := kernel.insert(
                words,
                valid,
                done,
                self._table,
                self._bits,
                self._old,
                self.keys,
                self._free,
                self._state,
                out,
                fresh,
            )
        ) < words.size:
            self._grow()
            self._migrate(words.size - done)
        self.fresh = fresh[: self._state[kernel.FRESH]]
        return out

    def insert_all(self, pieces: Sequence[Words]) -> SlotsInSteps:
        """Look up or insert the words of many pieces, which are all known; return the slot of each. An empty
        index is built several times as fast as by one piece after another.

        Nothing may be asked of the index before the last step.
        """
        count = sum(words.size for words, _ in pieces)
        if self.allocated == 0 and count >= PARTITIONED_LEAST and not any(valid.size for _, valid in pieces):
            slots = yield from self._insert_partitioned([words for words, _ in pieces], count)
            if slots is not None:
                return slots
        return (yield from self._insert_each(pieces))

    def _insert_each(self, pieces: Sequence[Words]) -> SlotsInSteps:
        slots, done = np.empty(sum(words.size for words, _ in pieces), np.int64), 0
        for words, valid in pieces:
            slots[done : done + words.size] = self.lookup_or_insert(words, valid)
            done += words.size
            yield
        return slots

    def _insert_partitioned(
        self, pieces: Sequence[np.ndarray], count: int
    ) -> Generator[None, None, np.ndarray | None]:
        """Build the table of all words. Return None where many words repeat, which the first partition shows:
        most slots would be free, for a key's slot is its first row.
        """
        bits = FIRST_BITS
        while slots_of(bits) < count:
            bits += 1
        partition_bits = min(_PARTITION_BITS_MOST, max(1, bits - _PARTITION_PLACES_BITS))
        counts = np.zeros(1 << partition_bits, np.int64)
        for words in pieces:
            build.count_partitions(words, partition_bits, counts)
            yield
        first = int(counts[0])
        pairs, keys = np.empty(2 * count, np.int64), emptied(self.keys, slots_of(bits))
        slots, free = np.empty(count, np.int64), np.empty(count, np.int64)
        cursors, row = np.cumsum(counts) - counts, 0
        for words in pieces:
            build.scatter(words, row, partition_bits, cursors, pairs, keys)
            slots[row : row + words.size] = np.arange(row, row + words.size)
            row += words.size
            yield
        # between two steps the task may spill the index: it stays what it is until the last one
        table, state = emptied(self._table, 2 << bits), self._state.copy()
        build.insert_pairs(pairs, 0, first, table, bits, state, free, slots)
        if 8 * int(state[kernel.LIVE]) < 7 * first:
            return None
        for start in range(first, count, _PAIRS_PER_STEP):
            yield
            end = min(start + _PAIRS_PER_STEP, count)
            build.insert_pairs(pairs, start, end, table, bits, state, free, slots)
        self._table, self._bits, self.keys, self._state = table, bits, keys, state
        self._free = free[: state[kernel.FREE]].copy()
        return slots

    def lookup(self, words: np.ndarray, valid: np.ndarray = NO_BYTES) -> np.ndarray:
        """Return the slot of each word, -1 where it is no key."""
        out = np.empty(words.size, np.int64)
        kernel.find(words, valid, self._table, self._bits, self._old, self._state, out)
        return out

    def _grow(self) -> None:
        self._grow_table()
        self._grow_slots(slots_of(self._bits))

    def _grow_table(self) -> None:
        self._finish_growing()
        # Small tables grow fourfold, large ones double: few rebuilds, little unused memory.
        bits = self._bits + (2 if self._bits < GRADUAL_BITS else 1)
        while bits < GRADUAL_BITS and slots_of(bits) < self._slots_last:
            bits += 1
        table = emptied(self._table, 2 << bits)
        if self._bits < GRADUAL_BITS:
            kernel.rebuild(self._table, self._bits, table, bits, NO_BYTES)
        else:
            self._old = self._table
            self._state[[kernel.ORIGIN, kernel.PASSED]] = 0
        self._table, self._bits = table, bits

    def _grow_slots(self, capacity: int) -> None:
        self.keys = grown(self.keys, capacity)

    def _migrate(self, rows: int) -> None:
        """Move some pairs of the table before, ahead of so many rows that may be new keys."""
        if not self._old.size:
            return
        passed, places = int(self._state[kernel.PASSED]), max(MIGRATED_LEAST, MIGRATED_PER_ROW * rows)
        if kernel.migrate(self._old, self._table, self._bits, self._state, places):
            self._old = NO_WORDS
        else:
            release_passed(self._old.reshape(-1, 2), self._state, passed)

    def _finish_growing(self) -> None:
        """Move all that is left."""
        self._migrate(self._old.size)

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots and forget their keys."""
        # Nothing left: a small table again. Capacity shrinks.
        if slots.size == len(self):
            self._slots_last = self.allocated
            self._reset(FIRST_BITS)
            return
        state = self._state
        keyed = slots[slots != self.null_slot] if self.null_slot >= 0 else slots
        if keyed.size < slots.size:
            state[kernel.NULL] = 0
        self._forget(keyed, pays_to_rebuild(slots.size, len(self)))
        # Reversed: the stack returns the slots in the order they were freed in.
        free = int(state[kernel.FREE]) + slots.size
        self._free = at_least(self._free, free)
        self._free[state[kernel.FREE] : free] = slots[::-1]
        state[kernel.FREE] = free
        state[kernel.LIVE] -= slots.size

    def _forget(self, keyed: np.ndarray, rebuild: bool) -> None:
        """Take the words of slots out of the table, with one pass over all of it or one by one."""
        if rebuild:
            self._finish_growing()
            dead = np.zeros(self.keys.size, np.uint8)
            dead[keyed] = 1
            table = emptied(self._table, self._table.size)
            kernel.rebuild(self._table, self._bits, table, self._bits, dead)
            self._table = table
        else:
            kernel.remove(self.keys[keyed], self._table, self._bits, self._old, self._state)

    @property
    def allocated(self) -> int:
        """The bound of the slots assigned so far."""
        return int(self._state[kernel.ALLOCATED])

    def free_slots(self) -> np.ndarray:
        """Return the slots below ``allocated`` that no key has, a view."""
        return self._free[: self._state[kernel.FREE]]

    def live_slots(self) -> np.ndarray:
        """Return the slots of all keys, ascending."""
        return slots_in_use(self.allocated, self.free_slots())


def grown(array: np.ndarray, size: int) -> np.ndarray:
    """Return an array with ``size`` first elements, the new ones zero: a large one where it is, another one
    copied. A spilled array is copied into a mapped file too. The given array must not be used any more.
    """
    if (wider := extend_array(array, size)) is not None:
        return wider
    if (pages := pages_of(array)) is not None:
        return pages.files.copied(array, size)
    wider = emptied(array, size, has_grown=True)
    wider[: len(array)] = array
    return wider


def at_least(array: np.ndarray, size: int) -> np.ndarray:
    """Return an array with ``size`` first elements or more. One that is too short becomes twice as long: an
    array made anew at each call would cost as much as all that was ever in it.
    """
    return array if array.size >= size else grown(array, max(size, 2 * array.size))


def release_passed(old: np.ndarray, state: np.ndarray, passed: int) -> None:
    """Return memory of a table that is migrated to the system, behind the first ``passed`` places, which were
    released before: half of what the new table takes in this step. ``old``: a first element for each place.

    New keys may lie in the first places again, where the last run grows beyond the first place. They are
    fewer than a quarter of the places that were passed, which is left out.
    """
    origin, end = int(state[kernel.ORIGIN]), int(state[kernel.PASSED])
    first = max(passed - _RELEASED_AGAIN, (end >> 2) + 1)
    release_zeros(old, origin + first, min(origin + end, len(old)))


def emptied(array: np.ndarray, size: int, *, has_grown: bool = False) -> np.ndarray:
    """Return zeros to use in the place of an array, with ``size`` first elements: in a mapped file where the
    array is, and able to grow where it is when they are many.
    """
    shape = (size, *array.shape[1:])
    reserved = None
    if pages_of(array) is None:
        reserved = reserve_zeros(shape, array.dtype, has_grown=has_grown)
    return zeros_beside(array, shape) if reserved is None else reserved
