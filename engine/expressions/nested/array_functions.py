"""Array functions: search, sort, slice, concatenate, and set operations."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import Array
from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import (
    Datum,
    Kernel,
    aligned,
    array_of,
    columnwise,
    either,
    nulls_of,
    nulls_of_any,
    values_of,
)
from penstock.engine.expressions.evaluation_errors import bad_argument, check_sizes
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, plain
from penstock.engine.expressions.nested.comparison import sort_keys
from penstock.engine.expressions.nested.lists import (
    Lists,
    common_codes,
    elements_like,
    firsts,
    interleaved,
    lists_of,
    members,
    picked,
)
from penstock.engine.expressions.text.scanned_texts import reversed_texts
from penstock.engine.expressions.text.strings import octets

_FEW_ELEMENTS = 2_000
"""Elements that numpy sorts as quickly as machine code is loaded."""
_SHORT = 64
"""Elements of a list that is sorted by inserting one after another."""


def _size(column: pa.Array) -> pa.Array:
    lists = lists_of(column)
    return arrow_numpy.array_of(lists.lengths.astype(np.int32), lists.missing)


def _matching_elements(data: Datum, value: Datum) -> tuple[Lists, np.ndarray, np.ndarray | None]:
    """Return the lists, the mask of elements equal to the row's value, and the mask of rows with a NULL
    operand.
    """
    if not isinstance(data, pa.Array):
        data, value = aligned(data, value)
    lists = lists_of(data)
    # a NULL value to search for makes the row NULL
    unknown = (
        nulls_of(value)
        if isinstance(value, pa.Array)
        else None
        if value.is_valid
        else np.ones(len(data), np.bool_)
    )
    return lists, elements_like(lists, lists.flat, value), either(lists.missing, unknown)


def _contains(data: Datum, value: Datum) -> pa.Array:
    lists, same, missing = _matching_elements(data, value)
    has_match = lists.any(same)
    # Without a match, a NULL element makes the answer unknown: array_contains([1, NULL], 2) is NULL.
    unknown = nulls_of(lists.flat)
    if unknown is not None:
        missing = either(missing, lists.any(unknown) & ~has_match)
    return arrow_numpy.array_of(has_match, missing)


def _position(data: Datum, value: Datum) -> pa.Array:
    lists, same, missing = _matching_elements(data, value)
    result = np.zeros(lists.lengths.size, np.int64)
    # Backwards, so that the first match is written last.
    hits = np.flatnonzero(same)[::-1]
    result[lists.parents[hits]] = lists.nth[hits] + 1
    return arrow_numpy.array_of(result, missing)


def _remove(data: Datum, value: Datum) -> pa.Array:
    lists, same, missing = _matching_elements(data, value)
    remaining = lists.filter(~same if missing is None else ~same & ~missing[lists.parents])
    return Lists(remaining.flat, remaining.lengths, missing).column()


def _extended(column: pa.Array, value: pa.Array, at_end: bool) -> pa.Array:
    one = Lists(value, np.ones(len(value), np.int64))
    lists = lists_of(column)
    return interleaved([lists, one] if at_end else [one, lists]).column()


def _distinct(column: pa.Array) -> pa.Array:
    lists = lists_of(column)
    # the first of equal elements stays, at its position
    return lists.filter(firsts(lists.starts, *common_codes(lists.flat))).column()


def _compact(column: pa.Array) -> pa.Array:
    lists = lists_of(column)
    return lists.filter(arrow_numpy.truths(lists.flat.is_valid())).column()


def _concat(*columns: pa.Array) -> pa.Array:
    return interleaved([lists_of(column) for column in columns]).column()


def order_in_lists(lists: Lists, ascending: np.ndarray | bool = True, nulls_last: bool = False) -> np.ndarray:
    """Return the positions of all elements, list by list, each list sorted. NULLs come first (last when
    descending); NaN is the greatest.
    """
    rank = _ranks(lists.flat)
    # Ranks of all elements, then one sort by list and rank: no loop over lists.
    sort_ranks = np.where(np.broadcast_to(ascending, lists.lengths.shape)[lists.parents], rank, -rank)
    if nulls_last:
        # above every rank
        sort_ranks = np.where(arrow_numpy.truths(lists.flat.is_valid()), sort_ranks, np.iinfo(np.int64).max)
    if len(lists.flat) < _FEW_ELEMENTS or int(lists.lengths.max(initial=0)) > _SHORT:
        return np.lexsort((sort_ranks, lists.parents))
    from penstock.engine.kernels.functions import list_sets  # numba is loaded where it is needed

    order = np.empty(len(lists.flat), np.int64)
    list_sets.order_lists(lists.starts, np.array(sort_ranks, np.int64), order)
    return order


def _ranks(values: pa.Array) -> np.ndarray:
    # whole numbers and times without NULL sort as they are; one bit is left for the sign of a descending rank
    if (pa.types.is_integer(values.type) or pa.types.is_temporal(values.type)) and not values.null_count:
        numbers = values_of(values).astype(np.int64)
        if numbers.size and numbers.min() > np.iinfo(np.int64).min and numbers.max() < np.iinfo(np.int64).max:
            return numbers
    columns: list[pa.Array] = []
    for key in sort_keys(values):
        # Validity and NaN are keys before the value, since Arrow sorts both to the end.
        columns.append(key.is_valid().cast(pa.int8()))
        if pa.types.is_floating(key.type):
            columns.append(pc.fill_null(pc.is_nan(key), False).cast(pa.int8()))
        columns.append(key.cast(pa.int8()) if pa.types.is_boolean(key.type) else key)
    names = [f"k{i}" for i in range(len(columns))]
    table = pa.RecordBatch.from_arrays(columns, names=names)
    rank = np.empty(len(values), np.int64)
    rank[pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]).to_numpy()] = np.arange(
        len(values)
    )
    return rank


def _sort_array(*columns: pa.Array) -> pa.Array:
    missing = nulls_of_any(*columns)
    lists = lists_of(columns[0])
    # one direction a row
    ascending = arrow_numpy.is_true(columns[1]) if len(columns) > 1 else True
    result = lists.ordered(order_in_lists(lists, ascending))
    if missing is not None:
        result = result.filter(~missing[result.parents])
    return Lists(result.flat, result.lengths, missing).column()


def _array_sort(column: pa.Array) -> pa.Array:
    lists = lists_of(column)
    return lists.ordered(order_in_lists(lists, nulls_last=True)).column()


def _extreme_number(lists: Lists, largest: bool) -> pa.Array:
    """Return the extreme of each list of whole numbers or times, NULL of an empty list."""
    empty = lists.lengths == 0
    values = values_of(lists.flat)
    result = np.zeros(empty.size, values.dtype)
    # empty lists have no elements between those of others
    if values.size:
        reduce = np.maximum if largest else np.minimum
        result[~empty] = reduce.reduceat(values, lists.starts[:-1][~empty])
    return array_of(result, empty, lists.flat.type)


def _extreme(largest: bool) -> Kernel:
    def extreme(column: pa.Array) -> pa.Array:
        # NULL elements do not take part
        lists = lists_of(column).filter(arrow_numpy.truths(lists_of(column).flat.is_valid()))
        if pa.types.is_integer(lists.flat.type) or pa.types.is_temporal(lists.flat.type):
            return _extreme_number(lists, largest)
        order = order_in_lists(lists)
        last_or_first = lists.starts[1:] - 1 if largest else lists.starts[:-1]
        empty = lists.lengths == 0
        return picked(
            lists.flat, order[np.where(empty, 0, last_or_first)] if order.size else last_or_first, empty
        )

    return columnwise(extreme)


def _repeat(value: pa.Array, times: pa.Array) -> pa.Array:
    missing = nulls_of(times)
    counts = np.maximum(values_of(times).astype(np.int64), 0)
    lengths = counts if missing is None else np.where(missing, 0, counts)
    # Copies of nested elements and of texts count too.
    check_sizes("array_repeat", lengths, "elements")
    if pa.types.is_list(value.type):
        check_sizes("array_repeat", lists_of(value).lengths * lengths, "elements")
    elif pa.types.is_string(value.type):
        check_sizes("array_repeat", octets(value) * lengths, "bytes")
    return Lists(
        value.take(arrow_numpy.array_of(np.repeat(np.arange(len(value)), lengths))), lengths, missing
    ).column()


def _slice(column: pa.Array, start: pa.Array, length: pa.Array) -> pa.Array:
    lists = lists_of(column)
    missing = nulls_of_any(column, start, length)
    known = np.ones(len(column), np.bool_) if missing is None else ~missing
    first, count = values_of(start).astype(np.int64), values_of(length).astype(np.int64)
    if (known & (first == 0)).any():
        raise bad_argument("slice: the start is 0; elements count from 1, or from -1 at the end")
    if (known & (count < 0)).any():
        raise bad_argument("slice: the length is below zero")
    # position from 0; a negative start counts from the end
    begin = np.where(first > 0, first - 1, lists.lengths + first)
    nth, parents = lists.nth, lists.parents
    inside = (
        (begin[parents] >= 0)
        & (nth >= begin[parents])
        & (nth < begin[parents] + count[parents])
        & known[parents]
    )
    remaining = lists.filter(inside)
    return Lists(remaining.flat, remaining.lengths, missing).column()


def _flatten(column: pa.Array) -> pa.Array:
    outer = lists_of(column)
    inner = lists_of(outer.flat)
    missing = outer.missing
    # A NULL among the inner arrays makes the whole row NULL.
    if inner.missing is not None:
        holds_null = outer.any(inner.missing)
        missing = holds_null if missing is None else missing | holds_null
    lengths = np.zeros(len(column), np.int64)
    # a row's length is the sum over its inner arrays
    np.add.at(lengths, outer.parents, inner.lengths)
    lists = Lists(inner.flat, lengths)
    if missing is None:
        return lists.column()
    remaining = lists.filter(~missing[lists.parents])
    return Lists(remaining.flat, remaining.lengths, missing).column()


def _reverse(bound: BoundCall) -> Kernel:
    if not isinstance(bound.kinds[0], Array):
        return reversed_texts

    def reverse(column: pa.Array) -> pa.Array:
        lists = lists_of(column)
        # The n-th element comes from the n-th position before the end of its list.
        return lists.ordered(lists.starts[lists.parents + 1] - 1 - lists.nth).column()

    return columnwise(reverse)


def concatenation(texts: Kernel) -> Factory:
    """Return the factory of ``concat``. Arrays are concatenated here, texts by the kernel ``texts``."""
    arrays_joined = columnwise(_concat)
    return lambda bound: arrays_joined if isinstance(bound.call.type, Array) else texts


def _appended(at_end: bool) -> Kernel:
    def extended(*data: Datum) -> pa.Array:
        column, value = aligned(*data)
        return _extended(column, value, at_end)

    return extended


ARRAY_FUNCTIONS: dict[str, Factory] = {
    "size": plain(columnwise(_size)),
    "array_contains": plain(_contains),
    "array_position": plain(_position),
    "array_remove": plain(_remove),
    "array_append": plain(_appended(at_end=True)),
    "array_prepend": plain(_appended(at_end=False)),
    "array_distinct": plain(columnwise(_distinct)),
    "array_compact": plain(columnwise(_compact)),
    "sort_array": plain(columnwise(_sort_array)),
    "array_sort": plain(columnwise(_array_sort)),
    "array_min": plain(_extreme(largest=False)),
    "array_max": plain(_extreme(largest=True)),
    "array_repeat": plain(columnwise(_repeat)),
    "slice": plain(columnwise(_slice)),
    "flatten": plain(columnwise(_flatten)),
    "reverse": _reverse,
}


def _union(a: pa.Array, b: pa.Array) -> pa.Array:
    # a union is the concatenation without repeated elements
    joined = interleaved([lists_of(a), lists_of(b)])
    return joined.filter(firsts(joined.starts, *common_codes(joined.flat))).column()


def _shared(mine: Lists, theirs: Lists) -> tuple[np.ndarray, np.ndarray]:
    """Return the mask of elements that also occur in the other list of the row, and the elements' codes."""
    first, second = common_codes(mine.flat, theirs.flat)
    return members(mine, first, theirs, second), first


