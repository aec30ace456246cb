"""CAST of arrays, maps and rows: part by part. As text they print as in Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import Array, DataType, Map, Row, to_arrow
from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import Kernel, nulls_of
from penstock.engine.expressions.nested.lists import Lists, lists_of
from penstock.engine.expressions.nested.map_functions import checked_keys

Conversion = Callable[[pa.Array], pa.Array]
PartCast = Callable[[DataType, DataType], Kernel | None]
"""What casts a part of one type to another; ``None``: it stays as it is."""


def nested_cast(source: DataType, target: DataType, part: PartCast) -> Conversion | None:
    """Return the conversion between two nested types, ``None`` where there is none."""
    match source, target:
        # element by element; entry by entry; field by field, by position
        case Array(mine), Array(theirs):
            return _array(part(mine, theirs), to_arrow(target))
        case Map(), Map():
            return _map(part(source.key, target.key), part(source.value, target.value), to_arrow(target))
        case Row(), Row():
            kernels = [
                part(mine, theirs)
                for (_, mine), (_, theirs) in zip(source.fields, target.fields, strict=True)
            ]
            return _row(kernels, list(to_arrow(target)))
    return None


def _cast(kernel: Kernel | None, column: pa.Array) -> pa.Array:
    return column if kernel is None else kernel(column)


def _array(kernel: Kernel | None, arrow: pa.DataType) -> Conversion:
    def convert(column: pa.Array) -> pa.Array:
        lists = lists_of(column)
        # elements of all rows in one call; the final cast only sets names of fields
        return Lists(_cast(kernel, lists.flat), lists.lengths, lists.missing).column().cast(arrow)

    return convert


def _map(key: Kernel | None, value: Kernel | None, arrow: pa.DataType) -> Conversion:
    def convert(column: pa.Array) -> pa.Array:
        lists = lists_of(column)
        keys, values = (
            _cast(kernel, pc.struct_field(lists.flat, i)) for i, kernel in enumerate((key, value))
        )
        # casts may make two keys equal: CAST(MAP['1', .., '01', ..] AS MAP<INT, ..>)
        if key is not None:
            checked_keys(Lists(keys, lists.lengths))
        flat = pa.StructArray.from_arrays([keys, values], ["key", "value"])
        return Lists(flat, lists.lengths, lists.missing).maps().cast(arrow)

    return convert


def _row(kernels: list[Kernel | None], fields: list[pa.Field]) -> Conversion:
    def convert(column: pa.Array) -> pa.Array:
        parts = [_cast(kernel, pc.struct_field(column, i)) for i, kernel in enumerate(kernels)]
        # a NULL row has fields all the same: the mask is put back
        missing = nulls_of(column)
        return pa.StructArray.from_arrays(
            parts, fields=fields, mask=None if missing is None else arrow_numpy.array_of(missing)
        )

    return convert


def nested_text(source: DataType, text_of: Callable[[DataType], Conversion]) -> Conversion:
    """Return the conversion of a nested type to text: ``[1, null]``, ``{k -> v}``, ``{1, x}``."""
    match source:
        # parts are printed by their own types, and then joined
        case Array(element):
            return _list_text(text_of(element), "[", "]")
        case Map(key, value):
            return _map_text(text_of(key), text_of(value))
        case Row(fields):
            return _row_text([text_of(kind) for _, kind in fields])
    raise AssertionError(source)


def _shown(convert: Conversion, column: pa.Array) -> pa.Array:
    return pc.fill_null(convert(column), "null")


def _enclosed(inner: pa.Array, left: str, right: str, missing: pa.Array | None) -> pa.Array:
    text = pc.binary_join_element_wise(left, inner, right, "")
    return text if missing is None else pc.if_else(missing, pa.scalar(None, pa.string()), text)


def _list_text(element: Conversion, left: str, right: str) -> Conversion:
    def convert(column: pa.Array) -> pa.Array:
        lists = lists_of(column)
        # printed without the mask: binary_join would make NULL lists NULL, which is done at the end
        joined = pc.binary_join(Lists(_shown(element, lists.flat), lists.lengths).column(), ", ")
        return _enclosed(
            joined, left, right, None if lists.missing is None else arrow_numpy.array_of(lists.missing)
        )

    return convert


def _map_text(key: Conversion, value: Conversion) -> Conversion:
    def entry(flat: pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(
            _shown(key, pc.struct_field(flat, 0)), _shown(value, pc.struct_field(flat, 1)), " -> "
        )

    return _list_text(entry, "{", "}")


def _row_text(parts: list[Conversion]) -> Conversion:
    def convert(column: pa.Array) -> pa.Array:
        shown = [_shown(part, pc.struct_field(column, i)) for i, part in enumerate(parts)]
        missing = nulls_of(column)
        # a row prints without the names of its fields
        joined = pc.binary_join_element_wise(*shown, ", ")
        return _enclosed(joined, "{", "}", None if missing is None else arrow_numpy.array_of(missing))

    return convert
