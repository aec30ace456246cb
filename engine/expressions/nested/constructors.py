"""Constructors of arrays, maps and rows, and access to their parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import Map, Row, TimestampLtz, to_arrow
from penstock.engine.expressions.datetime.date_arithmetic import to_instant, to_local
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    array_of,
    either,
    nulls_of,
    nulls_of_any,
    values_of,
)
from penstock.engine.expressions.evaluation_errors import Fault, bad_argument
from penstock.engine.expressions.kernel_factory import BoundCall, Factory
from penstock.engine.expressions.nested.lists import Lists, elements_like, lists_of, member, picked
from penstock.engine.expressions.nested.map_functions import checked_keys


def _array(bound: BoundCall) -> Kernel:
    kind = to_arrow(bound.call.type).value_type

    def kernel(*data: Datum) -> pa.Array:
        columns = aligned(*data)
        if not columns:
            # ARRAY[]: one empty list for all rows.
            return pa.array([[]], pa.list_(kind))
        return alternated(
            [column if column.type == kind else column.cast(kind) for column in columns]
        ).column()

    return kernel


def alternated(columns: Sequence[pa.Array]) -> Lists:
    """Return one list per row with one element of each column."""
    rows, width = len(columns[0]), len(columns)
    flat = pa.concat_arrays(columns)
    # From column by column to row by row.
    order = np.arange(rows * width).reshape(width, rows).T.reshape(-1)
    return Lists(flat.take(array_of(order, None, pa.int64())), np.full(rows, width, np.int64))


def _map(bound: BoundCall) -> Kernel:
    kind = bound.call.type
    assert isinstance(kind, Map)

    def kernel(*data: Datum) -> pa.Array:
        columns = aligned(*data)
        keys, values = alternated(columns[::2]), alternated(columns[1::2])
        # MAP['a', 1, 'a', 2] is an error, as in Spark
        checked_keys(keys)
        flat = pa.StructArray.from_arrays([keys.flat, values.flat], ["key", "value"])
        return Lists(flat, keys.lengths).maps()

    return kernel


def _row(first: int, step: int) -> Factory:
    """Return the factory of a row constructor over every ``step``-th argument from ``first`` on."""

    def factory(bound: BoundCall) -> Kernel:
        kind = bound.call.type
        assert isinstance(kind, Row)
        fields = list(to_arrow(kind))

        def kernel(*data: Datum) -> pa.Array:
            return pa.StructArray.from_arrays(aligned(*data)[first::step], fields=fields)

        return kernel

    return factory


def _field(bound: BoundCall) -> Kernel:
    position = bound.constant(1)
    # a NULL row has NULL fields: struct_field keeps the row's mask
    return lambda row, _: pc.struct_field(row, position)


def _element(outside: str, base: int = 1) -> Factory:
    """Return the factory of array element access. ``base`` is the position of the first element. ``outside``
    says what a position without an element does: ``null`` and ``end`` return NULL, ``fail`` raises. Except
    with ``null``, negative positions count from the end and 0 raises.
    """

    def factory(bound: BoundCall) -> Kernel:
        # m['key'] and a[1] have one syntax.
        if isinstance(bound.kinds[0], Map):
            return _value_of_key

        def kernel(data: Datum, index: Datum) -> pa.Array:
            column, indexes = aligned(data, index)
            lists, wanted = lists_of(column), values_of(indexes).astype(np.int64)
            unknown = nulls_of_any(column, indexes)
            known = np.ones(wanted.size, np.bool_) if unknown is None else ~unknown
            # a[1] and get(a, 0) only count from the start.
            nth = wanted - base
            if outside != "null":
                if (known & (wanted == 0)).any():
                    raise bad_argument("there is no element 0: elements count from 1, or from -1 at the end")
                nth = np.where(wanted < 0, lists.lengths + wanted, nth)
            inside = known & (nth >= 0) & (nth < lists.lengths)
            if outside == "fail" and (known & ~inside).any():
                raise _outside(wanted, lists.lengths, known & ~inside)
            return picked(lists.flat, lists.starts[:-1] + nth, ~inside)

        return kernel

    return factory


def _outside(indexes: np.ndarray, lengths: np.ndarray, wrong: np.ndarray) -> Fault:
    row = int(np.flatnonzero(wrong)[0])
    return bad_argument(
        f"there is no element {indexes[row]} in an array of {lengths[row]}",
        "write try_element_at(a, i) to get NULL",
    )


def _value_of_key(data: Datum, key: Datum) -> pa.Array:
    if not isinstance(data, pa.Array):
        data, key = aligned(data, key)
    lists = lists_of(data)
    # at most one entry a row, because keys are unique
    hit = np.flatnonzero(elements_like(lists, member(lists.flat, 0), key))
    positions = np.full(len(data), -1, np.int64)
    positions[lists.parents[hit]] = hit
    unknown = nulls_of(key) if isinstance(key, pa.Array) else None
    missing = either(positions < 0, unknown)
    return picked(member(lists.flat, 1), positions, missing)


def _at_time_zone(bound: BoundCall) -> Kernel:
    zone = str(bound.constant(1))
    if isinstance(bound.kinds[0], TimestampLtz):
        return lambda time, _: to_local(aligned(time)[0], zone)
    return lambda time, _: to_instant(aligned(time)[0], zone)


NESTED_ACCESS: dict[str, Factory] = {
    "array": _array,
    "map": _map,
    "struct": _row(0, 1),
    "named_struct": _row(1, 2),
    "field": _field,
    "element": _element("null"),
    "element_at": _element("fail"),
    "try_element_at": _element("end"),
    "get": _element("null", 0),
    "at_time_zone": _at_time_zone,
}
