"""Comparison, boolean tests and membership. NaN equals itself and is greater than every number."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import BOOLEAN, Array, DataType, Double, Float, Row
from penstock.engine.api import arrow_numpy
from penstock.engine.expressions.datum import Datum, Kernel, aligned
from penstock.engine.expressions.evaluation_errors import Fault, conflicting_rows, several_rows
from penstock.engine.expressions.kernel_factory import BoundCall, Factory, plain
from penstock.engine.expressions.nested.comparison import nested_comparison, order_of

_PLAIN: dict[str, Kernel] = {
    "equal": pc.equal,
    "not_equal": pc.not_equal,
    "less": pc.less,
    "less_equal": pc.less_equal,
    "greater": pc.greater,
    "greater_equal": pc.greater_equal,
}


def _has_nan(datum: Datum) -> bool:
    if isinstance(datum, pa.Scalar):
        return datum.is_valid and datum.as_py() != datum.as_py()
    return bool(pc.any(pc.is_nan(datum), min_count=0).as_py())


def _nan(datum: Datum) -> Datum:
    return pc.is_nan(datum)


def _float_equal(a: Datum, b: Datum) -> Datum:
    same = pc.equal(a, b)
    # only where both sides have a NaN does IEEE's answer differ
    if _has_nan(a) and _has_nan(b):
        return pc.or_kleene(same, pc.and_kleene(_nan(a), _nan(b)))
    return same


def _float_less(a: Datum, b: Datum) -> Datum:
    # NaN is above every number: only where the right side is NaN does IEEE's answer differ.
    less = pc.less(a, b)
    return pc.or_kleene(less, pc.and_not_kleene(_nan(b), _nan(a))) if _has_nan(b) else less


def _float_less_equal(a: Datum, b: Datum) -> Datum:
    less = pc.less_equal(a, b)
    return _null_with(pc.or_kleene(less, _nan(b)), a) if _has_nan(b) else less


def _null_with(result: Datum, *operands: Datum) -> Datum:
    """Return ``result`` with NULL wherever an operand is NULL; Kleene logic may have decided there."""
    for operand in operands:
        missing = pc.is_null(operand)
        result = pc.if_else(missing, pa.scalar(None, pa.bool_()), result)
    return result


_FLOAT: dict[str, Kernel] = {
    "equal": _float_equal,
    "not_equal": lambda a, b: pc.invert(_float_equal(a, b)),
    "less": _float_less,
    "less_equal": _float_less_equal,
    "greater": lambda a, b: _float_less(b, a),
    "greater_equal": lambda a, b: _float_less_equal(b, a),
}

_AGAINST_NUMBER: dict[str, Kernel] = {
    **_PLAIN,
    "greater": lambda a, b: pc.invert(pc.less_equal(a, b)),
    "greater_equal": lambda a, b: pc.invert(pc.less(a, b)),
}
"""A float column beside a constant that is a number: NaN in the column is above it."""


def comparison_kernel(operator: str, kind: DataType, right: pa.Scalar | None = None) -> Kernel:
    """Return the kernel of a comparison of two operands of one type. ``right`` is the right operand if it is
    constant.
    """
    if isinstance(kind, Array | Row):
        return nested_comparison(operator)
    if not isinstance(kind, Float | Double):
        return _PLAIN[operator]
    if right is not None and right.is_valid and right.as_py() == right.as_py():
        # The constant is no NaN: NOT (a <= c) is true for NaN in a, and no scan for NaN is needed.
        return _AGAINST_NUMBER[operator]
    return _FLOAT[operator]


def _comparison(operator: str) -> Factory:
    return lambda bound: comparison_kernel(operator, bound.kinds[0], bound.constants[1])


def _null_safe_equal(bound: BoundCall) -> Kernel:
    # a <=> b: NULL equals NULL
    equal = comparison_kernel("equal", bound.kinds[0])

    def kernel(a: Datum, b: Datum) -> pa.Array:
        a, b = aligned(a, b)
        if not a.null_count and not b.null_count:
            return equal(a, b)
        return pc.if_else(
            pc.or_(pc.is_null(a), pc.is_null(b)), pc.and_(pc.is_null(a), pc.is_null(b)), equal(a, b)
        )

    return kernel


def _in(bound: BoundCall) -> Kernel:
    members = bound.constants[1:]
    known = [member for member in members if member is not None and member.is_valid]
    equal = comparison_kernel("equal", bound.kinds[0])
    # x IN (a, b + 1): members that vary, or nested ones, are compared one by one.
    if any(member is None for member in members) or isinstance(bound.kinds[0], Array | Row):

        def one_by_one(value: Datum, *others: Datum) -> Datum:
            return functools.reduce(pc.or_kleene, (equal(value, other) for other in others))

        return one_by_one
    # x IN (1, 2, 3): one lookup in a set of constants.
    # Scalars become an array by Arrow alone: of Python's values it imports pandas, a quarter of a second.
    lookup = pa.concat_arrays([pa.nulls(0, members[0].type), *[pa.repeat(member, 1) for member in known]])  # type: ignore[union-attr]
    # The set tells 0.0 from -0.0, SQL does not.
    if pa.types.is_floating(lookup.type) and 0.0 in lookup.to_pylist():
        zeros = arrow_numpy.array_of(np.array([0.0, -0.0])).cast(lookup.type)
        lookup = pa.concat_arrays([lookup, zeros])
    has_null = len(known) < len(members)
    # nor every NaN from every other
    has_nan = pa.types.is_floating(lookup.type) and bool(pc.any(pc.is_nan(lookup)).as_py())

    def kernel(value: Datum, *others: Datum) -> Datum:
        is_member = pc.is_in(value, value_set=lookup)
        if has_nan:
            is_member = pc.or_(is_member, pc.fill_null(pc.is_nan(value), False))
        # x IN (1, NULL) is never FALSE: no match is NULL.
        if has_null:
            return pc.if_else(is_member, is_member, pa.scalar(None, pa.bool_()))
        if isinstance(value, pa.Array) and not value.null_count:
            return is_member
        return pc.if_else(pc.is_valid(value), is_member, pa.scalar(None, pa.bool_()))

    return kernel


def _nested_extreme(largest: bool) -> Kernel:
    def pick(*data: Datum) -> pa.Array:
        result, *others = aligned(*data)
        for other in others:
            order = order_of(other, result)
            better = arrow_numpy.array_of(order > 0 if largest else order < 0)
            better = pc.and_(pc.or_(better, pc.is_null(result)), pc.is_valid(other))
            result = pc.if_else(better, other, result)
        return result

    return pick


def _extreme(largest: bool) -> Factory:
    pick = pc.max_element_wise if largest else pc.min_element_wise

    def factory(bound: BoundCall) -> Kernel:
        kind = bound.call.type
        if kind == BOOLEAN:
            # FALSE is less than TRUE.
            return lambda *data: pick(*[pc.cast(datum, pa.int8()) for datum in data]).cast(pa.bool_())
        if isinstance(kind, Array | Row):
            return _nested_extreme(largest)
        if not isinstance(kind, Float | Double):
            return pick

        def floats(*data: Datum) -> pa.Array:
            columns = aligned(*data)
            result = pick(*columns)
            # GREATEST: NaN is the greatest, but Arrow's maximum skips it.
            if largest:
                for column in columns:
                    result = pc.if_else(pc.fill_null(pc.is_nan(column), False), column, result)
            return result

        return floats

    return factory


def _only_row(fault: Callable[[], Fault]) -> Factory:
    """Return the function of a value and a number of rows that raises a fault where there are several."""

    def only(value: Datum, rows: Datum) -> Datum:
        # a padded row has no count
        if pc.any(pc.greater(aligned(rows)[0], 1)).as_py():
            raise fault()
        return value

    return plain(only)


COMPARISONS: dict[str, Factory] = {
    **{operator: _comparison(operator) for operator in _PLAIN},
    "null_safe_equal": _null_safe_equal,
    "not": plain(pc.invert),
    "is_null": plain(pc.is_null),
    "is_not_null": plain(pc.is_valid),
    "is_true": plain(lambda a: pc.fill_null(a, False)),
    "is_false": plain(lambda a: pc.fill_null(pc.invert(a), False)),
    "in": _in,
    "single_value": _only_row(several_rows),
    "unique_row": _only_row(conflicting_rows),
    "greatest": _extreme(largest=True),
    "least": _extreme(largest=False),
}
