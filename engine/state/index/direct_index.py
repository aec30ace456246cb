"""DirectIndex: a WordIndex that finds words of a dense range in an array by value, without a hash."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.engine.kernels.arrow_views import NO_BYTES, NO_WORDS
from penstock.engine.kernels.index import direct_index as direct
from penstock.engine.kernels.index import word_index as kernel
from penstock.engine.state.index.word_index import (
    FIRST_BITS,
    SlotsInSteps,
    WordIndex,
    Words,
    emptied,
    grown,
    pays_to_rebuild,
    slots_of,
)

PLACES_PER_KEY = 16
"""Places of four bytes that a key may cost: a hash table of pairs costs 26 to 102 bytes a key."""
PLACES_LEAST = 4_096
"""A range of so few places, 16 KB, is dense however few its keys are."""
CONVERTED_KEYS = 1 << 20
"""Keys that are moved between hash table and array in one step: 10 ms. An index of more stays what it is."""
OUTLIERS_LEAST = 1_024
"""So many words outside of the range are no reason to give up the array."""
PLACES_PER_ROW = 4
"""Places that a row to come may cost where an index begins with an array: each is cleared first."""
_FIRST_LOOK = 32
"""Keys from which on an index looks whether they are dense, and again after each quarter more."""
# So many words at once are a first batch that is worth a look at its range.
_EXPECTED_LEAST = 1_024
# Slot + 1 must fit into a place, also after the slots have doubled.
_SLOTS_MOST = 2**30
# Pieces in which rows outside of the range are inserted.
_PIECES_MOST = 16
_NO_PLACES = np.zeros(0, np.int32)


class DirectIndex(WordIndex):
    """A WordIndex with an array of ``places`` by value, slot + 1 of each word, while its words are dense: a
    range of ``PLACES_PER_KEY`` times as many values at most.

    It begins as a hash table, unless many words come at once or it is told what to expect. It looks from
    time to time whether its words are dense. Beside an array the hash table has the outliers, words outside
    of the range. With too many of them all words are hashed again. ``fresh`` names new words of the range
    before outliers.
    """

    MAPPED = ("_places",)

    def _reset(self, bits: int) -> None:
        super()._reset(bits)
        self._places, self._base = _NO_PLACES, 0
        # Words in the hash table beside an array.
        self._outliers = 0
        # Of a hash table: the keys it looks at again. Of an array: the outliers it looks at them all with.
        self._look_at = _FIRST_LOOK

    def expect(self, pieces: Sequence[np.ndarray]) -> None:
        """Begin with an array if the index is empty, and the words that come next lie close together.

        For an index that is emptied again and again: most of its rows would come before its first look. Words
        of all pieces, or those of later ones would widen the array, again and again.
        """
        pieces = [words for words in pieces if words.size]
        if len(self) or not pieces:
            return
        first = min(int(words.min()) for words in pieces)
        last = max(int(words.max()) for words in pieces)
        self._expect_range(first, last, sum(words.size for words in pieces))

    def _expect_range(self, first: int, last: int, rows: int) -> None:
        size = last - first + 1
        if size <= PLACES_PER_ROW * rows:
            self._reset(FIRST_BITS)
            self._places, self._base = emptied(_NO_PLACES, size), first
            # Slots that double from 40 on stop the kernel ten times each time the index is emptied.
            if self._slots_last:
                self.keys = emptied(self.keys, max(self.capacity, self._slots_last * 5 // 4))

    def lookup_or_insert(self, words: np.ndarray, valid: np.ndarray = NO_BYTES) -> np.ndarray:
        if words.size >= _EXPECTED_LEAST and not (len(self) or self._places.size):
            self.expect([words])
        if self._places.size == 0 and self._look_at <= len(self) <= CONVERTED_KEYS:
            self._look_at = len(self) * 5 // 4
            self._make_direct(NO_WORDS)
        elif self._places.size and self.capacity > _SLOTS_MOST:
            self._hash_all()
        if not self._places.size:
            return super().lookup_or_insert(words, valid)
        out, fresh = np.empty(words.size, np.int64), np.empty(words.size, np.int64)
        self._state[kernel.FRESH] = 0
        # new words came last: ids that ascend pass the end of the range, and would be looked up twice there
        if words.size >= _EXPECTED_LEAST and self.fresh.size:
            self._widen_to(int(words.max()), words.size)
        self._insert_direct(words, valid, out, fresh)
        if words.size and out.min() < 0:
            rows = np.flatnonzero(out < 0)
            out[rows] = self._insert_outliers(words[rows], fresh)
        self.fresh = fresh[: self._state[kernel.FRESH]]
        return out

    def insert_all(self, pieces: Sequence[Words]) -> SlotsInSteps:
        """As of every WordIndex; words that lie close together get an array."""
        bounds = []
        for words, _ in pieces:
            if words.size:
                bounds.append((int(words.min()), int(words.max())))
            yield
        if bounds and not len(self):
            lows, highs = zip(*bounds, strict=True)
            self._expect_range(min(lows), max(highs), sum(words.size for words, _ in pieces))
        if self._places.size:
            return (yield from self._insert_each(pieces))
        return (yield from super().insert_all(pieces))

    def _insert_direct(
        self, words: np.ndarray, valid: np.ndarray, out: np.ndarray, fresh: np.ndarray
    ) -> None:
        """Write the slots of words, -1 where they are outside of the range."""
        done, state = 0, self._state
        while (
            done := direct.insert(
                words, valid, done, self._places, self._base, self.keys, self._free, state, out, fresh
            )
        ) < words.size:
            self._grow_slots(2 * self.capacity)

    def _insert_outliers(self, words: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """Return the slots of words that are outside of the range; none is NULL."""
        out, rows = np.full(words.size, -1), np.arange(words.size)
        if self._widen(words):
            self._insert_direct(words, NO_BYTES, out, fresh)
            rows = np.flatnonzero(out < 0)
        while rows.size:
            # no more rows than the table has room for, if all of them are new keys
            room = slots_of(self._bits) - self._outliers
            # nor pieces of a few rows: most are known, and fill an almost full table only after hundreds
            if room <= rows.size // _PIECES_MOST:
                self._grow_table()
                continue
            out[rows[:room]] = self._insert_hashed(words[rows[:room]], fresh)
            rows = rows[room:]
        if self._outliers > max(OUTLIERS_LEAST, len(self) // 2) and len(self) <= CONVERTED_KEYS:
            self._hash_all()
        return out

    def _insert_hashed(self, words: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        out, state = np.empty(words.size, np.int64), self._state
        before = int(state[kernel.FRESH])
        self._migrate(words.size)
        done, table = 0, (self._table, self._bits, self._old)
        while (
            done := kernel.insert(words, NO_BYTES, done, *table, self.keys, self._free, state, out, fresh)
        ) < words.size:
            self._grow_slots(2 * self.capacity)
        self._outliers += int(state[kernel.FRESH]) - before
        return out

    def lookup(self, words: np.ndarray, valid: np.ndarray = NO_BYTES) -> np.ndarray:
        if not self._places.size:
            return super().lookup(words, valid)
        out = np.empty(words.size, np.int64)
        direct.find(words, valid, self._places, self._base, self._state, out)
        if self._outliers:
            rows = np.flatnonzero(out < 0)
            out[rows] = super().lookup(words[rows], valid[rows] if valid.size else valid)
        return out

    def _keyed_slots(self) -> np.ndarray:
        """Return the slots of all keys but NULL."""
        live = self.live_slots()
        return live[live != self.null_slot] if self.null_slot >= 0 else live

    def _places_most(self, rows: int) -> int:
        """Return how many places are worth their memory, with so many rows that may be new keys."""
        return max(PLACES_LEAST, PLACES_PER_KEY * len(self), PLACES_PER_ROW * rows)

    def _make_direct(self, others: np.ndarray) -> bool:
        """Give all keys places in a new array that has places for other words too. Return whether they are
        dense enough; if not, nothing changes.
        """
        slots = self._keyed_slots()
        words = self.keys[slots]
        bounds = np.concatenate([words, others])
        if not bounds.size:
            return False
        first, last = int(bounds.min()), int(bounds.max())
        room = self._places_most(others.size) - (last - first + 1)
        if room < 0:
            return False
        # words have come below the range: leave room for more of them
        if self._places.size and first < self._base:
            first = max(first - min(room, last - first + 1), -(2**63))
        self._places, self._base = grown(_NO_PLACES, last - first + 1), first
        direct.fill(words, slots, self._places, first)
        self._table, self._old, self._bits = np.zeros(2 << FIRST_BITS, np.int64), NO_WORDS, FIRST_BITS
        self._outliers = self._look_at = 0
        return True

    def _widen(self, words: np.ndarray) -> bool:
        """Widen the range to words above it, if it is dense then, or to all words. Return whether it did."""
        # a word below the base becomes a large number
        above = words[(words - self._base).view(np.uint64) < self._places_most(words.size)]
        if above.size and self._widen_to(int(above.max()), words.size):
            return True
        # every key is read: again with twice as many outliers
        if words.size + self._outliers <= self._look_at or len(self) > CONVERTED_KEYS:
            return False
        self._look_at = 2 * (self._outliers + words.size)
        return self._make_direct(words)

    def _widen_to(self, last: int, rows: int) -> bool:
        """Widen the range up to a word behind it, if it is dense then. Return whether it did."""
        needed, most = last - self._base + 1, self._places_most(rows)
        if not self._places.size < needed <= most or self._outliers_within(most):
            return False
        # ids that ascend widen it again and again: twice as many places are few steps
        self._places = grown(self._places, min(most, max(needed, 2 * self._places.size)))
        return True

    def _outliers_within(self, most: int) -> bool:
        """Return whether a range of ``most`` places has, or may have, an outlier."""
        if self._outliers > OUTLIERS_LEAST:
            return True
        self._finish_growing()
        pairs = self._table.reshape(-1, 2)
        words = pairs[pairs[:, 1] != 0, 0]
        return bool(((words - self._base).view(np.uint64) < most).any())

    def _hash_all(self) -> None:
        """Move all keys into the hash table."""
        slots = self._keyed_slots()
        bits = FIRST_BITS
        while slots_of(bits) < self.capacity:
            bits += 1
        # the pairs as a table of no order, which is rebuilt in the order of hashes
        pairs_bits = int(slots.size).bit_length()
        pairs = np.zeros(2 << pairs_bits, np.int64)
        pairs[: 2 * slots.size : 2], pairs[1 : 2 * slots.size : 2] = self.keys[slots], slots + 1
        table = np.zeros(2 << bits, np.int64)
        kernel.rebuild(pairs, pairs_bits, table, bits, NO_BYTES)
        self._table, self._old, self._bits = table, NO_WORDS, bits
        self._grow_slots(slots_of(bits))
        self._places, self._base, self._outliers = _NO_PLACES, 0, 0
        self._look_at = 2 * len(self)

    def _forget(self, keyed: np.ndarray, rebuild: bool) -> None:
        if not self._places.size:
            super()._forget(keyed, rebuild)
            return
        words = self.keys[keyed]
        # a word below the base becomes a large number
        inside = (words - self._base).view(np.uint64) < self._places.size
        direct.fill(words[inside], np.full(int(inside.sum()), -1), self._places, self._base)
        outliers = keyed[~inside]
        if outliers.size:
            super()._forget(outliers, pays_to_rebuild(outliers.size, self._outliers))
            self._outliers -= outliers.size
