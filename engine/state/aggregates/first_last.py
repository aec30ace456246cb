"""BestRow: of each slot's values the first or the last in an order. FIRST_VALUE, LAST_VALUE, MIN_BY,
MAX_BY.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.state.aggregates.slot_order import SlotOrder
from penstock.engine.state.aggregates.value_counted import CountedPart
from penstock.engine.state.aggregates.value_counts import Change
from penstock.engine.state.index.word_index import grown
from penstock.planner.expressions.nodes import Direction


class BestRow(CountedPart):
    """Values are structs: what is asked for, then the keys of the order; ties by the value, NULL least.

    Where nothing is ever retracted a slot keeps its best value only; else all, and they are looked through
    when the best one goes.
    """

    def __init__(self, kind: pa.DataType, ways: Sequence[Direction], last: bool, insert_only: bool) -> None:
        super().__init__(kind)
        self._order = SlotOrder([field.type for field in kind], ways)
        self._last = last
        self._insert_only = insert_only
        self._best = np.zeros(0, np.int64)

    def reserve(self, capacity: int) -> None:
        if capacity > self._best.size:
            self._best = grown(self._best, capacity)

    def clear(self, slots: np.ndarray) -> None:
        self._best[slots] = 0
        super().clear(slots)

    def settle(self, change: Change) -> None:
        counts = self._counts
        gone = counts.slots_of(change.gone)
        lost = np.unique(gone[self._best[gone] == change.gone + 1])
        self._best[lost] = 0
        super().settle(change)
        holders = self._best[np.unique(counts.slots_of(change.appeared))]
        candidates = [change.appeared, holders[holders > 0] - 1]
        if lost.size:
            _, entries = counts.entries(lost)
            candidates.append(entries[counts.counts(entries) > 0])
        self._choose(np.unique(np.concatenate(candidates)))

    def _choose(self, entries: np.ndarray) -> None:
        """Make the best of each slot's candidates its best value."""
        if not entries.size:
            return
        slots = self._counts.slots_of(entries)
        order = self._order.sorted(slots, self._counts.columns_of(entries))
        entries, slots = entries[order], slots[order]
        chosen = np.ones(entries.size, np.bool_)
        differs = slots[1:] != slots[:-1]
        chosen[slice(0, -1) if self._last else slice(1, None)] = differs
        self._best[slots[chosen]] = entries[chosen] + 1
        if self._insert_only:
            self._counts.drop(entries[~chosen])

    def best(self, slots: np.ndarray) -> pa.Array:
        """Return what is asked for, NULL over no values."""
        entries = self._best[slots]
        some = entries > 0
        values = self._counts.columns_of(entries[some] - 1)[0]
        return values if some.all() else values.take(array_of(np.cumsum(some) - some, ~some))
