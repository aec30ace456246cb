"""SlotChanges: which slots have changed since which snapshot, so that a checkpoint need only hold those."""

from __future__ import annotations

import numpy as np

from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped


class SlotChanges(Mapped):
    """Marks slots with the number of the last snapshot before their change. Nothing is cleared, so a snapshot
    that came to nothing loses no change.

    Before the first snapshot nothing is marked: jobs without checkpoints pay nothing.
    """

    MAPPED = ("_marks",)

    def __init__(self) -> None:
        self._marks = np.zeros(0, np.int64)
        self._snapshots = 0
        self._all_at = 0

    def mark(self, slots: np.ndarray, capacity: int) -> None:
        """Say that slots (all below ``capacity``) have changed, were given or were freed."""
        if self._snapshots and slots.size:
            if capacity > self._marks.size:
                self._marks = grown(self._marks, capacity)
            self._marks[slots] = self._snapshots

    def mark_all(self) -> None:
        """Say that every slot there ever was has changed."""
        self._all_at = self._snapshots

    def seal(self) -> int:
        """Take note of a snapshot; return its number, from 1 on."""
        self._snapshots += 1
        return self._snapshots

    def since(self, snapshot: int) -> np.ndarray | None:
        """Return the slots changed since a snapshot, ascending; ``None`` when all may have."""
        return None if self._all_at >= snapshot else np.flatnonzero(self._marks >= snapshot)
