"""RowOrder: the order of rows by sort keys, as Spark sorts. Ties are broken by all columns, or by order of
arrival.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.expressions.nested.comparison import sort_keys
from penstock.engine.kernels.nested_text import canonical_text
from penstock.planner.expressions.nodes import SortKey


class RowOrder:
    """Sorts batches of one schema; NaN is the largest number, NULLs sort as each key specifies, in ties
    first.

    Nested keys sort part by part; in ties nested values sort by their canonical texts. So equal sets of rows
    are always in one order. ``arrival`` (``penstock.planner.logical.time_attributes.arrival_order``): 1
    breaks ties by arrival instead, -1 by arrival in reverse; rows come with their numbers then.
    """

    def __init__(self, keys: Sequence[SortKey], schema: pa.Schema, time_zone: str, arrival: int = 0) -> None:
        context = EvaluationContext(time_zone)
        self._keys = [
            (compile_expression(key.expression, context), key.descending, key.nulls_first) for key in keys
        ]
        self.arrival = arrival
        # Without an order of arrival all columns break ties, so equal sets of rows sort equally.
        self._ties = range(0 if arrival else len(schema))

    def sorted(self, rows: pa.RecordBatch, arrived: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the rows in order, int64. ``arrived``: their numbers in the order they
        arrived (None: their order in the batch).
        """
        return self.sorted_pieces([rows], arrived)

    def sorted_pieces(
        self, pieces: Sequence[pa.RecordBatch], arrived: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the positions of the rows of all pieces, counted through, in order, int64. Raises
        ``TooLarge`` where the values of a nested key fit into no array.
        """
        count = sum(rows.num_rows for rows in pieces)
        if not count:
            return np.zeros(0, np.int64)
        columns: list[pa.Array | pa.ChunkedArray] = []
        directions: list[str] = []
        for evaluate, descending, nulls_first in self._keys:
            _add_key(
                _end_to_end([evaluate(rows) for rows in pieces]), descending, nulls_first, columns, directions
            )
        # In ties NULL comes first and values ascend, whatever the keys say.
        for index in self._ties:
            parts = [rows.column(index) for rows in pieces]
            if pa.types.is_nested(parts[0].type):
                parts = [canonical_text(part) for part in parts]
            _add_key(_end_to_end(parts), False, True, columns, directions)
        # Numbers of arrival differ, so nothing is left to break.
        if self.arrival:
            columns.append(array_of(np.arange(count) if arrived is None else arrived))
            directions.append("ascending" if self.arrival > 0 else "descending")
        # No columns at all: any order is the order.
        if not columns:
            return np.arange(count)
        names = [f"k{number}" for number in range(len(columns))]
        # Only a table can have chunked columns.
        whole = all(isinstance(column, pa.Array) for column in columns)
        table = pa.RecordBatch.from_arrays(columns, names=names) if whole else pa.table(columns, names=names)
        return numbers_of(pc.sort_indices(table, sort_keys=list(zip(names, directions, strict=True)))).astype(
            np.int64
        )


def _end_to_end(parts: Sequence[pa.Array]) -> pa.Array | pa.ChunkedArray:
    """Return values end to end as one array, or as chunks where one array is too small."""
    if len(parts) == 1:
        return parts[0]
    size = sum(part.nbytes for part in parts)
    if size <= LIMITS.array_bytes:
        return pa.concat_arrays(parts)
    # Arrow cannot sort nested values in chunks.
    if pa.types.is_nested(parts[0].type):
        raise TooLarge(size)
    return pa.chunked_array(parts)


def _add_key(
    values: pa.Array | pa.ChunkedArray,
    descending: bool,
    nulls_first: bool,
    columns: list[pa.Array | pa.ChunkedArray],
    directions: list[str],
) -> None:
    """Add a key's columns: whether it is NULL, whether it is NaN, its value."""
    direction = "descending" if descending else "ascending"
    # Arrow puts NULLs last whatever the direction; a column before the key decides instead.
    if values.null_count:
        columns.append(pc.is_null(values).cast(pa.int8()))
        directions.append("descending" if nulls_first else "ascending")
    # Inside a nested value NULL is the least, whatever NULLS FIRST says of the value as a whole.
    if pa.types.is_nested(values.type):
        for part in sort_keys(values)[1:]:
            _add_key(part, descending, not descending, columns, directions)
        return
    # NaN is larger than every number; Arrow places it beside the NULLs whatever the direction.
    if pa.types.is_floating(values.type):
        nan = pc.fill_null(pc.is_nan(values), False)
        if pc.any(nan).as_py():
            columns.append(nan.cast(pa.int8()))
            directions.append(direction)
    # Arrow does not sort booleans: false is 0, true is 1.
    columns.append(values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values)
    directions.append(direction)
