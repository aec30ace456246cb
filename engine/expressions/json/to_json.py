"""TO_JSON, JSON_OBJECT and JSON_ARRAY: print values as JSON, as Spark does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    Double,
    Float,
    Map,
    Null,
    Row,
    String,
    Time,
    Timestamp,
    TimestampLtz,
    Variant,
)
from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.casts.to_text import to_text
from penstock.engine.expressions.datetime.date_arithmetic import to_local
from penstock.engine.expressions.datum import Datum, Kernel, aligned, nulls_of, repeated
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.kernel_factory import BoundCall
from penstock.engine.expressions.nested.lists import Lists, lists_of

Writer = Callable[[pa.Array], pa.Array]
"""From values to their JSON, NULL where a value is."""

_TEXT = pa.string()
_SPECIAL = r'["\\\x00-\x1f]'
_NAMED = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# JSON allows no control character in a string: five have a short escape, the others \u00XX.
_CONTROLS = {chr(code): _NAMED.get(chr(code), f"\\u{code:04X}") for code in range(32)}


def to_json(bound: BoundCall) -> Kernel:
    """Return the kernel of ``to_json(x)``."""
    write = writer(bound.kinds[0], bound.context.zone)
    return lambda value: write(*aligned(value))


def json_object(bound: BoundCall) -> Kernel:
    """Return the kernel of JSON_OBJECT over alternating keys and values. Its first argument encodes how NULLs
    and values are written. A NULL key raises Fault RUN-2004.
    """
    absent, writers = _marked(bound, bound.kinds[2::2])

    def kernel(marks: Datum, *data: Datum) -> pa.Array:
        _, *columns = aligned(marks, *data)
        length = len(aligned(marks, *data)[0])
        # '"a":' and the value, as one text a row
        parts = []
        for key, value, write in zip(columns[::2], columns[1::2], writers, strict=True):
            if key.null_count:
                raise bad_argument("a key of json_object is NULL", "give it a text: COALESCE(key, '')")
            written = write(value)
            parts.append(_joined(quoted(key), ":", written if absent else pc.fill_null(written, "null")))
        return _enclosed(_listed(parts, length), "{", "}", None)

    return kernel


def json_array(bound: BoundCall) -> Kernel:
    """Return the kernel of JSON_ARRAY. Its first argument encodes how NULLs and values are written."""
    absent, writers = _marked(bound, bound.kinds[1:])

    def kernel(marks: Datum, *data: Datum) -> pa.Array:
        first, *columns = aligned(marks, *data)
        parts = [write(value) for write, value in zip(writers, columns, strict=True)]
        return _enclosed(
            _listed(parts if absent else [pc.fill_null(part, "null") for part in parts], len(first)),
            "[",
            "]",
            None,
        )

    return kernel


def _marked(bound: BoundCall, kinds: tuple[DataType, ...]) -> tuple[bool, list[Writer]]:
    """Return whether NULLs are omitted, and each value's writer. A value that is already JSON is not quoted
    again.
    """
    # whether NULLs are absent, a blank, then one letter for each value: j is JSON already
    nulls, _, marks = str(bound.constant(0)).partition(" ")
    zone = bound.context.zone
    return nulls == "absent", [
        _as_it_is if mark == "j" else writer(kind, zone) for mark, kind in zip(marks, kinds, strict=True)
    ]


def _as_it_is(column: pa.Array) -> pa.Array:
    return column


def _listed(parts: list[pa.Array], length: int) -> pa.Array:
    """Return each row's parts separated by commas, without NULL parts. Arrow's own join that skips NULLs
    loses rows whose parts are all NULL.
    """
    if not parts:
        return repeated(pa.scalar(""), length)
    # each part with a comma before it, and the first comma cut off
    return pc.utf8_slice_codeunits(_joined(*[pc.fill_null(_joined(",", part), "") for part in parts]), 1)


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")


def _enclosed(inner: pa.Array, left: str, right: str, missing: np.ndarray | None) -> pa.Array:
    text = _joined(left, inner, right)
    return (
        text if missing is None else pc.if_else(arrow_numpy.array_of(missing), pa.scalar(None, _TEXT), text)
    )


def writer(kind: DataType, zone: str, nulls: bool = False) -> Writer:
    """Return the writer of a type's values; ``nulls`` says that NULL fields of rows are written too."""
    match kind:
        # one writer a type, chosen at compile time
        case Row(fields):
            return _row([(name, writer(part, zone, nulls)) for name, part in fields], nulls)
        case Array(element):
            return _array(writer(element, zone, nulls))
        case Map(key, value):
            return _map(
                quoted if isinstance(key, String) else _quoting(to_text(key, zone)),
                writer(value, zone, nulls),
            )
        # JSON already
        case Variant():
            return _as_it_is
        # a column of NULLs
        case Null():
            return lambda column: pa.nulls(len(column), _TEXT)
        case String():
            return quoted
        case Float() | Double():
            return _float
        case Timestamp():
            return lambda column: _joined('"', _to_milliseconds(column), '"')
        case TimestampLtz():
            return lambda column: _instant(column, zone)
        case Date() | Time():
            return _quoting(to_text(kind, zone))
        case Binary():
            return _quoting(duckdb_kernel("base64({0})", _TEXT))
        case Boolean():
            return lambda column: column.cast(_TEXT)
    return to_text(kind, zone)


