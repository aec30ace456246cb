"""CAST from and to VARIANT."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    BOOLEAN,
    DOUBLE,
    STRING,
    Array,
    Boolean,
    DataType,
    Map,
    Row,
    String,
    Variant,
    is_integer,
    is_numeric,
    to_arrow,
)
from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.expressions.datum import Datum
from penstock.engine.expressions.evaluation_errors import bad_cast
from penstock.engine.expressions.json.canonical_text import canonical_texts, escaped
from penstock.engine.expressions.json.path_scan import (
    ABSENT,
    ARRAY,
    ESCAPED,
    JSON_NULL,
    NUMBER,
    OBJECT,
    PARTS,
    SCALARS,
    TEXT,
    TRUTH,
    PathValues,
    scan,
)
from penstock.engine.expressions.json.to_json import quoted, writer
from penstock.engine.expressions.nested.lists import Lists
from penstock.engine.kernels import arrow_views

Conversion = Callable[[pa.Array], pa.Array]
Caster = Callable[[DataType, DataType], Callable[[Datum], Datum] | None]
"""Makes a TRY_CAST, ``None`` where the values stay."""


def to_variant(source: DataType, zone: str) -> Conversion:
    """Return the conversion of a type's values to VARIANT. NULLs within become JSON's null."""
    # a text between quotes is canonical
    if isinstance(source, String):
        return quoted
    write = writer(source, zone, nulls=True)
    return lambda column: canonical_texts(write(column))[0]


def from_variant(target: DataType, safe: bool, cast: Caster) -> Conversion:
    """Return the conversion of VARIANT to a type. JSON's null and an absent field are NULL. What does not fit
    is NULL where ``safe``, else it raises Fault RUN-2003.
    """
    if isinstance(target, Variant):
        return lambda column: column
    if isinstance(target, String):
        return lambda column: _root(column).texts(_root(column).is_any_of((*SCALARS, *PARTS)))
    match target:
        case Row(fields):
            convert = _row([(name, from_variant(part, safe, cast)) for name, part in fields], target)
        case Array(element):
            convert = _array(from_variant(element, safe, cast))
        case Map(_, value):
            convert = _map(from_variant(STRING, safe, cast), from_variant(value, safe, cast))
        case _:
            convert = _scalar(target, cast)

    def checked(column: pa.Array) -> pa.Array:
        values = _root(column)
        result = convert(column, values)
        if not safe:
            misfits = truths(pc.is_null(result)) & ~values.is_any_of((ABSENT, JSON_NULL))
            if misfits.any():
                raise bad_cast(column[int(misfits.argmax())].as_py(), target)
        return result

    return checked


def parts_of(values: PathValues, wanted: np.ndarray) -> pa.Array:
    """Return the wanted values as VARIANT, NULL for the others."""
    return _pieces(values.data, values.starts, np.where(wanted, values.ends - values.starts, -1))


def _pieces(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Return the pieces of texts; a length below zero is NULL."""
    from penstock.engine.kernels.functions import string_split  # numba is loaded where it is needed

    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    string_split.copy_pieces(starts, lengths, data, out)
    return arrow_views.array_of_strings(offsets, out, (lengths >= 0).view(np.uint8), pa.string())


def _root(column: pa.Array) -> PathValues:
    """Return the values themselves, NULL as what is absent."""
    values = scan(column, [], canonical=True)
    if column.null_count:
        values.kinds[truths(pc.is_null(column))] = ABSENT
    return values


def _row(fields: list[tuple[str, Conversion]], target: Row) -> Callable[[pa.Array, PathValues], pa.Array]:
    def convert(column: pa.Array, values: PathValues) -> pa.Array:
        objects = values.is_any_of((OBJECT,))
        parts = []
        for name, read in fields:
            found = scan(column, [escaped(name)], canonical=True)
            parts.append(read(parts_of(found, objects & (found.kinds != ABSENT))))
        return pa.StructArray.from_arrays(parts, fields=list(to_arrow(target)), mask=array_of(~objects))

    return convert


def _children(values: PathValues, wanted: np.ndarray) -> tuple[pa.Array, pa.Array, np.ndarray]:
    """Return the names and the values of all wanted containers, and how many each has."""
    from penstock.engine.kernels.functions import variants

    lengths = np.where(wanted, values.counts, 0)
    bounds = np.empty((4, int(lengths.sum())), np.int64)
    variants.locate_children(values.data, values.starts, values.ends, wanted.view(np.uint8), *bounds)
    names = _pieces(values.data, bounds[0], bounds[1] - bounds[0])
    return names, _pieces(values.data, bounds[2], bounds[3] - bounds[2]), lengths


def _array(element: Conversion) -> Callable[[pa.Array, PathValues], pa.Array]:
    def convert(column: pa.Array, values: PathValues) -> pa.Array:
        wanted = values.is_any_of((ARRAY,))
        _, flat, lengths = _children(values, wanted)
        return Lists(element(flat), lengths, ~wanted).column()

    return convert


def _map(key: Conversion, value: Conversion) -> Callable[[pa.Array, PathValues], pa.Array]:
    def convert(column: pa.Array, values: PathValues) -> pa.Array:
        wanted = values.is_any_of((OBJECT,))
        names, flat, lengths = _children(values, wanted)
        entries = pa.StructArray.from_arrays([key(names), value(flat)], names=["key", "value"])
        return Lists(entries, lengths, ~wanted).maps()

    return convert


def _scalar(target: DataType, cast: Caster) -> Callable[[pa.Array, PathValues], pa.Array]:
    """Return the conversion of texts, numbers and truths: as CAST of a STRING, a number or a BOOLEAN."""
    nothing = pa.scalar(None, to_arrow(target))
    read, is_number = _tried(cast, STRING, target), is_numeric(target)

    def convert(column: pa.Array, values: PathValues) -> pa.Array:
        result = read(values.texts(values.is_any_of((TEXT, ESCAPED))))
        numbers, truth = values.is_any_of((NUMBER,)), values.is_any_of((TRUTH,))
        if numbers.any() and (is_number or isinstance(target, Boolean)):
            converted = _numbers(values.texts(numbers), target, cast)
            result = pc.if_else(array_of(numbers), converted, result)
        if truth.any() and (is_number or isinstance(target, Boolean)):
            read_truths = _tried(cast, STRING, BOOLEAN)(values.texts(truth))
            converted = _tried(cast, BOOLEAN, target)(read_truths)
            result = pc.if_else(array_of(truth), converted, result)
        return pc.if_else(array_of(values.is_any_of((ABSENT, JSON_NULL))), nothing, result)

    return convert


def _numbers(texts: pa.Array, target: DataType, cast: Caster) -> pa.Array:
    if isinstance(target, Boolean):
        return pc.not_equal(_tried(cast, STRING, DOUBLE)(texts), 0.0)
    if not is_integer(target):
        return _tried(cast, STRING, target)(texts)
    # a decimal is cut towards zero, a double too
    whole = _tried(cast, STRING, target)(pc.replace_substring_regex(texts, r"\..*$", ""))
    doubles = pc.fill_null(pc.match_substring(texts, "E"), False)
    if not pc.any(doubles).as_py():
        return whole
    return pc.if_else(doubles, _tried(cast, DOUBLE, target)(_tried(cast, STRING, DOUBLE)(texts)), whole)


def _tried(cast: Caster, source: DataType, target: DataType) -> Callable[[pa.Array], pa.Array]:
    kernel = cast(source, target)
    return (lambda column: column) if kernel is None else kernel
