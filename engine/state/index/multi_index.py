"""MultiIndex: a slot to its row ids. Derived state: its owner links rows again when it restores them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.engine.api.row_pieces import cut
from penstock.engine.kernels.index import multi_index as kernel
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped

_FIRST = 64


class MultiIndex(Mapped):
    """Slots (of a KeyIndex) to row ids (of a RowStore); each row id is in at most one slot's list.
    ``len()`` is the number of linked rows.
    """

    MAPPED = ("_heads", "_counts", "_nexts", "_priors", "_owners")

    def __init__(self) -> None:
        # By slot: the newest row id of its list (-1: empty), and the list's length.
        self._linked = 0
        self._heads = np.full(_FIRST, -1, np.int64)
        self._counts = np.zeros(_FIRST, np.int64)
        # By row id: the next older row and the next newer one of its list, and the slot of the list; -1:
        # none.
        self._nexts, self._priors, self._owners = (np.full(_FIRST, -1, np.int64) for _ in range(3))

    def __len__(self) -> int:
        return self._linked

    def link(self, slots: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Add row ids to the lists of their slots (int64 each); ids that are in a list already are skipped.
        Return the ids that were added, each once.
        """
        fresh = np.empty(ids.size, np.int64)
        if not ids.size:
            return fresh
        # The kernel indexes without checks: slots and ids must fit first.
        self._reserve(int(slots.max()) + 1, int(ids.max()) + 1)
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

    def owners(self, ids: np.ndarray) -> np.ndarray:
        """Return the slots that linked row ids are listed in."""
        return self._owners[ids]

    def counts(self, slots: np.ndarray) -> np.ndarray:
        """Return how many rows each slot has; slot -1 and slots never linked have none."""
        # The index -1 is replaced before it is used, and its count after.
        known = (slots >= 0) & (slots < self._counts.size)
        return np.where(known, self._counts[np.where(known, slots, 0)], 0)

    def expand(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all (position in ``slots``, row id) pairs, by position, a slot's rows in the order they
        were linked. Slots may repeat or be -1.
        """
        count = self._total(slots)
        positions, ids = np.empty(count, np.int64), np.empty(count, np.int64)
        kernel.expand(slots, self._heads, self._counts, self._nexts, positions, ids)
        return positions, ids

    def pairs(self, slots: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield what ``expand`` returns, at most so many pairs at once; nothing may be linked or unlinked
        between two of them.
        """
        if self._total(slots) <= most:
            yield self.expand(slots)
            return
        # Slots are cut by the sum of their rows; a single slot with more pairs than ``most`` is cut inside.
        for first, last in cut(self.counts(slots), slots.size, most):
            positions, ids = self.expand(slots[first:last])
            for start in range(0, positions.size, most):
                yield positions[start : start + most] + first, ids[start : start + most]

    def _total(self, slots: np.ndarray) -> int:
        # A slot may be newer than the arrays: it has an empty list.
        if slots.size and int(slots.max()) >= self._heads.size:
            self._reserve(int(slots.max()) + 1, 0)
        return int(kernel.total(slots, self._counts))

    def _reserve(self, slots: int, ids: int) -> None:
        if slots > self._heads.size:
            size = max(slots, 2 * self._heads.size)
            used = self._heads.size
            self._heads, self._counts = grown(self._heads, size), grown(self._counts, size)
            # New slots have no list; their counts are 0 from ``grown``.
            self._heads[used:] = -1
        if ids > self._nexts.size:
            size = max(ids, 2 * self._nexts.size)
            used = self._nexts.size
            self._nexts, self._priors, self._owners = (
                grown(array, size) for array in (self._nexts, self._priors, self._owners)
            )
            # Only ``owners`` decides whether an id is linked; ``nexts`` and ``priors`` are written when it
            # is.
            self._owners[used:] = -1
