"""MultiIndex: a slot to its row ids. Derived state: its owner links rows again when it restores them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from penstock.engine.api.row_pieces import cut
from penstock.engine.kernels.arrow_views import NO_WORDS
from penstock.engine.kernels.index import multi_index as kernel
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped

_FIRST = 64
# So many pieces of pairs are made at once and cut afterwards: 8 MB.
_WHOLE_PIECES = 8


class _RowLists(Mapped):
    """Lists of row ids by slot, and how they are read."""

    MAPPED: ClassVar[tuple[str, ...]] = ("_heads", "_counts", "_nexts")

    def __init__(self) -> None:
        self._linked = 0
        # By slot: one more than the newest row id of its list (0: empty), and the list's length. By row id:
        # one more than the next older one of its list.
        self._heads, self._counts, self._nexts = (np.zeros(_FIRST, np.int64) for _ in range(3))

    def __len__(self) -> int:
        return self._linked

    def counts(self, slots: np.ndarray) -> np.ndarray:
        """Return how many rows each slot has; slot -1 and slots never linked have none."""
        # The index -1 is replaced before it is used, and its count after.
        known = (slots >= 0) & (slots < self._counts.size)
        return np.where(known, self._counts[np.where(known, slots, 0)], 0)

    def expand(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all (position in ``slots``, row id) pairs, by position, a slot's rows in the order they
        were linked. Slots may repeat or be -1.
        """
        # a table whose rows are still to come has no arrays yet
        count = self._total(slots) if self._linked else 0
        positions, ids = np.empty(count, np.int64), np.empty(count, np.int64)
        if count:
            kernel.expand(slots, self._heads, self._counts, self._nexts, positions, ids)
        return positions, ids

    def pairs(self, slots: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield what ``expand`` returns, at most so many pairs at once; nothing may be linked or unlinked
        between two of them.
        """
        # As a whole where that is little memory: to count each slot's rows takes as long as to list them.
        if not self._linked or self._total(slots) <= _WHOLE_PIECES * most:
            positions, ids = self.expand(slots)
            for start in range(0, max(1, positions.size), most):
                yield positions[start : start + most], ids[start : start + most]
            return
        # Slots are cut by the sum of their rows; a single slot with more pairs than ``most`` is cut inside.
        for first, last in cut(self.counts(slots), slots.size, most):
            positions, ids = self.expand(slots[first:last])
            for start in range(0, positions.size, most):
                yield positions[start : start + most] + first, ids[start : start + most]

    def _total(self, slots: np.ndarray) -> int:
        # A slot may be newer than the arrays: it has an empty list.
        if slots.size and int(slots.max()) >= self._counts.size:
            self._reserve_slots(int(slots.max()) + 1)
        return int(kernel.total(slots, self._counts))

    def _reserve_slots(self, slots: int) -> None:
        if slots > self._heads.size:
            size = max(slots, 2 * self._heads.size)
            self._heads, self._counts = grown(self._heads, size), grown(self._counts, size)


class MultiIndex(_RowLists):
    """Slots (of a KeyIndex) to row ids (of a RowStore); each row id is in at most one slot's list.
    ``len()`` is the number of linked rows.
    """

    MAPPED = ("_priors", "_owners")

    def __init__(self) -> None:
        super().__init__()
        # By row id: one more than the next newer one of its list, and than the slot of the list.
        self._priors, self._owners = np.zeros(_FIRST, np.int64), np.zeros(_FIRST, np.int64)

    def link(self, slots: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Add row ids to the lists of their slots (int64 each); ids that are in a list already are skipped.
        Return the ids that were added, each once.
        """
        fresh = np.empty(ids.size, np.int64)
        if not ids.size:
            return fresh
        # The kernel indexes without checks: slots and ids must fit first.
        self._reserve_slots(int(slots.max()) + 1)
        self._reserve_ids(int(ids.max()) + 1)
        linked = kernel.link(
            slots, ids, self._heads, self._counts, self._nexts, self._priors, self._owners, fresh
        )
        self._linked += linked
        return fresh[:linked]

    def unlink(self, ids: np.ndarray) -> np.ndarray:
        """Take distinct linked row ids out of their lists; return the slots whose lists became empty, each
        once.
        """
        emptied = np.empty(ids.size, np.int64)
        count = kernel.unlink(
            ids, self._heads, self._counts, self._nexts, self._priors, self._owners, emptied
        )
        self._linked -= ids.size
        return emptied[:count]

    @property
    def owners_by_id(self) -> np.ndarray:
        """One more than the slot that each row id is listed in; it is another array after ``link``."""
        return self._owners

    def owners(self, ids: np.ndarray) -> np.ndarray:
        """Return the slots that linked row ids are listed in."""
        return self._owners[ids] - 1

    def _reserve_ids(self, ids: int) -> None:
        if ids > self._nexts.size:
            size = max(ids, 2 * self._nexts.size)
            self._nexts, self._priors, self._owners = (
                grown(array, size) for array in (self._nexts, self._priors, self._owners)
            )


class AppendOnlyMultiIndex(_RowLists):
    """A MultiIndex whose row ids are linked once and never unlinked. While the row of each slot has the
    slot's number, as of a primary key that is loaded first, it keeps nothing. While no slot has two rows it
    keeps one word a slot: eight bytes for each row instead of 40.
    """

    def __init__(self) -> None:
        super().__init__()
        # Until a list gets its second row.
        self._counts = self._nexts = NO_WORDS
        # Until a row has another number than its slot.
        self._heads = NO_WORDS

    def link(self, slots: np.ndarray, ids: np.ndarray) -> None:
        """Add row ids that are in no list, ascending and each once, to the lists of their slots (int64
        each).
        """
        if not ids.size:
            return
        first, self._linked = self._linked, self._linked + ids.size
        if not self._heads.size:
            # ids ascend: these follow the ones before without a gap
            if ids[0] == first and ids[-1] == self._linked - 1 and np.array_equal(slots, ids):
                return
            self._heads = grown(self._heads, max(_FIRST, first))
            self._heads[:first] = np.arange(1, first + 1)
        self._reserve_slots(int(slots.max()) + 1)
        done = 0
        if not self._counts.size:
            done = kernel.link_first(slots, ids, 0, self._heads)
            if done == ids.size:
                return
            # Lists of one row until here.
            self._counts = grown(self._counts, self._heads.size)
            np.not_equal(self._heads, 0, out=self._counts, casting="unsafe")
        if int(ids.max()) >= self._nexts.size:
            size = max(int(ids.max()) + 1, 2 * self._nexts.size)
            self._nexts = grown(self._nexts, size)
        kernel.link_new(slots, ids, done, self._heads, self._counts, self._nexts)

    def counts(self, slots: np.ndarray) -> np.ndarray:
        """As of every MultiIndex."""
        if self._counts.size:
            return super().counts(slots)
        if not self._heads.size:
            return self._is_row(slots).astype(np.int64)
        known = (slots >= 0) & (slots < self._heads.size)
        return (known & (self._heads[np.where(known, slots, 0)] != 0)).astype(np.int64)

    def expand(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of every MultiIndex."""
        if self._counts.size or not self._linked:
            return super().expand(slots)
        if not self._heads.size:
            known = self._is_row(slots)
            if known.all():
                return np.arange(slots.size), slots
            at = np.flatnonzero(known)
            return at, slots[at]
        positions, ids = np.empty(slots.size, np.int64), np.empty(slots.size, np.int64)
        count = kernel.expand_first(slots, self._heads, positions, ids)
        return positions[:count], ids[:count]

    def _is_row(self, slots: np.ndarray) -> np.ndarray:
        return (slots >= 0) & (slots < self._linked)

    def _total(self, slots: np.ndarray) -> int:
        # one row a slot at most
        return super()._total(slots) if self._counts.size else slots.size

    def _reserve_slots(self, slots: int) -> None:
        if slots > self._heads.size:
            size = max(slots, 2 * self._heads.size)
            self._heads = grown(self._heads, size)
            if self._counts.size:
                self._counts = grown(self._counts, size)
