"""Change tracking: what has changed since which snapshot, so that an incremental snapshot stores only that.

SlotChanges tracks slots that may be written again, Arrivals rows that are added and removed in order.
"""

from __future__ import annotations

import sys

import numpy as np

from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped


class SlotChanges(Mapped):
    """Marks slots with the number of the last snapshot before their change. Nothing is cleared, so a failed
    snapshot loses no change.

    Before the first snapshot nothing is marked: jobs without checkpoints have no cost.
    """

    MAPPED = ("_marks",)

    def __init__(self) -> None:
        # By slot: the number of snapshots that there were at its last change.
        # 32 bits: a job takes no two billion snapshots, and all marks are read at each.
        self._marks = np.zeros(0, np.int32)
        self._snapshots = 0
        # The last snapshot before everything changed at once.
        self._all_at = 0

    def mark(self, slots: np.ndarray, capacity: int) -> None:
        """Mark slots (all below ``capacity``) that were changed, allocated or freed."""
        # Without a snapshot nothing can be a base.
        if self._snapshots and slots.size:
            if capacity > self._marks.size:
                self._marks = grown(self._marks, capacity)
            self._marks[slots] = self._snapshots

    def mark_all(self) -> None:
        """Mark every slot: no earlier snapshot can be a base."""
        self._all_at = self._snapshots

    def seal(self) -> int:
        """Register a snapshot; return its number, from 1 on."""
        self._snapshots += 1
        return self._snapshots

    def since(self, snapshot: int, most: int = sys.maxsize) -> np.ndarray | None:
        """Return the slots changed since a snapshot, ascending; ``None`` when they are more than ``most``, or
        when all may have.
        """
        if self._all_at >= snapshot:
            return None
        # Counted first: the slots of millions are 100 MB of new memory, and rows wait.
        changed = self._marks >= snapshot
        return np.flatnonzero(changed) if np.count_nonzero(changed) <= most else None


# Numbers of rows fit 32 bits: they are the SLOT column of snapshots.
_MOST_NUMBERS = 1 << 32
# Snapshots that can still be a base; an older base means a whole snapshot.
_MOST_SNAPSHOTS = 64
# So many removed rows (256 KB) are remembered however few rows are left.
_GONE_LEAST = 1 << 16


class Arrivals:
    """Numbers rows in order of arrival; no number is used twice between two snapshots that may be compared.

    Removed rows are remembered up to the number of rows left, and at least ``_GONE_LEAST`` of them. Beyond
    that the state is written whole.
    """

    def __init__(self) -> None:
        # The next number; all numbers below were assigned.
        self._next = 0
        self._snapshots = 0
        self._all_at = 0
        # By snapshot that can still be a base: the next number at its time.
        self._begun: dict[int, int] = {}
        # (snapshots there were, removed numbers), oldest first.
        self._gone: list[tuple[int, np.ndarray]] = []

    def take(self, count: int) -> np.ndarray:
        """Return numbers for ``count`` new rows, int64."""
        self._next += count
        return np.arange(self._next - count, self._next)

    def full(self, count: int) -> bool:
        """Whether ``count`` more rows would exhaust the numbers. The caller then resets, and numbers its rows
        again.
        """
        return self._next + count > _MOST_NUMBERS

    def release(self, numbers: np.ndarray, left: int) -> None:
        """Note removed rows, and how many are ``left``."""
        # No row left: numbers may start again, the next snapshot is whole and small.
        if not left:
            self.reset()
        elif self._snapshots and numbers.size:
            self._gone.append((self._snapshots, numbers.astype(np.uint32)))
            # Forgetting the oldest removals makes every base at or before them unusable.
            while sum(gone.size for _, gone in self._gone) > max(left, _GONE_LEAST):
                self._all_at = max(self._all_at, self._gone.pop(0)[0])

    def reset(self) -> None:
        """Start at 0 again: rows that are still stored need new numbers."""
        self._next, self._all_at = 0, self._snapshots
        self._begun, self._gone = {}, []

    def seal(self) -> int:
        """Register a snapshot; return its number, from 1 on."""
        self._snapshots += 1
        self._begun[self._snapshots] = self._next
        if len(self._begun) > _MOST_SNAPSHOTS:
            self._begun.pop(min(self._begun))
        # Removals before the oldest possible base are needed by none.
        self._gone = [(snapshot, gone) for snapshot, gone in self._gone if snapshot >= min(self._begun)]
        return self._snapshots

    def since(self, snapshot: int, most: int = sys.maxsize) -> np.ndarray | None:
        """Return the numbers of rows added or removed since a snapshot, ascending; ``None`` when they are
        more than ``most``, or when all may have.
        """
        if snapshot not in self._begun or self._all_at >= snapshot:
            return None
        gone = [numbers.astype(np.int64) for at, numbers in self._gone if at >= snapshot]
        # Rows that came and went since are among them: the reader finds them touched, but not live.
        count = self._next - self._begun[snapshot]
        if max(count, *(numbers.size for numbers in gone), 0) > most:
            return None
        came = np.arange(self._begun[snapshot], self._next)
        # those that came ascend already: only the earlier ones among the others are sorted
        before = [numbers[numbers < self._begun[snapshot]] for numbers in gone]
        changed = np.concatenate([np.unique(np.concatenate(before)), came]) if gone else came
        return changed if changed.size <= most else None
