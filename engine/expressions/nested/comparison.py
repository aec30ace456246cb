"""Equality and order of arrays and rows, part by part. A nested NULL equals a NULL and sorts before every
value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import Kernel, columnwise, nulls_of, nulls_of_any
from penstock.engine.expressions.nested.lists import Lists, lists_of, picked
from penstock.engine.kernels.arrow_views import floats
from penstock.engine.kernels.nested_text import canonical_text

_TESTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "less": lambda order: order < 0,
    "less_equal": lambda order: order <= 0,
    "greater": lambda order: order > 0,
    "greater_equal": lambda order: order >= 0,
}


def nested_comparison(operator: str) -> Kernel:
    """Return the kernel that compares two columns of one nested type. NULL where a whole value is NULL."""

    def compare(a: pa.Array, b: pa.Array) -> pa.Array:
        missing = nulls_of_any(a, b)
        if operator in ("equal", "not_equal"):
            # Equality needs no order: equal values have equal canonical texts.
            same = arrow_numpy.truths(pc.equal(canonical_text(a), canonical_text(b)))
            return arrow_numpy.array_of(same if operator == "equal" else ~same, missing)
        return arrow_numpy.array_of(_TESTS[operator](order_of(a, b)), missing)

    return columnwise(compare)


def order_of(a: pa.Array, b: pa.Array) -> np.ndarray:
    """Return -1, 0 or 1 per row (int8): the left value sorts before, with or after the right one. NULL first,
    NaN last.
    """
    kind = a.type
    if pa.types.is_null(kind):
        return np.zeros(len(a), np.int8)
    if pa.types.is_struct(kind):
        order = np.zeros(len(a), np.int8)
        for i in range(kind.num_fields):
            # The first field that differs decides.
            order = np.where(order == 0, order_of(pc.struct_field(a, i), pc.struct_field(b, i)), order)
    elif pa.types.is_list(kind):
        order = _order_of_lists(lists_of(a), lists_of(b))
    else:
        order = _order_of_values(a, b)
    return _nulls_first(order, nulls_of(a), nulls_of(b))


def _nulls_first(order: np.ndarray, a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray:
    if a is None and b is None:
        return order
    # 1 where NULL: both NULL gives 0, left NULL gives -1, right NULL gives 1
    left = np.zeros(order.size, np.int8) if a is None else a.astype(np.int8)
    right = np.zeros(order.size, np.int8) if b is None else b.astype(np.int8)
    return np.where(left | right, right - left, order).astype(np.int8)


def _order_of_values(a: pa.Array, b: pa.Array) -> np.ndarray:
    if pa.types.is_floating(a.type):
        left, right = floats(a), floats(b)
        # NaN is above every number and equal to itself
        after = (left > right) | (np.isnan(left) & ~np.isnan(right))
        before = (left < right) | (np.isnan(right) & ~np.isnan(left))
        return after.astype(np.int8) - before.astype(np.int8)
    if pa.types.is_boolean(a.type):
        a, b = a.cast(pa.int8()), b.cast(pa.int8())
    return arrow_numpy.is_true(pc.greater(a, b)).astype(np.int8) - arrow_numpy.is_true(pc.less(a, b)).astype(
        np.int8
    )


def _order_of_lists(a: Lists, b: Lists) -> np.ndarray:
    """Compare lists by their first different elements, then by length."""
    shared = Lists(pa.nulls(0), np.minimum(a.lengths, b.lengths))
    nth = np.arange(int(shared.starts[-1])) - shared.starts[shared.parents]
    orders = order_of(
        picked(a.flat, a.starts[shared.parents] + nth, None),
        picked(b.flat, b.starts[shared.parents] + nth, None),
    )
    result = np.sign(a.lengths - b.lengths).astype(np.int8)
    # positions where elements differ; unique returns the first of each list
    decided = np.flatnonzero(orders)
    lists, first = np.unique(shared.parents[decided], return_index=True)
    result[lists] = orders[decided[first]]
    return result


def sort_keys(values: pa.Array) -> list[pa.Array]:
    """Return flat columns that sort a nested type in its order. Each column sorts ascending with NULLs
    first.
    """
    kind = values.type
    if pa.types.is_struct(kind):
        return [
            values.is_valid(),
            *(key for i in range(kind.num_fields) for key in sort_keys(pc.struct_field(values, i))),
        ]
    if not pa.types.is_list(kind):
        return [values]
    lists = lists_of(values)
    keys: list[pa.Array] = [values.is_valid()]
    # Two keys per position: whether there is an element, and the element; the shorter list comes first.
    for nth in range(int(lists.lengths.max(initial=0))):
        there = lists.lengths > nth
        keys += [arrow_numpy.array_of(there), *sort_keys(picked(lists.flat, lists.starts[:-1] + nth, ~there))]
    return keys
