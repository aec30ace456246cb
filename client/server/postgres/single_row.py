"""The cells of a single row, as a point query has it: NumPy would take ten times as long."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa

from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TINYINT,
    DataType,
)

CellOfOne = Callable[[pa.Array], bytes]
"""Returns the field of a column of one value: its length and its bytes, length -1 for NULL."""
_NULL = b"\xff\xff\xff\xff"
_INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)


def binary_cell(kind: DataType) -> CellOfOne | None:
    """Return a function from the one value of a column to its field in the binary format; None for types
    whose columns are written as they are of many rows.
    """
    if (form := _FORMS.get(kind)) is None:
        return _text if kind == STRING else None
    pack = struct.Struct(">i" + form).pack
    size = struct.calcsize(">" + form)

    def write(column: pa.Array) -> bytes:
        value = column[0].as_py()
        return _NULL if value is None else pack(size, value)

    return write


def text_cell(kind: DataType) -> CellOfOne | None:
    """Return the same for the text format."""
    if kind in _INTEGERS:
        return _digits
    return _text if kind == STRING else None


def _text(column: pa.Array) -> bytes:
    value = column[0].as_py()
    if value is None:
        return _NULL
    data = value.encode()
    return struct.pack(">i", len(data)) + data


def _digits(column: pa.Array) -> bytes:
    value = column[0].as_py()
    if value is None:
        return _NULL
    data = str(value).encode("ascii")
    return struct.pack(">i", len(data)) + data


_FORMS: dict[DataType, str] = {
    BOOLEAN: "?",
    TINYINT: "h",
    SMALLINT: "h",
    INT: "i",
    BIGINT: "q",
    FLOAT: "f",
    DOUBLE: "d",
}
"""PostgreSQL has no integer of one byte."""
