"""RecentEntries: of each key the entry it was last added to."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.arrow_views import NO_WORDS
from penstock.engine.kernels.index import window_entries as kernel
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped


class RecentEntries(Mapped):
    """Finds the entries of rows by the slots of their keys. Most rows of a key are of the slice that the row
    of the key before was in: they cost two reads of an array instead of a hash.

    Derived state: what is not found is looked up elsewhere. Entries that are removed must be forgotten.
    """

    MAPPED = ("_recent",)

    def __init__(self, shift: int) -> None:
        # how far the key slot is shifted in an entry's word
        self._shift = shift
        # By key slot: one more than the entry.
        self._recent = np.zeros(0, np.int32)

    def find(
        self,
        panes: tuple[np.ndarray, np.ndarray | None],
        key_slots: np.ndarray,
        capacity: int,
        words: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the entry of each row, and the words to look up for ``settle``, which comes next.

        ``panes``: the words of key 0 in some panes, and the pane of each row (None: all in the first).
        ``words``: the word of each entry.
        """
        if capacity > self._recent.size:
            self._recent = grown(self._recent, capacity)
        bases, numbers = panes
        out, missing = np.empty(key_slots.size, np.int64), np.empty(key_slots.size, np.int64)
        count = kernel.find_recent(
            NO_WORDS if numbers is None else numbers,
            bases,
            key_slots,
            self._shift,
            self._recent,
            words,
            out,
            missing,
        )
        return out, missing[:count]

    def settle(self, key_slots: np.ndarray, entries: np.ndarray, out: np.ndarray) -> None:
        """Write the entries of the missing words to the rows that ``find`` returned. ``key_slots``:
        those of the words.
        """
        kernel.settle(key_slots, entries, self._recent, out)

    def forget(self, key_slots: np.ndarray) -> None:
        """Forget the entries of keys."""
        self._recent[key_slots[key_slots < self._recent.size]] = 0
