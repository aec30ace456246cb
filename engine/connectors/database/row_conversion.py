"""Tuples of Python's database drivers as Arrow columns of exact types, converted a whole column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import Boolean, Date, Decimal, is_timestamp
from penstock.engine.formats.decoded_batch import empty_columns
from penstock.engine.formats.text_conversion import from_text


def rows_of(rows: Sequence[tuple[Any, ...]], fields: tuple[Field, ...], table: str) -> pa.RecordBatch:
    """Return rows as a batch of these columns. DAT-4704 names the column whose values do not fit its type."""
    if not fields:
        return empty_columns(len(rows))
    # rows to columns, once
    columns = zip(*rows, strict=True) if rows else [()] * len(fields)
    arrays = [_column(list(values), field, table) for values, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=Schema(fields).to_arrow())


def _column(values: list[Any], field: Field, table: str) -> pa.Array:
    arrow = Schema((field,)).to_arrow().field(0).type
    try:
        # types that SQLite has no storage for; all others must match as they are
        if is_timestamp(field.type) or isinstance(field.type, Date | Decimal | Boolean):
            return _converted(values, field, arrow)
        return pa.array(values, arrow)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError) as error:
        message = f"column {field.name} of {table} holds what is no {field.type}"
        raise PenstockError(
            "DAT-4704",
            message,
            detail=str(error)[:200],
            hint="declare it as STRING to see it",
            kind=Kind.EXTERNAL,
        ) from error


def _converted(values: list[Any], field: Field, arrow: pa.DataType) -> pa.Array:
    """Dates, times and decimals may arrive as texts, and booleans as numbers: SQLite has no types of its own
    for them.
    """
    # the first value decides for the column: a driver returns one type per column
    sample = next((value for value in values if value is not None), None)
    if isinstance(sample, str):
        return from_text(pa.array(values, pa.string()), field.type)
    if isinstance(field.type, Boolean) and isinstance(sample, int) and not isinstance(sample, bool):
        return pa.array(values, pa.int64()).cast(arrow)
    return pa.array(values, arrow)