def _selected(a: pa.Array, b: pa.Array, wanted: bool) -> pa.Array:
    mine, theirs = lists_of(a), lists_of(b)
    missing = nulls_of_any(a, b)
    shared, codes = _shared(mine, theirs)
    # INTERSECT keeps shared elements, EXCEPT the others; both without repetition
    keep = (shared == wanted) & firsts(mine.starts, codes)
    if missing is not None:
        keep &= ~missing[mine.parents]
    remaining = mine.filter(keep)
    return Lists(remaining.flat, remaining.lengths, missing).column()


def _overlap(a: pa.Array, b: pa.Array) -> pa.Array:
    mine, theirs = lists_of(a), lists_of(b)
    shared, _ = _shared(mine, theirs)
    unknown, others = nulls_of(mine.flat), nulls_of(theirs.flat)
    if unknown is not None:
        shared &= ~unknown
    has_match = mine.any(shared)
    missing = nulls_of_any(a, b)
    has_null = np.zeros(len(a), np.bool_)
    for lists, nulls in ((mine, unknown), (theirs, others)):
        if nulls is not None:
            has_null |= lists.any(nulls)
    # No common element, but a NULL might be one.
    left_open = has_null & ~has_match & (mine.lengths > 0) & (theirs.lengths > 0)
    if left_open.any():
        missing = left_open if missing is None else missing | left_open
    return arrow_numpy.array_of(has_match, missing)


ARRAY_SETS: dict[str, Factory] = {
    "array_union": plain(columnwise(_union)),
    "array_intersect": plain(columnwise(lambda a, b: _selected(a, b, True))),
    "array_except": plain(columnwise(lambda a, b: _selected(a, b, False))),
    "arrays_overlap": plain(columnwise(_overlap)),
}
