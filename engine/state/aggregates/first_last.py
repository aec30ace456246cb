"""BestRow: the first or last value of each slot in an order, for FIRST_VALUE, LAST_VALUE, MIN_BY and MAX_BY.
SlotOrder sorts values within slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.types import NULL
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.aggregates.value_counts import Change, CountedPart
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.rows.total_order import RowOrder
from penstock.planner.expressions.nodes import Column, Direction, SortKey


class SlotOrder:
    """Sorts columns of values (the last ones are the keys, sorted by ``directions``) within their slots; ties
    by all columns, NULL first.
    """

    def __init__(self, types: Sequence[pa.DataType], directions: Sequence[Direction]) -> None:
        # Fixed-width values sort as words, without Arrow.
        self._plain = not any(
            col.is_bytes(kind) or pa.types.is_nested(kind) or pa.types.is_null(kind) for kind in types
        )
        self._directions = list(directions)
        fields = [pa.field(f"c{i}", kind) for i, kind in enumerate([pa.int64(), *types])]
        # Column 0 is the slot, then the values, the keys last.
        first = len(fields) - len(directions)
        keys = [
            SortKey(Column(NULL, True, index=first + i), direction.descending, direction.nulls_first)
            for i, direction in enumerate(directions)
        ]
        # Without a key for it a nested value would tie by its text, whose order is not that of its values.
        keys += [
            SortKey(Column(NULL, True, index=i))
            for i, kind in enumerate(types[: len(types) - len(directions)], 1)
            if _is_nested_order(kind)
        ]
        self._schema = pa.schema(fields)
        self._order = RowOrder([SortKey(Column(NULL, True, index=0)), *keys], self._schema, "UTC")

    def sorted(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return the positions of the rows in order."""
        if self._plain:
            keys = columns[len(columns) - len(self._directions) :]
            major = [
                # Keys first, then all columns as ties, in ascending order with NULL first.
                *zip(keys, self._directions, strict=True),
                *((column, Direction()) for column in columns),
            ]
            words = [part for column, direction in major for part in _words(column, direction)]
            # lexsort's last key decides first: the slot, then the words in reverse.
            return np.lexsort((*words[::-1], slots))
        return self._order.sorted(
            pa.RecordBatch.from_arrays([array_of(slots), *columns], schema=self._schema)
        )


def _is_nested_order(kind: pa.DataType) -> bool:
    """Return whether values are arrays or rows that have an order: without maps in them, which go by their
    texts.
    """
    return pa.types.is_nested(kind) and "map<" not in str(kind)


def _words(column: pa.Array, direction: Direction) -> list[np.ndarray]:
    """Integers that sort as a fixed-width column does, the first deciding."""
    words = list(col.order_words(column).T)
    if direction.descending:
        # The complement reverses the order.
        words = [~word for word in words]
    if not column.null_count:
        return words
    valid = col.validity(column) != 0
    # Whether it is NULL decides before the words; those of NULL are made equal.
    return [valid if direction.nulls_first else ~valid, *(np.where(valid, word, 0) for word in words)]


class BestRow(CountedPart):
    """The first or last value by an order. Values are structs: the result's value, then the keys of the
    order. Ties are decided by the value, NULL least.

    Under inserts only, a slot stores its best value. Under retraction it stores all values, and scans them
    when the best one is retracted.
    """

    def __init__(
        self, kind: pa.DataType, directions: Sequence[Direction], last: bool, insert_only: bool
    ) -> None:
        super().__init__(kind)
        self._order = SlotOrder([field.type for field in kind], directions)
        self._last = last
        self._insert_only = insert_only
        # By slot: the entry of the best value plus 1, 0 for none.
        self._best = np.zeros(0, np.int64)

    def reserve(self, capacity: int) -> None:
        if capacity > self._best.size:
            self._best = grown(self._best, capacity)

    def clear(self, slots: np.ndarray) -> None:
        self._best[slots] = 0
        super().clear(slots)

    def settle(self, change: Change) -> None:
        counts = self._counts
        # Slots whose best value was retracted; before the entries are forgotten and reused.
        gone = counts.slots_of(change.gone)
        lost = np.unique(gone[self._best[gone] == change.gone + 1])
        self._best[lost] = 0
        super().settle(change)
        # Under inserts a new value competes with the best so far.
        best_entries = self._best[np.unique(counts.slots_of(change.appeared))]
        candidates = [change.appeared, best_entries[best_entries > 0] - 1]
        # Without its best value a slot is scanned: all values it still has are candidates.
        if lost.size:
            _, entries = counts.entries(lost)
            candidates.append(entries[counts.counts(entries) > 0])
        self._choose(np.unique(np.concatenate(candidates)))

    def _choose(self, entries: np.ndarray) -> None:
        """Make the best of each slot's candidates its best value."""
        if not entries.size:
            return
        slots = self._counts.slots_of(entries)
        # Slot by slot, each in the order of its values.
        order = self._order.sorted(slots, self._counts.columns_of(entries))
        entries, slots = entries[order], slots[order]
        chosen = np.ones(entries.size, np.bool_)
        differs = slots[1:] != slots[:-1]
        # The last of each run of one slot, or the first.
        chosen[slice(0, -1) if self._last else slice(1, None)] = differs
        self._best[slots[chosen]] = entries[chosen] + 1
        if self._insert_only:
            # The others can never win again.
            self._counts.drop(entries[~chosen])

    def best(self, slots: np.ndarray) -> pa.Array:
        """Return the values, NULL over no values."""
        entries = self._best[slots]
        some = entries > 0
        values = self._counts.columns_of(entries[some] - 1)[0]
        # A slot without values is NULL; the others are taken in order.
        return values if some.all() else values.take(array_of(np.cumsum(some) - some, ~some))
