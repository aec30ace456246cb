"""SlotOrder: rows of values by slot, then by an order, so that equal sets of values are always in one order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from catalog.types import NULL
from engine.arrays import array_of
from engine.kernels import columns as col
from engine.state.row_order import RowOrder
from planner.expressions import Column, Direction, SortKey


class SlotOrder:
    """Sorts columns of values (the last ones are the keys, sorted as ``ways`` say) within their slots; ties by all columns, NULL first."""

    def __init__(self, types: Sequence[pa.DataType], ways: Sequence[Direction]) -> None:
        self._plain = not ways and len(types) == 1 and not col.is_bytes(types[0])
        fields = [pa.field(f"c{i}", kind) for i, kind in enumerate([pa.int64(), *types])]
        first = len(fields) - len(ways)
        keys = [SortKey(Column(NULL, True, index=first + i), way.descending, way.nulls_first) for i, way in enumerate(ways)]
        self._schema = pa.schema(fields)
        self._order = RowOrder([SortKey(Column(NULL, True, index=0)), *keys], self._schema, "UTC")

    def sorted(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return the positions of the rows in order."""
        if self._plain and not columns[0].null_count:
            words = col.order_words(columns[0])
            return np.lexsort((*words.T[::-1], slots))
        return self._order.sorted(pa.RecordBatch.from_arrays([array_of(slots), *columns], schema=self._schema))
