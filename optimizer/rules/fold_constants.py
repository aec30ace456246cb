"""Compute constant subexpressions once, at planning time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal as PyDecimal
from typing import Any

from penstock.catalog.types import (
    BigInt,
    DataType,
    Decimal,
    Double,
    Int,
    Null,
    SmallInt,
    String,
    TinyInt,
    is_integer,
)
from penstock.planner.expressions.expression_properties import always_casts
from penstock.planner.expressions.nodes import Call, Case, Cast, Expression, Literal, LiteralValue
from penstock.planner.logical.plan import LogicalPlan

_BITS: dict[type[DataType], int] = {TinyInt: 8, SmallInt: 16, Int: 32, BigInt: 64}
# Up to here each integer is a DOUBLE; beyond it the cast rounds, which is left to the runtime.
_EXACT_DOUBLE = 2**53


def fold_constants(plan: LogicalPlan) -> LogicalPlan:
    """Replace calls, casts and cases over literals by their values: ``a > 1 + 2`` becomes ``a > 3``.

    Only what surely has one value is folded; what would raise is left to raise on the rows that reach it.
    """
    return plan.transform(
        lambda node: node.simplify_expressions(lambda expression: expression.transform(_fold))
    )


def _fold(node: Expression) -> Expression:
    match node:
        case Call():
            return _fold_call(node)
        case Cast(arg=Literal() as literal):
            return _fold_cast(node, literal)
        case Case():
            return _fold_case(node)
    return node


def _literal(node: Expression, value: LiteralValue) -> Literal:
    return Literal(node.type, value is None, span=node.span, value=value)


def _fold_call(node: Call) -> Expression:
    if node.function in ("is_null", "is_not_null") and isinstance(node.args[0], Literal):
        return _literal(node, (node.args[0].value is None) == (node.function == "is_null"))
    # One NULL is enough, whatever the others are: x + NULL is NULL.
    if node.function in _NULL_IN_NULL_OUT and any(
        isinstance(arg, Literal) and arg.value is None for arg in node.args
    ):
        return _literal(node, None)
    # All arguments are literals and none is NULL, or nothing can be said.
    values = [arg.value for arg in node.args if isinstance(arg, Literal)]
    if len(values) != len(node.args) or any(value is None for value in values):
        return node
    if (
        node.function in _COMPARISONS
        # Python compares True with 1 and a date with no datetime; SQL would have cast them first.
        and len({type(value) for value in values}) == 1
        and isinstance(values[0], _COMPARABLE)
    ):
        return _literal(node, _COMPARISONS[node.function](values[0], values[1]))
    if is_integer(node.type) and node.function in _INTEGER_ARITHMETIC:
        return _fold_integers(node, values)
    if node.function in ("concat", "concat_op") and all(isinstance(value, str) for value in values):
        return _literal(node, "".join(str(value) for value in values))
    return node


def _fold_integers(node: Call, values: list[LiteralValue]) -> Expression:
    # bool is a subclass of int.
    integers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if len(integers) != len(values):
        return node
    result = _INTEGER_ARITHMETIC[node.function](*integers)
    # Overflow and division by zero raise on the rows that reach them, so they stay calls.
    return node if result is None or not _in_range(result, node.type) else _literal(node, result)


def _in_range(value: int, kind: DataType) -> bool:
    half = 1 << (_BITS[type(kind)] - 1)
    return -half <= value < half


def _truncated_quotient(a: int, b: int) -> int | None:
    if b == 0:
        return None
    # SQL rounds towards zero, Python's // down: -7 DIV 2 is -3.
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int | None:
    quotient = _truncated_quotient(a, b)
    return None if quotient is None else a - quotient * b


_INTEGER_ARITHMETIC: dict[str, Callable[..., int | None]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "negate": lambda a: -a,
    "div": _truncated_quotient,
    "mod": _remainder,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}
_COMPARABLE = (bool, int, str, PyDecimal, date, time)  # floats are not: NaN has an order of its own
_NULL_IN_NULL_OUT = (
    frozenset(_INTEGER_ARITHMETIC) | frozenset(_COMPARISONS) | {"divide", "concat", "concat_op", "not"}
)


def _fold_cast(node: Cast, literal: Literal) -> Expression:
    if literal.value is None:
        return _literal(node, None)
    if literal.type == node.type:
        return replace(literal, span=node.span)
    # Texts may not parse: the cast raises, or TRY_CAST returns NULL, at the row.
    if isinstance(literal.type, String | Null) or not always_casts(literal.type, node.type):
        return node
    value = literal.value
    if is_integer(literal.type) and isinstance(value, int):
        return _fold_integer_cast(node, value)
    # DATE to TIMESTAMP is midnight; a datetime is a date in Python.
    if isinstance(value, date) and not isinstance(value, datetime) and not isinstance(node.type, String):
        return _literal(node, datetime(value.year, value.month, value.day))
    return node


def _fold_integer_cast(node: Cast, value: int) -> Expression:
    if is_integer(node.type):
        return _literal(node, value)
    if isinstance(node.type, Double) and abs(value) <= _EXACT_DOUBLE:
        return _literal(node, float(value))
    if isinstance(node.type, Decimal):
        # With all digits of the scale, as the runtime has them: 1 AS DECIMAL(4, 2) is 1.00.
        return _literal(node, PyDecimal(f"{value}.{'0' * node.type.scale}"))
    if isinstance(node.type, String):
        return _literal(node, str(value))
    return node


def _fold_case(node: Case) -> Expression:
    """CASE branches whose condition is a constant are taken or dropped."""
    whens: list[tuple[Expression, Expression]] = []
    default = node.default
    for condition, value in node.whens:
        if isinstance(condition, Literal):
            # A branch that is always taken ends the list; a FALSE or NULL one is dropped.
            if condition.value is True:
                default = value
                break
            continue
        whens.append((condition, value))
    # Branches may be of a narrower type than the CASE.
    if not whens:
        return (
            default
            if default.type == node.type
            else Cast(node.type, default.nullable, span=node.span, arg=default)
        )
    return replace(node, whens=tuple(whens), default=default) if len(whens) < len(node.whens) else node
