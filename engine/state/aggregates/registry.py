"""The registry of aggregates: the accumulator of a call, the arguments it reads, and the result from its
state.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.types import to_arrow
from penstock.engine.functions.python_functions import aggregated
from penstock.engine.state.aggregates.accumulator import Part
from penstock.engine.state.aggregates.bitwise import CountedBits, UnitedBits
from penstock.engine.state.aggregates.distinct import Distinct
from penstock.engine.state.aggregates.first_last import BestRow
from penstock.engine.state.aggregates.min_max import BestString, LeastValue, RetractableBest, best_part
from penstock.engine.state.aggregates.moments import MomentsPart, PairPart, ShapePart
from penstock.engine.state.aggregates.sums import BooleanPart, CountPart, ExactSum, FloatSum
from penstock.engine.state.aggregates.value_multiset import SortedBag, ValueBag
from penstock.planner.expressions.nodes import KEEPS_VALUES, AggregateCall, Direction, Expression, Literal
from penstock.planner.expressions.python_calls import PythonAggregateCall

_SPREADS = ("stddev_samp", "stddev_pop", "var_samp", "var_pop")
_SHAPES = ("skewness", "kurtosis")
_BITS = ("bit_and", "bit_or", "bit_xor")
_EXTREMES = ("min", "max", "any_value")
# Aggregates of pairs (y, x).
_PAIRS = (
    "corr",
    "covar_pop",
    "covar_samp",
    *(f"regr_{name}" for name in ("avgx", "avgy", "sxx", "syy", "sxy", "slope", "intercept", "r2")),
)
_BEST_ROWS = ("first_value", "last_value", "min_by", "max_by")
# Functions that read one state: SUM, AVG and SUM0 of an argument share it.
_FAMILIES = {
    "avg": "sum",
    "sum0": "sum",
    "any_value": "min",
    "bool_or": "bool_and",
    **dict.fromkeys(_SPREADS, "moments"),
    **dict.fromkeys(_SHAPES, "shape"),
    **dict.fromkeys(_BITS, "bits"),
    **dict.fromkeys(_PAIRS, "pairs"),
    **dict.fromkeys(KEEPS_VALUES, "bag"),
}


def family(call: AggregateCall) -> tuple[object, ...]:
    """Return the key of the accumulator of a call: calls with equal keys share one."""
    # DISTINCT aggregates share across filters; others have the filter in the key.
    shared_filter = None if is_distinct(call) else call.filter
    return (
        "rows" if is_python(call) else _FAMILIES.get(call.function, call.function),
        input_arguments(call),
        call.order,
        shared_filter,
        is_distinct(call),
    )


def is_distinct(call: AggregateCall) -> bool:
    """Return whether an aggregate counts each value once. Such aggregates share their counted values,
    whatever their filters.
    """
    # DISTINCT changes nothing for extremes and best rows; the others have all values and count each once
    # themselves.
    return (
        call.distinct
        and call.function not in (*_EXTREMES, *_BEST_ROWS, *_SHAPES, *KEEPS_VALUES)
        and not is_python(call)
    )


def is_python(call: AggregateCall) -> bool:
    """Return whether a Python function computes an aggregate, from all its rows."""
    return isinstance(call, PythonAggregateCall)


def input_arguments(call: AggregateCall) -> tuple[Expression, ...]:
    """Return the arguments an accumulator reads: all but the constants of the call."""
    # Of the values only the first is read, the others are constants; behind them come the keys of ORDER BY.
    keys = call.args[len(call.values) :]
    if call.function in _PAIRS or call.function in _BEST_ROWS or is_python(call):
        return call.args
    return (*call.args[:1], *keys)


def needs_value(call: AggregateCall) -> tuple[int, ...]:
    """Return the positions of the arguments that must not be NULL, or the row does not count."""
    # FIRST_VALUE of a NULL is NULL: NULLs count.
    if call.function in ("first_value", "last_value") or is_python(call):
        return ()
    # MIN_BY(x, y): a NULL y drops the row, a NULL x does not.
    if call.function in ("min_by", "max_by"):
        return (1,)
    return (0, 1) if call.function in _PAIRS else (0,)


def input_type(call: AggregateCall) -> pa.DataType | None:
    """Return the Arrow type an accumulator reads: a struct of several arguments, or of one that is nested;
    None without arguments.
    """
    kinds = [to_arrow(arg.type) for arg in input_arguments(call)]
    if not kinds:
        return None
    # KeyIndex accepts flat columns or structs: a nested argument is wrapped.
    if len(kinds) == 1 and not pa.types.is_nested(kinds[0]):
        return kinds[0]
    return pa.struct([pa.field(f"v{i}", kind) for i, kind in enumerate(kinds)])


def new_part(call: AggregateCall, insert_only: bool, counted: bool, filters: int = 1) -> Part:
    """Return the part of an aggregate. ANY_VALUE is the least value, so that it depends on nothing but the
    values.

    ``filters``: how many filters share the values of a distinct one.
    """
    kind = input_type(call)
    if kind is None:
        # COUNT(*).
        return CountPart()
    if call.function in _EXTREMES:
        greatest = call.function == "max"
        # Nested values have no words and no bytes to compare: they are sorted.
        if pa.types.is_struct(kind):
            return BestRow(kind, (), greatest, insert_only)
        return best_part(kind, greatest) if insert_only else RetractableBest(kind, greatest)
    if call.function in _BEST_ROWS:
        by = call.function in ("min_by", "max_by")
        last = call.function in ("last_value", "max_by")
        # MIN_BY and MAX_BY order by their second argument, ascending.
        return BestRow(kind, (Direction(),) if by else call.order, last, insert_only)
    # With DISTINCT, and under retraction (retracted fourth powers leave rounding errors), all values are
    # stored.
    if (
        call.function in KEEPS_VALUES
        or is_python(call)
        or (call.function in _SHAPES and (call.distinct or not insert_only))
    ):
        return ValueBag(kind, call.order)
    if is_distinct(call):
        return Distinct(kind, [_plain_part(call, kind, False, counted) for _ in range(filters)])
    return _plain_part(call, kind, insert_only, counted)


def _plain_part(call: AggregateCall, kind: pa.DataType, insert_only: bool, counted: bool) -> Part:
    if call.function == "count":
        return CountPart()
    if call.function in ("sum", "sum0", "avg"):
        return FloatSum() if pa.types.is_floating(kind) else ExactSum(kind, counted)
    if call.function in _SPREADS:
        return MomentsPart()
    if call.function in ("bool_and", "bool_or"):
        return BooleanPart()
    if call.function in _BITS:
        # OR cannot be undone from a word: under retraction each bit has a count.
        return UnitedBits() if insert_only else CountedBits()
    if call.function in _SHAPES:
        return ShapePart()
    if call.function in _PAIRS:
        return PairPart()
    raise PenstockError(
        "INT-9045", f"cannot compute the aggregate {call.function}", kind=Kind.INTERNAL, sqlstate="XX000"
    )


def result(call: AggregateCall, part: Part, state: np.ndarray) -> pa.Array:
    """Return the column of one aggregate, of exactly its Arrow type, from a state of its part (of its
    filter's, if distinct); raises OutOfRange.
    """
    kind = to_arrow(call.type)
    match part:
        case CountPart():
            return part.count(state)
        # AVG, SUM and SUM0 of one argument read one state. SUM over nothing is NULL, SUM0 is 0.
        case ExactSum() | FloatSum():
            return (
                part.mean(state, kind)
                if call.function == "avg"
                else part.total(state, kind, null_when_empty=call.function == "sum")
            )
        case BooleanPart():
            return part.all_true(state) if call.function == "bool_and" else part.some_true(state)
        # STDDEV is the root of VAR; only _SAMP divides by n - 1.
        case MomentsPart():
            sample = call.function.endswith("_samp")
            return (
                part.deviation(state, sample=sample)
                if call.function.startswith("stddev")
                else part.variance(state, sample=sample)
            )
        case UnitedBits() | CountedBits():
            return part.of(call.function, state, kind)
        case ShapePart() | PairPart():
            return part.of(call.function, state)
        # MIN, MAX, ANY_VALUE, FIRST_VALUE, LAST_VALUE, MIN_BY, MAX_BY: the part stores the result.
        case LeastValue() | BestString() | RetractableBest() | BestRow():
            return part.best(state)
        # All values in order; with DISTINCT each once. A Python function gets them as rows.
        case ValueBag():
            bag = part.sorted(state)
            bag = bag.once() if call.distinct else bag
            return (
                aggregated(call, *bag.rows())
                if isinstance(call, PythonAggregateCall)
                else _of_bag(call, bag, kind)
            )
    raise AssertionError(type(part))


def _of_bag(call: AggregateCall, bag: SortedBag, kind: pa.DataType) -> pa.Array:
    match call.function:
        case "collect_list":
            return bag.lists(kind)
        case "histogram":
            return bag.histogram(kind)
        case "mode":
            return bag.mode()
        case "skewness" | "kurtosis":
            return bag.shape(call.function)
    constant = call.args[1]
    assert isinstance(constant, Literal)
    if call.function == "listagg":
        # LISTAGG: the second argument is the separator.
        return bag.joined(str(constant.value))
    share = float(constant.value)  # type: ignore[arg-type]  # the registry takes numbers only
    return bag.percentile(share) if call.function == "percentile" else bag.ranked(share)
