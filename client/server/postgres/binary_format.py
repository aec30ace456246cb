"""Columns in PostgreSQL's binary format."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    TIME,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    Binary,
    DataType,
    Decimal,
    Timestamp,
    TimestampLtz,
)
from penstock.client.server.postgres.cells import (
    WireCells,
    fields_of,
    fixed_cells,
    joined,
    nulls_as_minus_one,
    text_cells,
)
from penstock.client.server.postgres.text_format import split_days, text_printer
from penstock.client.server.postgres.wire_types import element_of, wire_type
from penstock.engine.expressions.datum import values_of
from penstock.engine.kernels.arrow_views import wide_words
from penstock.engine.kernels.postgres_rows import NUMERIC_BYTES, write_numerics

CellWriter = Callable[[pa.Array], WireCells]

# PostgreSQL counts from 2000-01-01
EPOCH_DAYS = 10_957
EPOCH_US = EPOCH_DAYS * 86_400_000_000

_NUMBERS: dict[DataType, tuple[str, int]] = {
    # the bytes of a value as NumPy names them, and how many
    BOOLEAN: ("u1", 1),
    TINYINT: (">i2", 2),
    SMALLINT: (">i2", 2),
    INT: (">i4", 4),
    BIGINT: (">i8", 8),
    FLOAT: (">f4", 4),
    DOUBLE: (">f8", 8),
    TIME: (">i8", 8),
}


def cell_writer(kind: DataType, zone: str) -> CellWriter:
    """Return a function from values of a type to their cells in the binary format."""
    if (number := _NUMBERS.get(kind)) is not None:
        return lambda column: fixed_cells(values_of(column).astype(number[0]), number[1], column)
    if (element := element_of(kind)) is not None:
        return _array(element, zone)
    match kind:
        case Decimal(_, scale):
            return lambda column: _numeric(column, scale)
        case Timestamp() | TimestampLtz():
            return lambda column: _from_epoch(column, EPOCH_US, ">i8", 8)
        case Binary():
            return text_cells
    if kind == DATE:
        return lambda column: _from_epoch(column, EPOCH_DAYS, ">i4", 4)
    if kind in (DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL):
        return lambda column: _interval(column, is_months=kind == YEAR_MONTH_INTERVAL)
    # text and JSON: their texts
    printer = text_printer(kind, zone)
    return lambda column: text_cells(printer(column))


def text_writer(kind: DataType, zone: str) -> CellWriter:
    """Return a function from values of a type to their cells in the text format."""
    printer = text_printer(kind, zone)
    return lambda column: text_cells(printer(column))


def _from_epoch(column: pa.Array, epoch: int, form: str, width: int) -> WireCells:
    return fixed_cells((values_of(column) - epoch).astype(form), width, column)


def _interval(column: pa.Array, *, is_months: bool) -> WireCells:
    """Return intervals: microseconds, days and months."""
    parts = np.zeros(len(column), np.dtype([("us", ">i8"), ("days", ">i4"), ("months", ">i4")]))
    if is_months:
        parts["months"] = values_of(column)
    else:
        parts["days"], parts["us"] = split_days(values_of(column))
    return fixed_cells(parts, 16, column)


def _numeric(column: pa.Array, scale: int) -> WireCells:
    low, high = wide_words(column)
    out = np.empty(len(column) * NUMERIC_BYTES or 1, np.uint8)
    lengths = np.zeros(len(column), np.int32)
    write_numerics(low, high, scale, out, lengths)
    starts = np.arange(len(column), dtype=np.int64) * NUMERIC_BYTES
    return WireCells(starts, nulls_as_minus_one(lengths, column), out)


def _array(element: DataType, zone: str) -> CellWriter:
    """Return a writer of arrays: dimensions, a flag for NULLs, the element's OID, the size and the lower
    bound 1; then the elements as fields.
    """
    write_element, oid = cell_writer(element, zone), wire_type(element).oid
    header = np.dtype([(name, ">i4") for name in ("dimensions", "nulls", "oid", "size", "lower")])

    def write(column: pa.Array) -> WireCells:
        values = column.flatten()
        fields = fields_of([write_element(values)], b"", None, len(values))
        counts = values_of(pc.fill_null(pc.list_value_length(column), 0)).astype(np.int64)
        ends = np.cumsum(counts)
        # where each list's fields begin and end among those of all lists
        bounds = np.concatenate([[0], np.cumsum(fields.sizes)])
        begins, behind = bounds[ends - counts], bounds[ends]
        heads = np.zeros(len(column), header)
        heads["dimensions"], heads["oid"], heads["size"], heads["lower"] = counts > 0, oid, counts, 1
        heads["nulls"] = bool(values.null_count)
        # an empty array has no dimensions, and the header ends before them
        head = fixed_cells(heads, header.itemsize, column)
        head.lengths = np.where((counts == 0) & (head.lengths > 0), np.int32(12), head.lengths)
        return joined([head, WireCells(begins, (behind - begins).astype(np.int32), fields.data)], head)

    return write
