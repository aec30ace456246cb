"""Map functions: keys, values, entries, and maps built from arrays and texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    columnwise,
    either,
    nulls_of,
    nulls_of_any,
)
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, plain
from penstock.engine.expressions.nested.histogram_bins import histogram_bins
from penstock.engine.expressions.nested.lists import (
    Lists,
    codes_of,
    elements_like,
    firsts,
    interleaved,
    lists_of,
    member,
    picked,
)
from penstock.engine.expressions.text.split_and_join import splitter
from penstock.engine.kernels.arrow_views import string_parts

_FEW_KEYS = 16
"""Texts of one map that are compared with each other: codes for all texts of a batch take 60 ns a text."""


def checked_keys(keys: Lists) -> None:
    """Raise Fault RUN-2004 for a NULL key, or for a duplicate key in a map."""
    if keys.flat.null_count:
        raise bad_argument("a key of a map is NULL")
    again = _repeated(keys)
    if again >= 0:
        raise bad_argument(
            f"the key {keys.flat[again].as_py()!r} occurs twice in a map",
            "keep one value of each key, as by GROUP BY key in a query below",
        )


def _repeated(keys: Lists) -> int:
    """Return the first key that occurs again in its map, -1 without one."""
    largest = int(keys.lengths.max(initial=0))
    if largest < 2:
        return -1
    if largest <= _FEW_KEYS and keys.flat.type == pa.string():
        from penstock.engine.kernels.functions import list_sets  # numba is loaded where it is needed

        return int(list_sets.repeated_text(keys.starts, *string_parts(keys.flat)))
    again = np.flatnonzero(~firsts(keys.starts, codes_of(keys.flat)))
    return int(again[0]) if again.size else -1


def _part(index: int) -> Kernel:
    def part(column: pa.Array) -> pa.Array:
        lists = lists_of(column)
        return Lists(member(lists.flat, index), lists.lengths, lists.missing).column()

    return columnwise(part)


def _entries(column: pa.Array) -> pa.Array:
    return lists_of(column).column()


def _contains_key(data: Datum, key: Datum) -> pa.Array:
    if not isinstance(data, pa.Array):
        data, key = aligned(data, key)
    lists = lists_of(data)
    has_key = lists.any(elements_like(lists, member(lists.flat, 0), key))
    unknown = (
        nulls_of(key) if isinstance(key, pa.Array) else None if key.is_valid else np.ones(len(data), np.bool_)
    )
    return arrow_numpy.array_of(has_key, either(lists.missing, unknown))


def _from_arrays(keys: pa.Array, values: pa.Array) -> pa.Array:
    missing = nulls_of_any(keys, values)
    mine, theirs = lists_of(keys), lists_of(values)
    if missing is not None:
        # the arrays of NULL rows are dropped before lengths are compared
        mine, theirs = (
            Lists(part.flat, part.lengths).filter(~missing[part.parents]) for part in (mine, theirs)
        )
    if (mine.lengths != theirs.lengths).any():
        raise bad_argument("map_from_arrays: the arrays differ in length")
    checked_keys(mine)
    flat = pa.StructArray.from_arrays([mine.flat, theirs.flat], ["key", "value"])
    return Lists(flat, mine.lengths, missing).maps()


def _from_entries(column: pa.Array) -> pa.Array:
    lists = lists_of(column)
    unknown = nulls_of(lists.flat)
    missing = lists.missing
    if unknown is not None:
        # A NULL entry makes the whole map NULL.
        without = lists.any(unknown)
        missing = without if missing is None else missing | without
        lists = lists.filter(~without[lists.parents])
    keys, values = (member(lists.flat, i) for i in range(2))
    checked_keys(Lists(keys, lists.lengths))
    return Lists(pa.StructArray.from_arrays([keys, values], ["key", "value"]), lists.lengths, missing).maps()


def _concat(*columns: pa.Array) -> pa.Array:
    joined = interleaved([lists_of(column) for column in columns])
    # the same key in two maps is an error, as in Spark
    checked_keys(Lists(member(joined.flat, 0), joined.lengths))
    return joined.maps()


def _str_to_map(bound: BoundCall) -> Kernel:
    pairs, keys = (bound.constant(i) if len(bound.kinds) > i else sign for i, sign in ((1, ","), (2, ":")))
    if not isinstance(pairs, str) or not isinstance(keys, str):
        raise bad_argument("the separators of str_to_map are constant texts")
    by_pair, by_key = splitter(pairs), splitter(keys, 2)

    def kernel(text: Datum, *_: Datum) -> pa.Array:
        (column,) = aligned(text)
        missing = nulls_of(column)
        # 'a:1,b:2' to 'a:1' and 'b:2', then each to key and value
        pieces = lists_of(by_pair(pc.fill_null(column, "")))
        if missing is not None:
            pieces = pieces.filter(~missing[pieces.parents])
        halves = lists_of(by_key(pieces.flat))
        # 'a:1,b' has the key b without a value: NULL.
        keys = picked(halves.flat, halves.starts[:-1], None)
        values = picked(halves.flat, halves.starts[:-1] + 1, halves.lengths < 2)
        checked_keys(Lists(keys, pieces.lengths))
        return Lists(
            pa.StructArray.from_arrays([keys, values], ["key", "value"]), pieces.lengths, missing
        ).maps()

    return kernel


MAP_FUNCTIONS: dict[str, Factory] = {
    "map_keys": plain(_part(0)),
    "map_values": plain(_part(1)),
    "map_entries": plain(columnwise(_entries)),
    "map_contains_key": plain(_contains_key),
    "map_from_arrays": plain(columnwise(_from_arrays)),
    "map_from_entries": plain(columnwise(_from_entries)),
    "map_concat": plain(columnwise(_concat)),
    "str_to_map": _str_to_map,
    "histogram_bins": histogram_bins,
}
