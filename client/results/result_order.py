"""The final order of rows: the ORDER BY of a result that came as a stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import numbers_of
from penstock.engine.api.row_pieces import LIMITS, TooLarge, batches_of, take_rows
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.nested.comparison import sort_keys
from penstock.engine.kernels.nested_text import canonical_text
from penstock.planner.expressions.nodes import Column, SortKey


def sort_by_keys(rows: pa.Table, keys: tuple[SortKey, ...]) -> pa.Table:
    """Return the rows sorted by the keys. Ties are sorted by all columns, so the order never depends on
    how the rows came.
    """
    if rows.num_rows < 2:
        return rows
    rows = pa.Table.from_batches(batches_of(rows), rows.schema)
    columns: list[pa.Array] = []
    directions: list[str] = []
    for key in keys:
        _add_key(columns, directions, _values(rows, key), key.descending, key.nulls_first)
    # all columns break ties, nested ones by their texts
    for column in rows.columns:
        _add_plain_key(columns, directions, column)
    return _sorted(rows, columns, directions)


def sort_by_columns(rows: pa.Table, positions: tuple[int, ...]) -> pa.Table:
    """Return the rows by some columns, ascending."""
    columns: list[pa.Array] = []
    directions: list[str] = []
    for position in positions:
        _add_plain_key(columns, directions, rows.column(position))
    return _sorted(rows, columns, directions) if columns and rows.num_rows > 1 else rows


def _sorted(rows: pa.Table, columns: list[pa.Array], directions: list[str]) -> pa.Table:
    names = [str(position) for position in range(len(columns))]
    # indices: the sort columns are made from the rows' columns and are not among them
    order = pc.sort_indices(
        pa.table(columns, names=names), sort_keys=list(zip(names, directions, strict=True))
    )
    return take_rows(rows, numbers_of(order).astype(np.int64))


def _add_plain_key(columns: list[pa.Array], directions: list[str], column: pa.ChunkedArray) -> None:
    """Add a column that breaks ties; nested values do by their canonical texts."""
    if pa.types.is_nested(column.type):
        texts = [canonical_text(chunk) for chunk in column.chunks]  # one array of all may be too large
        _add_key(columns, directions, pa.chunked_array(texts, pa.string()), False, True)
    else:
        _add_key(columns, directions, column, False, True)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    # a part of a nested key is one array already
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.nbytes > LIMITS.array_bytes:
        raise TooLarge(column.nbytes)
    return column.combine_chunks()


def _values(rows: pa.Table, key: SortKey) -> pa.Array:
    if isinstance(key.expression, Column):
        return rows.column(key.expression.index)
    values = compile_expression(key.expression)
    return pa.chunked_array([values(batch) for batch in batches_of(rows)])


def _add_key(
    columns: list[pa.Array], directions: list[str], values: pa.Array, descending: bool, nulls_first: bool
) -> None:
    """Add the sort columns of one key: where its NULLs go, where NaN goes (largest), then the values."""
    direction = "descending" if descending else "ascending"
    # NULLS FIRST or LAST is a sort column of its own, before the values
    columns.append(pc.is_null(values))
    directions.append("descending" if nulls_first else "ascending")
    if pa.types.is_nested(values.type):
        # arrays and rows: part by part, a NULL inside below every value
        for part in sort_keys(_whole(values))[1:]:
            _add_key(columns, directions, part, descending, not descending)
        return
    if pa.types.is_floating(values.type):
        # Arrow puts NaN beside NULL; here it is greater than every number
        columns.append(pc.is_nan(values))
        directions.append(direction)
    columns.append(values)
    directions.append(direction)
