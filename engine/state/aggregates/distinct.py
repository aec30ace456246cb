"""Distinct: each value once, whatever the aggregate, among the rows of each of its filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.state.aggregates.accumulator import Part
from penstock.engine.state.aggregates.counts import CountPart
from penstock.engine.state.aggregates.filtered_value_counts import FilteredCounts
from penstock.engine.state.aggregates.value_sets import Change


class Distinct:
    """Gives each of its parts, one a filter, each value of a slot once, however often it is there.
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

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        return self._counts.columns(slots)

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        self._settle(self._counts.add(*self._counts.read(slots, columns)))

    def _settle(self, changes: list[Change]) -> None:
        """Give the parts what appeared and take from them what is gone; pairs nothing is left of are
        forgotten.
        """
        counts = self._counts
        for part, change in zip(self.parts, changes, strict=True):
            for entries, sign in ((change.appeared, 1), (change.gone, -1)):
                if entries.size:
                    values = None if isinstance(part, CountPart) else counts.values_of(entries)
                    part.add(counts.slots_of(entries), values, np.full(entries.size, sign))
        counts.forget(changes[0].touched)
