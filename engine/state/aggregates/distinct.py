"""DISTINCT aggregates: each value of a slot counts once, among the rows of each FILTER."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import numbers_of
from penstock.engine.kernels.index.slots import add_each
from penstock.engine.state.aggregates.accumulator import Part
from penstock.engine.state.aggregates.sums import CountPart
from penstock.engine.state.aggregates.value_counts import Change, SlotValues
from penstock.engine.state.frozen_arrays import FrozenColumns


class FilteredCounts(SlotValues):
    """(slot, value) pairs to a signed count per filter: each pair is looked up once, whatever the number of
    filters.

    For a filter a pair is present while its count is above 0. ``weights`` are int64 [filter, row], 0 where a
    filter rejects a row.
    """

    def __init__(self, kind: pa.DataType, filters: int) -> None:
        super().__init__(kind, filters)
        self._filters = filters

    def add(self, slots: np.ndarray, values: pa.Array, weights: np.ndarray) -> list[Change]:
        """Add to counts and return the change for each filter. The caller reads its entries, then has the
        touched ones forgotten.
        """
        # Counts before and after, of the touched pairs only: a value may appear under one filter and go under
        # another.
        entries, touched = self._enter(slots, values)
        before = self._counts[touched]
        add_each(entries, weights, self._counts)
        after = self._counts[touched]
        return [Change.of(touched, before[:, k], after[:, k]) for k in range(self._filters)]

    def merge(self, into: np.ndarray, other: FilteredCounts, slots: np.ndarray) -> list[Change]:
        """Add the counts of another's slots to the slots ``into``; returns as ``add``."""
        # Pairs are entered again under the new slots; values are looked up by value, since numbers differ.
        positions, entries = other.entries(slots)
        return self.add(
            into[positions], other.values_of(entries), np.ascontiguousarray(other.counts(entries).T)
        )

    def read(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> tuple[np.ndarray, pa.Array, np.ndarray]:
        """Return what to ``add`` for such a column."""
        # One struct a pair: value, count0, count1, ...
        lists = columns[0]
        pairs = lists.flatten()
        weights = np.stack([numbers_of(pairs.field(f"count{k}")) for k in range(self._filters)])
        return np.repeat(slots, numbers_of(lists.value_lengths())), pairs.field("value"), weights


class Distinct:
    """Adds each value of a slot once to each of its parts, one a filter, however often the value is there.
    ``weights`` are int64 [part, row].
    """

    def __init__(self, kind: pa.DataType, parts: Sequence[Part]) -> None:
        self.parts = tuple(parts)
        self._counts = FilteredCounts(kind, len(self.parts))

    def reserve(self, capacity: int) -> None:
        for part in self.parts:
            part.reserve(capacity)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        self._settle(self._counts.add(slots, values, weights))

    def clear(self, slots: np.ndarray) -> None:
        for part in self.parts:
            part.clear(slots)
        self._counts.clear(slots)

    def merge(self, into: np.ndarray, other: Any, slots: np.ndarray) -> None:
        self._settle(self._counts.merge(into, other._counts, slots))

    def save(self, slots: np.ndarray) -> None:
        """Do nothing: counts save themselves, and the parts follow from them."""

    def freeze(self, count: int) -> FrozenColumns:
        return self._counts.freeze(count)

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        self._settle(self._counts.add(*self._counts.read(slots, columns)))

    def _settle(self, changes: list[Change]) -> None:
        """Apply a change to the parts: add values that appeared, retract those that disappeared. Forget pairs
        whose count is 0.
        """
        counts = self._counts
        for part, change in zip(self.parts, changes, strict=True):
            for entries, sign in ((change.appeared, 1), (change.gone, -1)):
                if entries.size:
                    # COUNT(DISTINCT x) needs no values.
                    values = None if isinstance(part, CountPart) else counts.values_of(entries)
                    part.add(counts.slots_of(entries), values, np.full(entries.size, sign))
        # All changes touched the same entries. Last: the parts read values of the entries.
        counts.forget(changes[0].touched)
