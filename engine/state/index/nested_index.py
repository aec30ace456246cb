"""NestedIndex: arrays, maps and rows to dense slots, by their canonical texts. A row store has the values
themselves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels.nested_text import canonical_text
from penstock.engine.state.frozen_arrays import FrozenViews
from penstock.engine.state.index.tagged_index import StringIndex
from penstock.engine.state.rows.row_store import RowStore


class NestedIndex:
    """One nested column's values to slots, NULL being a key like others."""

    def __init__(self, kind: pa.DataType) -> None:
        self._schema = pa.schema([("value", kind)])
        self._texts = StringIndex(pa.string())
        self._values = RowStore(self._schema)
        # By slot: the row id of the value in the row store, -1 for none.
        self._rows = np.full(self._texts.capacity, -1, np.int64)
        self._views = FrozenViews()

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def capacity(self) -> int:
        """The bound of the slots assigned until the index grows."""
        return self._texts.capacity

    def lookup_or_insert(self, column: pa.Array) -> np.ndarray:
        """Return the slot of each value (int64), new ones getting a free one."""
        slots = self._texts.lookup_or_insert(canonical_text(column))
        if self._texts.capacity > self._rows.size:
            self._rows = np.concatenate(
                [self._rows, np.full(self._texts.capacity - self._rows.size, -1, np.int64)]
            )
        # Values that are new, each once: a batch may repeat one.
        fresh, first = np.unique(slots[self._rows[slots] < 0], return_index=True)
        if fresh.size:
            positions = np.flatnonzero(self._rows[slots] < 0)[first]
            self._rows[fresh] = self._values.append(
                pa.RecordBatch.from_arrays([column.take(array_of(positions))], schema=self._schema)
            )
        return slots

    def lookup(self, column: pa.Array) -> np.ndarray:
        """Return the slot of each value, -1 where it is no key."""
        return self._texts.lookup(canonical_text(column))

    def keys(self, slots: np.ndarray) -> pa.Array:
        """Return the values of slots."""
        return self._values.take(self._rows[slots]).column(0)

    def freeze(self) -> Callable[[np.ndarray | None], Callable[[np.ndarray], pa.Array]]:
        """Return the values of slots as they are now, to be copied later."""
        frozen = self._views.freeze([self._rows], self._texts.allocated)
        values = self._values.freeze(None)

        def of(slots: np.ndarray | None) -> Callable[[np.ndarray], pa.Array]:
            (rows,) = frozen.copies(slots)
            return lambda at: values.take(rows[at]).column(0)

        return of

    def widths(self, slots: np.ndarray) -> np.ndarray:
        """Return about how many bytes the values of slots are: as many as their texts."""
        return self._texts.widths(slots)

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots and forget their values."""
        self._views.save(slots)
        # Each value is stored with weight 1, so this removes its row.
        self._values.add_weights(self._rows[slots], np.full(slots.size, -1, np.int64))
        self._rows[slots] = -1
        self._texts.remove(slots)

    def live_slots(self) -> np.ndarray:
        """Return the slots of all values, ascending."""
        return self._texts.live_slots()
