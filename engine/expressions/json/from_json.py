"""FROM_JSON: parses texts into rows, arrays and maps of a declared type, as Spark does."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    Array,
    Binary,
    Boolean,
    DataType,
    Double,
    Float,
    Map,
    Row,
    String,
    is_integer,
    to_arrow,
)
from penstock.catalog.types import Decimal as DecimalType
from penstock.engine.expressions.casts.cast import cast_kernel
from penstock.engine.expressions.datum import Datum, Kernel, aligned
from penstock.engine.expressions.evaluation_errors import bad_argument, one_array
from penstock.engine.expressions.kernel_factory import BoundCall

# A text that begins as an object; and a place where a second object could begin.
_OBJECT = r"^[ \t\r\n]*\{"
_SECOND = r"\}[ \t\r\n]*\{"


def rows_of_lines(texts: pa.Array, kind: pa.StructType) -> pa.StructArray | None:
    """Parse each text as a row of a type; NULL texts stay NULL. Return ``None`` if some text is not plainly
    one object whose values fit.

    Every text must begin as an object, and none may contain a second one. So as many objects as texts means
    one object per text.
    """
    # Arrow cannot read a row without fields, and reads some types differently.
    if not kind.num_fields or not _plain(kind) or not len(texts):
        return None
    # An empty object keeps a NULL text's line, so that rows still count.
    missing = pc.is_null(texts)
    # two cheap tests by regular expression decide whether lines and objects are one to one
    lines = pc.if_else(missing, "{}", texts) if texts.null_count else texts
    if (
        not pc.all(pc.match_substring_regex(lines, _OBJECT)).as_py()
        or pc.any(pc.match_substring_regex(lines, _SECOND)).as_py()
    ):
        return None
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "\n")
    table = _read(joined[0].as_buffer(), kind)
    # a value that does not fit, or an object cut in two: parsed text by text
    if table is None or table.num_rows != len(texts):
        return None
    columns = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=missing)


def _read(data: pa.Buffer, kind: pa.StructType) -> pa.Table | None:
    import pyarrow.json as pajson

    # One block, so that no object is split and rows stay in order.
    reading = pajson.ReadOptions(use_threads=False, block_size=data.size + 1)
    parsing = pajson.ParseOptions(explicit_schema=pa.schema(list(kind)), unexpected_field_behavior="ignore")
    try:
        return pajson.read_json(pa.BufferReader(data), reading, parsing)
    except pa.ArrowInvalid:
        return None


def _plain(kind: pa.DataType) -> bool:
    """Return whether Arrow parses the type from JSON with FROM_JSON's meaning."""
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        # Arrow's schema cannot distinguish two fields of one name.
        return len(set(names)) == len(names) and all(_plain(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _plain(kind.value_type)
    return (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
    )


Reader = Callable[[Any], Any]
"""From a parsed value that is not null to the value of a type; raises ValueError for what is none."""

_NAMED = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "+Infinity": math.inf,
    "+INF": math.inf,
    "-Infinity": -math.inf,
    "-INF": -math.inf,
}
_DECODER = json.JSONDecoder(parse_float=Decimal)
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'((?:[^'\\]|\\.)*)'")


def from_json(bound: BoundCall) -> Kernel:
    """Return the kernel of a call. A batch of plain rows is parsed by Arrow; any other is parsed once per
    distinct text.
    """
    kind = bound.call.type
    strict = bound.constant(2) == "FAILFAST"
    wire = _wire(kind)
    read, convert = _document(kind, strict), cast_kernel(wire, kind, not strict, bound.context.zone)

    def kernel(text: Datum, *_: Datum) -> Datum:
        (column,) = aligned(text)
        # fast: the whole batch by Arrow; slow: each distinct text by Python
        result = rows_of_lines(column, to_arrow(wire)) if isinstance(wire, Row) else None
        if result is None:
            result = _by_text(column, read, to_arrow(wire))
        return result if convert is None else convert(result)

    return kernel


def _by_text(column: pa.Array, read: Reader, kind: pa.DataType) -> pa.Array:
    # NULL is no entry of the dictionary and stays NULL by its index
    encoded = pc.dictionary_encode(column)
    values = one_array(pa.array([read(text) for text in encoded.dictionary.to_pylist()], kind))
    return values.take(encoded.indices)


def _wire(kind: DataType) -> DataType:
    """Return the type that values are parsed as before the cast. Dates and times have their own formats, so
    they are parsed as texts.
    """
    match kind:
        case Array(element):
            return Array(_wire(element))
        case Map(key, value):
            return Map(key, _wire(value))
        case Row(fields):
            return Row(tuple((name, _wire(part)) for name, part in fields))
        # read by rules of this module; everything else (dates, times) is cast from text afterwards
        case Boolean() | Double() | Float() | DecimalType() | Binary():
            return kind
    return kind if is_integer(kind) else String()