def _quoting(write: Callable[..., pa.Array]) -> Writer:
    return lambda column: _joined('"', write(column), '"')


def quoted(column: pa.Array) -> pa.Array:
    """Return texts as JSON strings."""
    special = pc.fill_null(pc.match_substring_regex(column, _SPECIAL), False)
    if pc.any(special).as_py():
        # Only the texts that need an escape are rewritten.
        column = pc.replace_with_mask(column, special, _escaped(column.filter(special)))
    return _joined('"', column, '"')


def _escaped(column: pa.Array) -> pa.Array:
    column = pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(column, r"[\x00-\x1f]")).as_py():
        for letter, escape in _CONTROLS.items():
            column = pc.replace_substring(column, letter, escape)
    return column


def _float(column: pa.Array) -> pa.Array:
    text = to_text(Double() if pa.types.is_float64(column.type) else Float(), "UTC")(column)
    # JSON has no number for NaN and infinities: they are strings.
    return pc.if_else(pc.is_finite(column), text, _joined('"', text, '"'))


def _to_milliseconds(column: pa.Array) -> pa.Array:
    # Spark prints milliseconds: 2024-01-31T08:05:59.123
    floored = pc.floor_temporal(column, unit="millisecond").cast(pa.timestamp("ms"))
    return pc.strftime(floored, format="%Y-%m-%dT%H:%M:%S")


def _instant(column: pa.Array, zone: str) -> pa.Array:
    """Return the time in the session zone, with its offset from UTC."""
    local = to_local(column, zone)
    minutes = pc.divide(pc.subtract(local.cast(pa.int64()), column.cast(pa.int64())), 60_000_000)
    # A column has few distinct offsets: each is printed once.
    different = pc.dictionary_encode(minutes)
    offsets = pa.array([_offset(value) for value in different.dictionary.to_pylist()], _TEXT).take(
        different.indices
    )
    return _joined('"', _to_milliseconds(local), offsets, '"')


def _offset(minutes: int) -> str:
    hours, rest_minutes = divmod(abs(minutes), 60)
    return "Z" if minutes == 0 else f"{'-' if minutes < 0 else '+'}{hours:02}:{rest_minutes:02}"


def _row(fields: list[tuple[str, Writer]], nulls: bool) -> Writer:
    """Return the writer of a row. NULL fields are omitted unless ``nulls``."""
    names = [quoted(pa.array([name]))[0].as_py() + ":" for name, _ in fields]

    def write(column: pa.Array) -> pa.Array:
        values = [part(pc.struct_field(column, i)) for i, (_, part) in enumerate(fields)]
        if nulls:
            values = [pc.fill_null(value, "null") for value in values]
        parts = [_joined(name, value) for name, value in zip(names, values, strict=True)]
        return _enclosed(_listed(parts, len(column)), "{", "}", nulls_of(column))

    return write


def _array(element: Writer) -> Writer:
    def write(column: pa.Array) -> pa.Array:
        lists = lists_of(column)
        # NULL elements are written, NULL fields of a row are not
        parts = Lists(pc.fill_null(element(lists.flat), "null"), lists.lengths).column()
        return _enclosed(pc.binary_join(parts, ","), "[", "]", lists.missing)

    return write


def _map(key: Writer, value: Writer) -> Writer:
    def write(column: pa.Array) -> pa.Array:
        lists = lists_of(column)
        keys, values = (pc.struct_field(lists.flat, i) for i in range(2))
        parts = Lists(_joined(key(keys), ":", pc.fill_null(value(values), "null")), lists.lengths).column()
        return _enclosed(pc.binary_join(parts, ","), "{", "}", lists.missing)

    return write
