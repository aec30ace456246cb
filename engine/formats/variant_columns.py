"""VARIANT columns as files hold them: JSON's logical type in files of Arrow and JSON, the binary encoding of
VARIANT in Parquet (a struct of ``metadata`` and ``value``, as Spark 4 writes it).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    Array,
    DataType,
    Map,
    Row,
    Variant,
    from_arrow,
    holds,
    to_arrow,
)
from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.expressions.casts.to_text import without_zeros
from penstock.engine.expressions.duckdb_fallback import duckdb_kernel
from penstock.engine.expressions.json.canonical_text import canonical_texts
from penstock.engine.expressions.json.to_json import quoted, writer
from penstock.engine.expressions.nested.lists import Lists, lists_of
from penstock.engine.formats.text_conversion import uuid_texts
from penstock.engine.kernels import arrow_views

JSON_TYPE = pa.json_(pa.string())
"""Marks a text that is JSON: writers of JSON put it in as it is."""
BINARY_TYPE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
"""A value in the encoding of Parquet; names and order as in its specification."""
SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""What Spark knows a file's own types by: without it, it reads a struct."""
# types of the encoding that Arrow writes as text
_DOUBLE, _DATE, _INSTANT, _LOCAL, _FLOAT, _BYTES, _TIME = 7, 11, 12, 13, 14, 15, 17
_INSTANT_NS, _LOCAL_NS, _UUID = 18, 19, 20


def stored_type(kind: DataType, binary: bool) -> pa.DataType:
    """Return the type that a file holds values of ``kind`` in; ``binary`` as Parquet encodes VARIANT."""
    match kind:
        case Variant():
            return BINARY_TYPE if binary else JSON_TYPE
        case Array(element) if holds(kind, Variant):
            return pa.list_(stored_type(element, binary))
        case Map(key, value) if holds(kind, Variant):
            return pa.map_(to_arrow(key), stored_type(value, binary))
        case Row(fields) if holds(kind, Variant):
            return pa.struct([pa.field(name, stored_type(part, binary)) for name, part in fields])
    return to_arrow(kind)


