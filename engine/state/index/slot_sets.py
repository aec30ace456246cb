"""Sets of slots: each slot of a batch once, and how often slots are used by others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.engine.kernels.index import slots as kernel
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped

# A batch more, and they are counted from 1 again.
_BATCHES_MOST = 2**31 - 1
# No run has this number, so that no slot counts as seen.
_NO_RUN = -(2**63)


class DistinctSlots(Mapped):
    """Finds the distinct slots of a batch without sorting."""

    MAPPED = ("_marks",)

    def __init__(self) -> None:
        # By slot: the number of the last batch that had it. Counting up replaces clearing the array.
        self._marks = np.zeros(0, np.int32)
        self._epoch = 0
        # Distinct slots of this batch so far.
        self._seen = 0

    def of(self, slots: np.ndarray, capacity: int) -> np.ndarray:
        """Return each of the slots (all below ``capacity``) once, in the order of their first occurrence."""
        self.begin()
        return self.unseen([slots], capacity, capacity)

    def begin(self) -> None:
        """Begin a batch of several pieces: no slot was seen."""
        if self._epoch == _BATCHES_MOST:
            self._marks[:], self._epoch = 0, 0
        self._epoch += 1
        self._seen = 0

    def unseen(self, pieces: Sequence[np.ndarray], capacity: int, most: int) -> np.ndarray:
        """As ``of``, of several pieces, but only the slots that no earlier piece of the batch had. The batch
        has at most ``most`` distinct ones: once these were seen nothing more is read.
        """
        if capacity > self._marks.size:
            self._marks = grown(self._marks, capacity)
        # There cannot be more distinct slots than rows.
        rows = sum(slots.size for slots in pieces)
        out, count = np.empty(min(rows, most - self._seen), np.int64), 0
        for slots in pieces:
            count = kernel.distinct(slots, self._epoch, self._marks, out, count)
        self._seen += count
        return out[:count]


def number_runs(runs: np.ndarray, slots: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct (run, slot) pairs, runs ascending, slots below ``capacity``; return each pair's
    number and each number's first position.
    """
    into, firsts = np.empty(slots.size, np.int64), np.empty(slots.size, np.int64)
    count = kernel.number_runs(
        runs, slots, np.full(capacity, _NO_RUN), np.empty(capacity, np.int64), into, firsts
    )
    return into, firsts[:count]


class UseCounts(Mapped):
    """How often each slot is used; a slot no use is left of can be freed."""

    MAPPED = ("_uses",)

    def __init__(self) -> None:
        # By slot. What uses slots is less than 2**31 keys: they would take 100 GB.
        self._uses = np.zeros(0, np.int32)

    def retain(self, slots: np.ndarray, capacity: int) -> None:
        """Count a use of each slot (all below ``capacity``) as often as it is named."""
        if capacity > self._uses.size:
            self._uses = grown(self._uses, capacity)
        kernel.retain(slots, self._uses)

    def release(self, slots: np.ndarray) -> np.ndarray:
        """Take a use from each slot as often as it is named; return those no use is left of, each once."""
        unused = np.empty(slots.size, np.int64)
        return unused[: kernel.release(slots, self._uses, unused)]
