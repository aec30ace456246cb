"""Nested columns of JSON lines: types that Arrow's reader parses, types it passes on as text, and maps, which
it cannot read.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    Array,
    DataType,
    Date,
    DayTimeInterval,
    Map,
    Row,
    String,
    Time,
    Timestamp,
    TimestampLtz,
    YearMonthInterval,
    to_arrow,
)
from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import nulls_of
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.nested.lists import Lists, lists_of
from penstock.engine.formats.text_conversion import checked, from_text

AS_TEXT = Date | Time | TimestampLtz | DayTimeInterval


def wire_type(field: Field, kind: DataType, inside: bool = False) -> pa.DataType:
    """Return the type Arrow's reader converts to: the declared one, or text where our rule differs. DAT-4204
    for a type JSON cannot express.
    """
    match kind:
        # JsonParser reads columns with maps by MapColumn; a Debezium change has no such reader
        case YearMonthInterval() | Map():
            message = f"column {field.name} of type {field.type} cannot be read from json"
            raise PenstockError("DAT-4204", message, hint="declare it STRING, or use format parquet")
        # types inside others: timestamps as texts too, since there is no second attempt for them
        case Array(element):
            return pa.list_(wire_type(field, element, True))
        case Row(fields):
            return pa.struct([pa.field(name, wire_type(field, part, True)) for name, part in fields])
    return (
        pa.string()
        if isinstance(kind, AS_TEXT) or (inside and isinstance(kind, Timestamp))
        else to_arrow(kind)
    )


def holds_map(kind: DataType) -> bool:
    """Return whether a type contains a map at any depth."""
    match kind:
        case Map():
            return True
        case Array(element):
            return holds_map(element)
        case Row(fields):
            return any(holds_map(part) for _, part in fields)
    return False


def converted(column: pa.Array, kind: DataType) -> pa.Array:
    """Return a column Arrow read as values of a SQL type; ArrowInvalid when one does not fit."""
    # Arrow parsed the declared type: only what it is too lenient about is tested
    if column.type == to_arrow(kind):
        return checked(column, b"")
    match kind:
        case Array(element):
            lists = lists_of(column)
            return Lists(converted(lists.flat, element), lists.lengths, lists.missing).column()
        case Row(fields):
            parts = [converted(pc.struct_field(column, i), part) for i, (_, part) in enumerate(fields)]
            missing = nulls_of(column)
            mask = None if missing is None else arrow_numpy.array_of(missing)
            return pa.StructArray.from_arrays(parts, fields=list(to_arrow(kind)), mask=mask)
    return from_text(column, kind)


class MapColumn:
    """A column with maps in it, read out of the lines by DuckDB."""

    def __init__(self, field: Field) -> None:
        self._arrow = to_arrow(field.type)
        self._name = field.name
        # a JSON path in a SQL text in a Python format string: three levels of escapes
        path = (
            '$."'
            + field.name.replace('"', '\\"').replace("'", "''").replace("{", "{{").replace("}", "}}")
            + '"'
        )
        # raises DAT-4204 for a type that this reader cannot read either
        kernel = _json_words(field, field.type)
        self._read = duckdb_kernel(f"CAST(json_extract({{0}}, '{path}') AS {kernel})", self._arrow)

    def of(self, lines: pa.Array) -> pa.Array:
        """Return the column of JSON lines; ArrowInvalid when one cannot be read."""
        try:
            return self._read(lines)
        # the caller treats it as a block that failed
        except Fault as fault:
            raise pa.ArrowInvalid(fault.message) from None


def _json_words(field: Field, kind: DataType) -> str:
    """A type as DuckDB names it in a cast of JSON."""
    match kind:
        case Array(element):
            return f"{_json_words(field, element)}[]"
        case Map(String(), value):
            return f"MAP(VARCHAR, {_json_words(field, value)})"
        case Row(fields):
            quoted = (('"' + name.replace('"', '""') + '"', part) for name, part in fields)
            return f"STRUCT({', '.join(f'{name} {_json_words(field, part)}' for name, part in quoted)})"
        case Map() | TimestampLtz() | DayTimeInterval() | YearMonthInterval():
            message = f"column {field.name} of type {field.type} cannot be read from json"
            raise PenstockError(
                "DAT-4204",
                message,
                hint="keys of a JSON object are STRING; declare inner times STRING, or use format parquet",
            )
    return {"STRING": "VARCHAR", "BINARY": "BLOB"}.get(
        str(kind), "TIMESTAMP" if isinstance(kind, Timestamp) else str(kind)
    )


def lines_of(data: bytes) -> pa.Array:
    """Return the lines of a block that are not blank."""
    # blank lines are no rows for Arrow either
    lines = pc.list_flatten(pc.split_pattern(pa.array([data.decode()]), "\n"))
    return lines.filter(pc.not_equal(pc.utf8_trim_whitespace(lines), ""))
