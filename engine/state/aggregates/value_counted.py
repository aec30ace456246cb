"""CountedPart: a part of accumulators that stands on how often each slot has each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.state.aggregates.value_counts import ValueCounts
from penstock.engine.state.aggregates.value_sets import Change


class CountedPart:
    """Counts values and settles each change; what follows from the counts is the subclass's, and is made
    again from them when they are restored.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._counts = ValueCounts(kind)

    def reserve(self, capacity: int) -> None:
        """Have room for slots below ``capacity``; counts need none."""

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        self.settle(self._counts.add(slots, values, weights))

    def merge(self, into: np.ndarray, other: Any, slots: np.ndarray) -> None:
        self.settle(self._counts.merge(into, other._counts, slots))

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        self.settle(self._counts.add(*self._counts.read(slots, columns)))

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        return self._counts.columns(slots)

    def clear(self, slots: np.ndarray) -> None:
        self._counts.clear(slots)

    def settle(self, change: Change) -> None:
        """Follow a change of the counts, and have what it touched forgotten where nothing is left."""
        self._counts.forget(change.touched)
