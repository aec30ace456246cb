"""SlotOrder: rows of values by slot, then by an order, so that equal sets of values are always in one
order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.types import NULL
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.rows.total_order import RowOrder
from penstock.planner.expressions.nodes import Column, Direction, SortKey


class SlotOrder:
    """Sorts columns of values (the last ones are the keys, sorted as ``ways`` say) within their slots;
    ties by all columns, NULL first.
    """

    def __init__(self, types: Sequence[pa.DataType], ways: Sequence[Direction]) -> None:
        self._plain = not any(
            col.is_bytes(kind) or pa.types.is_nested(kind) or pa.types.is_null(kind) for kind in types
        )
        self._ways = list(ways)
        fields = [pa.field(f"c{i}", kind) for i, kind in enumerate([pa.int64(), *types])]
        first = len(fields) - len(ways)
        keys = [
            SortKey(Column(NULL, True, index=first + i), way.descending, way.nulls_first)
            for i, way in enumerate(ways)
        ]
        keys += [
            SortKey(Column(NULL, True, index=i))
            for i, kind in enumerate(types[: len(types) - len(ways)], 1)
            if _is_nested_order(kind)
        ]
        self._schema = pa.schema(fields)
        self._order = RowOrder([SortKey(Column(NULL, True, index=0)), *keys], self._schema, "UTC")

    def sorted(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return the positions of the rows in order."""
        if self._plain:
            keys = columns[len(columns) - len(self._ways) :]
            major = [*zip(keys, self._ways, strict=True), *((column, Direction()) for column in columns)]
            words = [part for column, way in major for part in _words(column, way)]
            return np.lexsort((*words[::-1], slots))
        return self._order.sorted(
            pa.RecordBatch.from_arrays([array_of(slots), *columns], schema=self._schema)
        )


def _is_nested_order(kind: pa.DataType) -> bool:
    """Return whether values are arrays or rows that have an order: without maps in them, which go by their
    texts.
    """
    return pa.types.is_nested(kind) and "map<" not in str(kind)


def _words(column: pa.Array, way: Direction) -> list[np.ndarray]:
    """Integers that sort as a fixed-width column does, the first deciding."""
    words = list(col.order_words(column).T)
    if way.descending:
        words = [~word for word in words]
    if not column.null_count:
        return words
    valid = col.validity(column) != 0
    return [valid if way.nulls_first else ~valid, *(np.where(valid, word, 0) for word in words)]
