"""Properties of expressions that rules rely on: deterministic, and never raising."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.catalog.functions.registry import is_deterministic as function_is_deterministic
from penstock.catalog.functions.registry import is_fallible
from penstock.catalog.types import (
    INTEGERS,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Null,
    String,
    Timestamp,
    TimestampLtz,
    is_integer,
)
from penstock.planner.expressions.nodes import Call, Cast, Expression
from penstock.planner.expressions.python_calls import PythonCall

CLOCK_FUNCTIONS = frozenset({"proctime", "current_timestamp", "localtimestamp", "current_date"})
# decimal digits of the largest value: 127, 32,767, 2,147,483,647 and 2 ** 63 - 1
_INTEGER_DIGITS = dict(zip(INTEGERS, (3, 5, 10, 19), strict=True))


def is_deterministic(expression: Expression) -> bool:
    """Return whether equal rows always yield equal values, whenever and however often they are computed."""
    return all(_call_is_deterministic(node) for node in expression.walk() if isinstance(node, Call))


def _call_is_deterministic(call: Call) -> bool:
    return (
        call.body.deterministic if isinstance(call, PythonCall) else function_is_deterministic(call.function)
    )


def reads_clock(expression: Expression) -> bool:
    """Return whether an expression reads the current time."""
    return any(isinstance(node, Call) and node.function in CLOCK_FUNCTIONS for node in expression.walk())


def may_raise(expression: Expression) -> bool:
    """Return whether some row could make the expression raise. Such an expression must not be computed for
    more rows than written.
    """
    return any(_node_may_raise(node) for node in expression.walk())


def is_movable(expression: Expression) -> bool:
    """Return whether a predicate may be tested earlier, on rows that would not have reached it."""
    return is_deterministic(expression) and not may_raise(expression)


def _node_may_raise(node: Expression) -> bool:
    # 1 / a, or a CAST of a text that is no number; TRY_CAST yields NULL instead
    if isinstance(node, Call):
        return isinstance(node, PythonCall) or is_fallible(node.function)
    return isinstance(node, Cast) and not node.safe and not always_casts(node.arg.type, node.type)


def always_casts(source: DataType, target: DataType) -> bool:
    """Return whether a CAST between two types can never fail."""
    # every value has a text, and NULL is a value of every type
    if source == target or isinstance(source, Null) or isinstance(target, String):
        return True
    if is_integer(source):
        return _integer_fits(source, target)
    # FLOAT to an integer or DECIMAL may overflow
    if isinstance(source, Float):
        return isinstance(target, Double)
    # to DOUBLE it rounds; to another DECIMAL it fits where digits before and behind the point do
    if isinstance(source, Decimal):
        return isinstance(target, Double | Float) or (
            isinstance(target, Decimal) and _decimal_fits(source, target)
        )
    # a date becomes its midnight
    if isinstance(source, Date):
        return isinstance(target, Timestamp)
    if isinstance(source, Timestamp):
        return isinstance(target, Timestamp | Date)
    return isinstance(source, TimestampLtz) and isinstance(target, TimestampLtz)


def _integer_fits(source: DataType, target: DataType) -> bool:
    if is_integer(target):
        return INTEGERS.index(target) >= INTEGERS.index(source)
    if isinstance(target, Decimal):
        # digits before the point
        return target.precision - target.scale >= _INTEGER_DIGITS[source]
    return isinstance(target, Double | Float)


def _decimal_fits(source: Decimal, target: Decimal) -> bool:
    return target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale


def reads_only(part: Expression, columns: Collection[int]) -> bool:
    """Return whether a part of a condition is deterministic and reads only these columns."""
    return is_deterministic(part) and part.columns() <= frozenset(columns)


def select_in_turn(parts: Sequence[Expression], columns: Collection[int]) -> tuple[Expression, ...]:
    """Return the parts that read only these columns.

    A part that may raise is not selected after an unselected part, which may guard it.
    """
    selected: list[Expression] = []
    for turn, part in enumerate(parts):
        # a <> 0 AND 1 / a > 2: the second part alone would divide by zero
        if reads_only(part, columns) and (len(selected) == turn or not may_raise(part)):
            selected.append(part)
    return tuple(selected)


def without(parts: Sequence[Expression], removed: Collection[Expression]) -> tuple[Expression, ...]:
    """Return the parts that are not among the removed ones."""
    return tuple(part for part in parts if part not in removed)
