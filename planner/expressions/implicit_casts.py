"""Implicit casts: a typed expression as another type."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Context
from decimal import Decimal as PyDecimal

from penstock.catalog.coercion import may_read
from penstock.catalog.errors import PenstockError
from penstock.catalog.types import DOUBLE, DataType, Decimal, Null, String, is_integer
from penstock.planner.expressions.nodes import Cast, Expression, Literal

# Python's default precision of 28 digits refuses to rescale a DECIMAL of 38
_EXACT = Context(prec=80)
# the length of a constant that an error repeats
SHOWN_CHARS = 40
_DURATION = re.compile(r"\d+ (second|minute|hour|day|week|month|year)s?\b", re.IGNORECASE)
# functions that compare their arguments: here a text may be meant as a text
_COMPARISONS = frozenset(
    (
        "equal",
        "not_equal",
        "null_safe_equal",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "in",
        "nullif",
    )
)


def coerced(expression: Expression, kind: DataType) -> Expression:
    """Return the expression as that type: unchanged, as a literal of the type where that is exact, or in a
    Cast.
    """
    if expression.type == kind:
        return expression
    if isinstance(expression, Literal):
        # a literal of the type needs no cast per row
        literal = _retyped(expression, kind)
        if literal is not None:
            return literal
    return Cast(kind, expression.nullable, arg=expression, span=expression.span)


def coerced_argument(argument: Expression, kind: DataType, function: str) -> Expression:
    """Return an argument as the type that a function requires. Raise SQL-1106 for a constant text that no row
    could cast to it.
    """
    if (
        isinstance(argument, Literal)
        and isinstance(argument.value, str)
        and isinstance(argument.type, String)
        and not may_read(argument.value, kind)
    ):
        # a > 'abc' where a is a number: every row would fail, so the statement does
        shown = argument.value if len(argument.value) <= SHOWN_CHARS else f"{argument.value[:SHOWN_CHARS]}.."
        message, hint = f"'{shown}' is a text that cannot be read as {kind}", _text_hint(shown, function)
        raise PenstockError("SQL-1106", message, span=argument.span, hint=hint, sqlstate="22018")
    return coerced(argument, kind)


def _text_hint(text: str, function: str) -> str:
    if function in ("add", "subtract"):
        if _DURATION.match(text):
            return f"write INTERVAL '{text}'"
        return "write a constant of that type; || joins texts"
    text_too = ", or compare text with text: CAST(.. AS STRING)" if function in _COMPARISONS else ""
    return f"write a constant of that type{text_too}"


def _retyped(literal: Literal, kind: DataType) -> Literal | None:
    value = literal.value
    # NULL is a literal of every type
    if value is None:
        return replace(literal, type=kind)
    if isinstance(value, PyDecimal):
        return _retyped_decimal(literal, value, kind)
    # a bool is an int to Python
    if isinstance(literal.type, Null) or isinstance(value, bool) or not isinstance(value, int):
        return None
    if is_integer(literal.type) and is_integer(kind):
        # an integer literal in range: bits of the magnitude, and the negative range reaches one further
        bits = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}[str(kind)]
        return replace(literal, type=kind) if -(1 << bits) <= value < 1 << bits else None
    # a double represents integers below 2 ** 53 exactly
    if is_integer(literal.type) and kind == DOUBLE and abs(value) < 1 << 53:
        return replace(literal, type=kind, value=float(value))
    if (
        is_integer(literal.type)
        and isinstance(kind, Decimal)
        and len(str(abs(value))) <= kind.precision - kind.scale
    ):
        return replace(
            literal,
            type=kind,
            value=PyDecimal(value).quantize(PyDecimal(1).scaleb(-kind.scale), context=_EXACT),
        )
    return None


def _retyped_decimal(literal: Literal, value: PyDecimal, kind: DataType) -> Literal | None:
    if kind == DOUBLE:
        return replace(literal, type=kind, value=float(value))
    if not isinstance(kind, Decimal) or not isinstance(literal.type, Decimal):
        return None
    # a decimal with no fewer digits before and behind the point
    widens = (
        kind.scale >= literal.type.scale
        and kind.precision - kind.scale >= literal.type.precision - literal.type.scale
    )
    return (
        replace(literal, type=kind, value=value.quantize(PyDecimal(1).scaleb(-kind.scale), context=_EXACT))
        if widens
        else None
    )
