"""Distinct: each value once, whatever the aggregate."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.state.counted_part import CountedPart
from engine.state.table_part import Part
from engine.state.value_counts import Change


class Distinct(CountedPart):
    """Gives another part each value of a slot once, however often it is there."""

    def __init__(self, kind: pa.DataType, part: Part) -> None:
        super().__init__(kind)
        self.part = part

    def reserve(self, capacity: int) -> None:
        self.part.reserve(capacity)

    def clear(self, slots: np.ndarray) -> None:
        self.part.clear(slots)
        super().clear(slots)

    def settle(self, change: Change) -> None:
        counts = self._counts
        for entries, sign in ((change.appeared, 1), (change.gone, -1)):
            if entries.size:
                self.part.add(counts.slots_of(entries), counts.values_of(entries), np.full(entries.size, sign))
        super().settle(change)
