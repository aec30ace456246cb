"""ValueCounts: how often each slot has each value. What aggregates stand on that need more than totals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import numbers_of
from penstock.engine.state.aggregates.value_sets import Change, SlotValues


class ValueCounts(SlotValues):
    """(slot, value) pairs to signed counts; a pair is present while its count is above 0, and forgotten at
    0.
    """

    def add(self, slots: np.ndarray, values: pa.Array, weights: np.ndarray) -> Change:
        """Add to counts and say what that changed; the caller reads the entries, then has the touched ones
        forgotten.
        """
        entries, touched = self._enter(slots, values)
        before = self._counts[touched]
        np.add.at(self._counts, entries, weights if weights.size else 1)
        return Change.of(touched, before, self._counts[touched])

    def merge(self, into: np.ndarray, other: ValueCounts, slots: np.ndarray) -> Change:
        """Add the counts of another's slots to the slots ``into``; returns as ``add``."""
        positions, entries = other.entries(slots)
        return self.add(into[positions], other.values_of(entries), other.counts(entries))

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        """Return one column: per slot a list of (value, count)."""
        positions, entries = self.entries(slots)
        return [self._lists(slots, entries, positions, {"count": self.counts(entries)})]

    def read(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> tuple[np.ndarray, pa.Array, np.ndarray]:
        """Return what to ``add`` for such a column."""
        lists = columns[0]
        pairs = lists.flatten()
        return (
            np.repeat(slots, numbers_of(lists.value_lengths())),
            pairs.field("value"),
            numbers_of(pairs.field("count")),
        )
