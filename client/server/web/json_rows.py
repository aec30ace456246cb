"""Rows of a result as JSON, column by column: no Python loop over rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.schema import Schema

# beyond it JavaScript has no exact integers
_SAFE_INTEGER = 1 << 53


def json_schema(schema: Schema) -> list[dict[str, Any]]:
    """Return the columns of a result: name, SQL type, and whether a value may be NULL."""
    return [{"name": one.name, "type": str(one.type), "nullable": one.nullable} for one in schema]


def json_columns(rows: pa.Table | pa.RecordBatch) -> list[list[Any]]:
    """Return the values of each column. Numbers that JSON or JavaScript would change are text, and so are
    times, decimals and bytes.
    """
    return [_values(column) for column in rows.columns]


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _list(column)
    if pa.types.is_integer(kind):
        bounds = pc.min_max(column)
        low, high = bounds["min"].as_py(), bounds["max"].as_py()
        is_safe = low is None or (low > -_SAFE_INTEGER and high < _SAFE_INTEGER)
        return _list(column if is_safe else column.cast(pa.string()))
    if pa.types.is_floating(kind):
        # JSON has no NaN and no infinity
        all_finite = pc.all(pc.is_finite(column)).as_py()
        return _list(column if all_finite in (True, None) else column.cast(pa.string()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None if value is None else f"\\x{value.hex()}" for value in column.to_pylist()]
    # nested values have no cast to text; their parts are shown as Python prints them
    if pa.types.is_nested(kind) or pa.types.is_duration(kind):
        return [None if value is None else _nested(value) for value in column.to_pylist()]
    return _list(column.cast(pa.string()))


def _list(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


def _nested(value: Any) -> Any:
    """Return a nested value with what JSON knows."""
    if isinstance(value, dict):
        return {str(key): _nested(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_nested(part) for part in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) < _SAFE_INTEGER:
        return value
    return str(value)