def _document(kind: DataType, strict: bool) -> Reader:
    """Return the parser of a whole text. A blank text is NULL. An unreadable one is NULL, or a row of NULLs
    for a row type; in FAILFAST mode it raises RUN-2004.
    """
    read = _reader(kind, strict)
    nothing = {name: None for name, _ in kind.fields} if isinstance(kind, Row) else None
    # as Spark: FROM_JSON('{"a": 1}', 'ARRAY<STRUCT<a: INT>>') is an array of one row
    single = isinstance(kind, Array) and isinstance(kind.element, Row)

    def whole(text: str | None) -> Any:
        # A blank text is NULL even in FAILFAST mode.
        if text is None or not text.strip():
            return None
        try:
            value = parsed(text)
            # ARRAY<ROW> accepts a single object as an array of one.
            return read([value] if single and isinstance(value, dict) else value)
        except (ValueError, RecursionError):
            if strict:
                raise bad_argument(
                    f"from_json cannot read {text[:80]!r}", "leave FAILFAST out to get NULL"
                ) from None
            return nothing

    return whole


def parsed(text: str) -> Any:
    """Return the first JSON value in a text. Names and strings may be in single quotes. Raise ValueError when
    there is no value.
    """
    begun = text.lstrip(" \t\r\n")
    try:
        return _DECODER.raw_decode(begun)[0]
    except ValueError:
        # single quotes are replaced only where the text is not valid without that
        if "'" not in begun:
            raise
    return _DECODER.raw_decode(_QUOTED.sub(_double_quoted, begun))[0]


def _double_quoted(match: re.Match[str]) -> str:
    single = match.group(1)
    return match.group() if single is None else '"' + re.sub(r'(?<!\\)"', r"\\" + '"', single) + '"'


def _reader(kind: DataType, strict: bool) -> Reader:
    match kind:
        case Row(fields):
            return _row([(name, _reader(part, strict)) for name, part in fields], strict)
        case Array(element):
            return _array(_reader(element, strict))
        case Map(_, value):
            return _map(_reader(value, strict))
        case Boolean():
            return _boolean
        case Double() | Float():
            return _double
        case DecimalType():
            return _decimal(kind)
        case String():
            return text_of
        case Binary():
            return _bytes
    return _integer(kind) if is_integer(kind) else _string


def _row(fields: list[tuple[str, Reader]], strict: bool) -> Reader:
    """Return the parser of a row. A field that does not fit its type is NULL; the other fields are
    unaffected.
    """

    def read(value: Any) -> dict[str, Any]:
        # the caller makes NULL of a ValueError, or an error in FAILFAST mode
        if not isinstance(value, dict):
            raise ValueError
        row = {}
        for name, part in fields:
            field_value = value.get(name)
            try:
                row[name] = None if field_value is None else part(field_value)
            except ValueError:
                if strict:
                    raise
                row[name] = None
        return row

    return read


def _array(element: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValueError
        return [None if part is None else element(part) for part in value]

    return read


def _map(element: Reader) -> Reader:
    def read(value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            raise ValueError
        return [(key, None if part is None else element(part)) for key, part in value.items()]

    return read


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _integer(kind: DataType) -> Reader:
    limits = np.iinfo(to_arrow(kind).to_pandas_dtype())
    low, high = int(limits.min), int(limits.max)

    def read(value: Any) -> int:
        # bool is a subclass of int, but TRUE is no number.
        if type(value) is not int or not low <= value <= high:
            raise ValueError
        return value

    return read


def _double(value: Any) -> float:
    if isinstance(value, str) and value in _NAMED:
        return _NAMED[value]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError
    return float(value)


def _decimal(kind: DecimalType) -> Reader:
    # DECIMAL(5, 2): step 0.01, values below 1000
    step, limit = Decimal(1).scaleb(-kind.scale), Decimal(1).scaleb(kind.precision - kind.scale)

    def read(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
            raise ValueError
        try:
            number = Decimal(value)
            # before quantize, which raises for too many digits
            if not abs(number) < limit:
                raise ValueError
            rounded = number.quantize(step, ROUND_HALF_UP)
        except InvalidOperation:
            raise ValueError from None
        # 9.99 rounds up to 10.0, one digit too many for DECIMAL(2, 1).
        if not abs(rounded) < limit:
            raise ValueError
        return rounded

    return read


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _bytes(value: Any) -> bytes:
    import base64

    return base64.b64decode(_string(value), validate=True)


def text_of(value: Any) -> str:
    """Return a parsed value as a STRING: a string unchanged, any other value as JSON without blanks."""
    if not isinstance(value, str):
        return _written(value)
    # A lone surrogate is no UTF-8; it becomes a question mark.
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(key)}:{_written(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float | Decimal):
        return _number(float(value))
    return json.dumps(value)


def _quoted(text: str) -> str:
    return text_of(json.dumps(text, ensure_ascii=False))


def _number(value: float) -> str:
    """Print a DOUBLE as Java does."""
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    # the shortest digits of the number, without trailing zeros
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{exponent + len(digits) - 1}"
