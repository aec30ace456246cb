"""What COPY gives as csv, as Arrow columns of exact types: Arrow reads texts quicker than Python makes
objects of values.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import Binary, DataType, Decimal, String
from penstock.engine.connectors.database.database import BATCH_ROWS
from penstock.engine.connectors.database.select_statement import quoted
from penstock.engine.formats.decoded_batch import empty_columns

_NULL = "\\N"
_BATCH_BYTES = 8 << 20
_COLUMN = re.compile(r"CSV column #(\d+)")


def copy_text(select: str, fields: tuple[Field, ...]) -> str:
    """Return the COPY of a SELECT: texts always in quotes, NULL a word that is no value, so that each is
    told from the other.
    """
    texts = ", ".join(quoted(field.name) for field in fields if isinstance(field.type, String))
    return (
        f"COPY ({select}) TO STDOUT (FORMAT csv, NULL '{_NULL}', ENCODING "
        f"'UTF8'{f', FORCE_QUOTE ({texts})' if texts else ''})"
    )


def copied(
    lines: Iterable[bytes | memoryview], fields: tuple[Field, ...], table: str
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a COPY's messages, each of which is a row. DAT-4704 names the column whose values
    do not fit its type.
    """
    held: list[bytes | memoryview] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if len(held) >= BATCH_ROWS or size >= _BATCH_BYTES:
            yield _rows(held, fields, table)
            held, size = [], 0
    if held:
        yield _rows(held, fields, table)


def _rows(lines: list[bytes | memoryview], fields: tuple[Field, ...], table: str) -> pa.RecordBatch:
    if not fields:
        return empty_columns(len(lines))
    schema = Schema(fields).to_arrow()
    text = b"".join(lines)
    names = [str(place) for place in range(len(fields))]
    read = pyarrow.csv.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False)
    convert = pyarrow.csv.ConvertOptions(
        column_types={
            name: _read_as(field.type, kind)
            for name, field, kind in zip(names, fields, schema.types, strict=True)
        },
        true_values=["t"],
        false_values=["f"],
        null_values=[_NULL],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    try:
        read_rows = pyarrow.csv.read_csv(
            pa.py_buffer(text), read_options=read, parse_options=parse, convert_options=convert
        )
    except pa.ArrowInvalid as error:
        place = _COLUMN.search(str(error))
        raise _unfit(fields[int(place[1])] if place else fields[0], table, error) from error
    columns = [
        _exact(column.combine_chunks(), field, table)
        for column, field in zip(read_rows.columns, fields, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _read_as(kind: DataType, arrow: pa.DataType) -> pa.DataType:
    """A decimal may have more zeros than its type, and bytes are written as digits: both are read as texts
    first.
    """
    return pa.string() if isinstance(kind, Decimal | Binary) else arrow


def _exact(column: pa.Array, field: Field, table: str) -> pa.Array:
    if isinstance(field.type, Binary):
        return _bytes_of(column)
    try:
        return (
            column.cast(Schema((field,)).to_arrow().field(0).type)
            if isinstance(field.type, Decimal)
            else column
        )
    except pa.ArrowInvalid as error:
        raise _unfit(field, table, error) from error


def _unfit(field: Field, table: str, error: Exception) -> PenstockError:
    message = f"column {field.name} of {table} holds what is no {field.type}"
    return PenstockError(
        "DAT-4704",
        message,
        detail=str(error)[:200],
        hint="declare it as STRING to see it",
        kind=Kind.EXTERNAL,
    )


def _bytes_of(texts: pa.Array) -> pa.Array:
    """Return bytes written as ``\\x`` and two digits each; the digits of a column lie one behind the
    other, and so do its bytes.
    """
    digits = pc.utf8_slice_codeunits(texts, 2)
    valid, offsets, values = digits.buffers()
    halved = np.frombuffer(offsets, np.int32)[: len(digits) + 1] // 2
    whole = binascii.unhexlify(memoryview(values)[: int(halved[-1]) * 2]) if values is not None else b""
    return pa.Array.from_buffers(
        pa.binary(), len(digits), [valid, pa.py_buffer(halved.astype(np.int32)), pa.py_buffer(whole)]
    )
