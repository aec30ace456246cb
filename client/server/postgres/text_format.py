"""Columns in PostgreSQL's text format."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    STRING,
    TIME,
    Array,
    Binary,
    Boolean,
    DataType,
    DayTimeInterval,
    Foreign,
    Map,
    Null,
    Row,
    String,
    TimestampLtz,
    Variant,
    YearMonthInterval,
)
from penstock.client.server.postgres.cells import check_bytes
from penstock.client.server.postgres.wire_types import element_of
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.arrow_numpy import texts as text_array
from penstock.engine.expressions.casts.to_text import to_text
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.datetime.date_arithmetic import to_local
from penstock.engine.expressions.datum import lists_of, values_of
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.planner.expressions.nodes import Call, Column

Printer = Callable[[pa.Array], pa.Array]

_TEXT = pa.string()
_DAY_US = 86_400_000_000
_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), np.uint16)


def text_printer(kind: DataType, zone: str) -> Printer:
    """Return a function from values of a type to the texts that PostgreSQL's clients read."""
    match kind:
        case String() | Variant():
            return lambda column: column
        case Null() | Foreign():
            return lambda column: pa.nulls(len(column), _TEXT)
        case Boolean():
            return lambda column: pc.if_else(column, "t", "f")
        case Binary():
            return _hex
        case TimestampLtz():
            return lambda column: _with_offset(column, zone)
        case DayTimeInterval():
            return _day_time
        case YearMonthInterval():
            return _year_month
        case Map() | Row():
            return _json(kind, zone)
        case Array():
            element = element_of(kind)
            # an array of arrays is JSON
            return _json(kind, zone) if element is None else _array(element, zone)
    return to_text(kind, zone)


def _json(kind: DataType, zone: str) -> Printer:
    call = Call(STRING, True, function="to_json", args=(Column(kind, True, index=0),))
    write = compile_expression(call, EvaluationContext(zone=zone))
    return lambda column: write(pa.RecordBatch.from_arrays([column], names=["value"]))


def _hex(column: pa.Array) -> pa.Array:
    """Return bytes as ``\\x00ff``."""
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
    data = column.buffers()[2]
    used = (
        np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.zeros(0, np.uint8)
    )
    # two digits for each byte: offsets of 32 bits would be negative
    check_bytes(2 * len(used))
    digits = pa.Array.from_buffers(
        _TEXT,
        len(column),
        [None, pa.py_buffer((offsets - offsets[0]) * np.int32(2)), pa.py_buffer(_HEX[used])],
    )
    texts = pc.binary_join_element_wise("\\x", digits, "")
    return texts if not column.null_count else pc.if_else(pc.is_valid(column), texts, None)


def _with_offset(column: pa.Array, zone: str) -> pa.Array:
    """Return instants as the wall clock of a zone with its offset then, such as ``+02``."""
    local = to_local(column, zone)
    seconds = (values_of(local.cast(pa.int64())) - values_of(column.cast(pa.int64()))) // 1_000_000
    seconds = np.where(values_of(pc.is_valid(column)), seconds, 0).astype(np.int64)
    # few: a zone has two offsets a year
    different, which = np.unique(seconds, return_inverse=True)
    names = text_array([_offset(int(offset)) for offset in different])
    texts = to_text(TimestampLtz(), zone)(column)
    return pc.binary_join_element_wise(texts, names.take(array_of(which.astype(np.int64))), "")


def _offset(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{'-' if seconds < 0 else '+'}{hours:02d}"
    if minutes or rest:
        text += f":{minutes:02d}"
    return text + (f":{rest:02d}" if rest else "")


def split_days(microseconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whole days and the rest of intervals, both with the sign of the interval."""
    days = np.sign(microseconds) * (np.abs(microseconds) // _DAY_US)
    return days, microseconds - days * _DAY_US


def _day_time(column: pa.Array) -> pa.Array:
    """Return intervals as ``3 days 04:05:06.7``, each part with its own sign."""
    days, rest = split_days(values_of(column.cast(pa.int64())))
    time = array_of(np.abs(rest)).cast(pa.time64("us"))
    clock = to_text(TIME, "UTC")(time)
    sign = pc.if_else(array_of(rest < 0), "-", "")
    dated = pc.binary_join_element_wise(array_of(days).cast(_TEXT), " days ", "")
    texts = pc.binary_join_element_wise(pc.if_else(array_of(days != 0), dated, ""), sign, clock, "")
    return texts if not column.null_count else pc.if_else(pc.is_valid(column), texts, None)


def _year_month(column: pa.Array) -> pa.Array:
    """Return months as ``1 years 2 mons``."""
    months = values_of(column).astype(np.int64)
    years = np.sign(months) * (np.abs(months) // 12)
    parts = (array_of(years).cast(_TEXT), " years ", array_of(months - 12 * years).cast(_TEXT), " mons", "")
    texts = pc.binary_join_element_wise(*parts)
    return texts if not column.null_count else pc.if_else(pc.is_valid(column), texts, None)


def _array(element: DataType, zone: str) -> Printer:
    """Return a printer of ``{"a",NULL}``: every element in quotes, which any type may have."""
    print_element = text_printer(element, zone)

    def write(column: pa.Array) -> pa.Array:
        texts = print_element(column.flatten())
        for character in ("\\", '"'):
            texts = pc.replace_substring(texts, character, "\\" + character)
        quoted = pc.fill_null(pc.binary_join_element_wise('"', texts, '"', ""), "NULL")
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        offsets = np.zeros(len(column) + 1, np.int32)
        np.cumsum(values_of(lengths), out=offsets[1:])
        joined = pc.binary_join(lists_of(offsets, quoted), ",")
        written = pc.binary_join_element_wise("{", joined, "}", "")
        return written if not column.null_count else pc.if_else(pc.is_valid(column), written, None)

    return write