class StoredColumns:
    """The columns of a file of a format, and how those with VARIANT become what the file holds."""

    def __init__(self, names: Sequence[str], kinds: Sequence[DataType], held: str) -> None:
        self._binary = held == "parquet"
        # csv holds the text of a VARIANT, as of any other value
        self._marked = [held != "csv" and holds(kind, Variant) for kind in kinds]
        self._kinds = kinds
        types = [
            stored_type(kind, self._binary) if marked else to_arrow(kind)
            for kind, marked in zip(kinds, self._marked, strict=True)
        ]
        fields = list(map(pa.field, names, types))
        spark = spark_schema(list(zip(names, kinds, strict=True))) if self._binary else None
        self.schema = pa.schema(fields, spark or None)
        """The schema of the file."""

    def of(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """Return columns of the engine as the file's."""
        made = [
            stored_column(column, kind, self._binary) if marked else column
            for column, kind, marked in zip(columns, self._kinds, self._marked, strict=True)
        ]
        return pa.RecordBatch.from_arrays(made, schema=self.schema)


def stored_column(column: pa.Array, kind: DataType, binary: bool) -> pa.Array:
    """Return a column as a file holds it: the type is ``stored_type``."""
    if not holds(kind, Variant):
        return column
    match kind:
        case Array(element):
            lists = lists_of(column)
            return Lists(stored_column(lists.flat, element, binary), lists.lengths, lists.missing).column()
        case Map(_, value):
            lists = lists_of(column)
            keys, values = (pc.struct_field(lists.flat, index) for index in range(2))
            entries = pa.StructArray.from_arrays(
                [keys, stored_column(values, value, binary)], ["key", "value"]
            )
            return Lists(entries, lists.lengths, lists.missing).maps()
        case Row(fields):
            parts = [
                stored_column(pc.struct_field(column, i), part, binary) for i, (_, part) in enumerate(fields)
            ]
            mask = pc.is_null(column) if column.null_count else None
            return pa.StructArray.from_arrays(parts, fields=list(stored_type(kind, binary)), mask=mask)
    return encoded(column) if binary else pa.ExtensionArray.from_storage(JSON_TYPE, column)


def encoded(texts: pa.Array) -> pa.Array:
    """Return values of VARIANT in the encoding of Parquet."""
    from penstock.engine.kernels.functions import variant_writer

    offsets, data = arrow_views.string_parts(texts)
    valid = arrow_views.validity(texts)
    rows, size = len(texts), int(offsets[-1]) - int(offsets[0])
    counts, doubles = np.empty(size + 1, np.int64), np.empty(size + 3, np.int64)
    sizes = np.empty(4 * rows, np.int64)
    used = variant_writer.measure(offsets, data, valid, counts, doubles, sizes)
    numbers = _doubles(data, doubles[1 : 1 + 2 * int(doubles[0])].reshape(-1, 2))
    value_offsets, name_offsets = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
    values, names = (np.empty(int(sizes[word::4].sum()), np.uint8) for word in range(2))
    longest = int(np.diff(offsets).max(initial=0))
    table = np.zeros(2 << max(2, (longest // 3 + 2).bit_length()), np.int64)
    variant_writer.write(
        offsets, data, valid, counts[:used], numbers, sizes, value_offsets, values, name_offsets, names, table
    )
    parts = [
        arrow_views.array_of_strings(ends, octets[: ends[-1]], arrow_views.NO_BYTES, pa.binary())
        for ends, octets in ((name_offsets, names), (value_offsets, values))
    ]
    mask = pc.is_null(texts) if texts.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(BINARY_TYPE), mask=mask)


def _doubles(data: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    if not len(bounds):
        return np.zeros(0, np.float64)
    return numbers_of(
        _pieces(data, bounds[:, 0], bounds[:, 1] - bounds[:, 0]).cast(pa.string()).cast("double")
    )


def _pieces(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Return pieces of bytes as BINARY."""
    from penstock.engine.kernels.functions import string_split

    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    string_split.copy_pieces(np.ascontiguousarray(starts), np.ascontiguousarray(lengths), data, out)
    return arrow_views.array_of_strings(offsets, out, arrow_views.NO_BYTES, pa.binary())


def is_encoded(kind: pa.DataType) -> bool:
    """Return whether a type of a file may be VARIANT in the encoding of Parquet."""
    if not pa.types.is_struct(kind):
        return False
    names = {field.name for field in kind}
    return (
        {"metadata"} < names <= {"metadata", "value", "typed_value"}
        and kind.num_fields == len(names)
        and all(_is_octets(field.type) for field in kind if field.name != "typed_value")
    )


def _is_octets(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)


def decoded(column: pa.Array) -> pa.Array:
    """Return values in the encoding of Parquet as VARIANT, shredded or not. ArrowInvalid for a value that is
    none.
    """
    names = pc.struct_field(column, "metadata").cast(pa.binary())
    if pc.any(pc.and_(pc.is_valid(column), pc.is_null(names))).as_py():
        raise pa.ArrowInvalid("a VARIANT has no metadata")
    texts = _assembled(column, names)
    if texts.null_count > column.null_count:
        # neither part has the value: null is the one that is left
        texts = pc.if_else(pc.is_valid(column), pc.fill_null(texts, "null"), texts)
    values, wrong = canonical_texts(texts)
    if wrong.any():
        raise pa.ArrowInvalid("a VARIANT has a field twice, or too many levels")
    return values


def _assembled(column: pa.Array, names: pa.Array) -> pa.Array:
    """Return the JSON of values, a part of which may be in columns of its own (shredding); NULL for a value
    that is absent.
    """
    parts = {field.name for field in column.type}
    texts = pa.nulls(len(column), pa.string())
    if "value" in parts:
        texts = _json(pc.struct_field(column, "value").cast(pa.binary()), names)
    if "typed_value" not in parts:
        return texts
    typed = pc.struct_field(column, "typed_value")
    if pa.types.is_struct(typed.type):
        return pc.coalesce(_assembled_objects(typed, texts, names), texts)
    if _is_list(typed.type):
        lists = lists_of(typed)
        elements = _assembled(lists.flat, names.take(array_of(lists.parents)))
        joined = pc.binary_join(
            Lists(pc.fill_null(elements, "null"), lists.lengths, lists.missing).column(), ","
        )
        return pc.coalesce(pc.binary_join_element_wise("[", joined, "]", ""), texts)
    return pc.coalesce(_typed(typed), texts)


def _assembled_objects(typed: pa.Array, others: pa.Array, names: pa.Array) -> pa.Array:
    """Return objects whose fields are columns; ``others`` are objects of the fields that have none."""
    members = []
    for field in typed.type:
        text = _assembled(pc.struct_field(typed, field.name), names)
        name = quoted(pa.array([field.name]))[0].as_py()
        members.append(pc.fill_null(pc.binary_join_element_wise(f",{name}:", text, ""), ""))
    if not pc.all(pc.or_kleene(pc.is_null(typed), pc.starts_with(others, "{"))).as_py():
        raise pa.ArrowInvalid("the rest of a shredded VARIANT is no object")
    rest = pc.utf8_slice_codeunits(others, 1, -1)
    rest = pc.if_else(pc.equal(rest, ""), "", pc.binary_join_element_wise(",", rest, ""))
    fields = pc.utf8_slice_codeunits(
        pc.binary_join_element_wise(*members, pc.fill_null(rest, ""), ""), 1, None
    )
    objects = pc.binary_join_element_wise("{", fields, "}", "")
    return pc.if_else(pc.is_valid(typed), objects, pa.scalar(None, pa.string()))


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _typed(column: pa.Array) -> pa.Array:
    """Return the JSON of a column of one type."""
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return _typed(column.storage)
    if kind == pa.binary(16):
        return quoted(uuid_texts(column))
    # as CAST writes it: without zeros at the end of a fraction; an instant as of UTC
    if pa.types.is_timestamp(kind):
        texts = without_zeros(_time_texts(column.cast(pa.timestamp(kind.unit))))
        return quoted(pc.binary_join_element_wise(texts, "+00:00" if kind.tz else "", ""))
    if pa.types.is_time(kind) or pa.types.is_date(kind):
        texts = _time_texts(column)
        return quoted(texts if pa.types.is_date(kind) else without_zeros(texts))
    return writer(from_arrow(kind), "UTC")(column)


def _time_texts(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    # Arrow writes "<value out of range: 9>"
    if pc.any(pc.starts_with(texts, "<")).as_py():
        raise pa.ArrowInvalid("a date or a time of a VARIANT is out of range")
    return texts


def _json(values: pa.Array, metadata: pa.Array) -> pa.Array:
    """Return values in the binary encoding as JSON, NULL for NULL."""
    from penstock.engine.kernels.functions import variant_reader

    known = arrow_views.validity(values)
    (offsets, data), (name_offsets, names) = _bytes_of(values), _bytes_of(metadata)
    states, ends = np.zeros(len(values), np.uint8), np.empty(len(values) + 1, np.int64)
    listed = np.empty(3 * int(offsets[-1] - offsets[0]) + 4, np.int64)
    nothing = np.zeros(1, np.int64), np.zeros(1, np.uint8)
    source = data, offsets, names, name_offsets, known, listed
    # a bound of the text is at most six times as long as the text
    most = 6 * LIMITS.array_bytes
    bound = variant_reader.read(*source, False, most, *nothing, ends, np.empty(1, np.uint8), states)
    if states.any():
        raise pa.ArrowInvalid("the bytes are no VARIANT")
    if bound > most:
        raise TooLarge(bound)
    pieces = _written(data, listed[1 : 1 + 3 * int(listed[0])].reshape(-1, 3))
    piece_offsets, piece_bytes = _bytes_of(pieces)
    out = np.empty(bound + int(piece_offsets[-1]) + variant_reader.DIGITS, np.uint8)
    used = variant_reader.read(*source, True, len(out), piece_offsets, piece_bytes, ends, out, states)
    texts = arrow_views.array_of_strings(ends, out[:used], known, pa.string())
    # Arrow's kernels read beyond the end of a text that is no UTF-8
    texts.validate(full=True)
    return texts


def _bytes_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    offsets, data = arrow_views.string_parts(column)
    return offsets.astype(np.int64), data if data.size else np.zeros(1, np.uint8)


def _written(data: np.ndarray, listed: np.ndarray) -> pa.Array:
    """Return the JSON of the values that the kernel has listed, in their order."""
    texts, order = [], []
    for kind in np.unique(listed[:, 0]).tolist():
        mine = np.flatnonzero(listed[:, 0] == kind)
        octets = _pieces(data, listed[mine, 1], listed[mine, 2])
        texts.append(_json_of(kind, octets))
        order.append(mine)
    if not texts:
        return pa.array([], pa.string())
    positions = np.concatenate(order)
    back = np.empty(len(positions), np.int64)
    back[positions] = np.arange(len(positions))
    return pa.concat_arrays(texts).take(array_of(back))


def _json_of(kind: int, octets: pa.Array) -> pa.Array:
    """Return values of one type of the encoding as JSON."""
    if kind == _BYTES:
        return quoted(duckdb_kernel("base64({0})", pa.string())(octets))
    raw = octets.buffers()[2]
    if kind == _UUID:
        return quoted(uuid_texts(pa.Array.from_buffers(pa.binary(16), len(octets), [None, raw])))
    return _typed(pa.Array.from_buffers(_TYPES[kind], len(octets), [None, raw]))


_TYPES: dict[int, pa.DataType] = {
    _DOUBLE: pa.float64(),
    _FLOAT: pa.float32(),
    _DATE: pa.date32(),
    _INSTANT: pa.timestamp("us", "UTC"),
    _LOCAL: pa.timestamp("us"),
    _TIME: pa.time64("us"),
    _INSTANT_NS: pa.timestamp("ns", "UTC"),
    _LOCAL_NS: pa.timestamp("ns"),
}

_SPARK_NAMES = {
    "TINYINT": "byte",
    "SMALLINT": "short",
    "INT": "integer",
    "BIGINT": "long",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP_LTZ": "timestamp",
}
"""Spark's names of types where they are not ours in small letters."""


def spark_schema(fields: list[tuple[str, DataType]]) -> dict[str, str]:
    """Return what a Parquet file says of its columns to Spark; nothing where no column is VARIANT."""
    if not any(holds(kind, Variant) for _, kind in fields):
        return {}
    return {SPARK_SCHEMA: json.dumps(_spark_type(Row(tuple(fields))))}


def _spark_type(kind: DataType) -> Any:
    match kind:
        case Row(fields):
            parts = [
                {"name": name, "type": _spark_type(part), "nullable": True, "metadata": {}}
                for name, part in fields
            ]
            return {"type": "struct", "fields": parts}
        case Array(element):
            return {"type": "array", "elementType": _spark_type(element), "containsNull": True}
        case Map(key, value):
            return {
                "type": "map",
                "keyType": _spark_type(key),
                "valueType": _spark_type(value),
                "valueContainsNull": True,
            }
    return _SPARK_NAMES.get(str(kind).partition("(")[0], str(kind).lower())
