"""CAST of numbers and texts to INTERVAL, written with other functions: an interval type has units only where
it is written, as in CAST(x AS INTERVAL DAY).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlglot import exp

from penstock.catalog.errors import Span
from penstock.catalog.types import (
    BIGINT,
    DAY_TIME_INTERVAL,
    INT,
    STRING,
    YEAR_MONTH_INTERVAL,
    DataType,
    DayTimeInterval,
    Decimal,
    String,
    Timestamp,
    is_integer,
    is_numeric,
)
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Caller, Cast, Expression, Literal, conjunction
from penstock.planner.parser.syntax_nodes import CastTo, IntervalLiteral

_EPOCH = Literal(Timestamp(6), False, value=datetime(1970, 1, 1))
_LENGTHS: dict[str, timedelta | int] = {
    "WEEK": timedelta(weeks=1),
    "DAY": timedelta(days=1),
    "HOUR": timedelta(hours=1),
    "MINUTE": timedelta(minutes=1),
    "SECOND": timedelta(seconds=1),
    "YEAR": 12,
    "MONTH": 1,
}
_WORDS = {
    DAY_TIME_INTERVAL: ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND"),
    YEAR_MONTH_INTERVAL: ("YEAR", "MONTH"),
}
# of a text: a number of a unit, and a number alone
_AMOUNT = r"[+-]?[0-9]{1,9}"
_FRACTION = r"(?:\.[0-9]{1,6})?"
# 1 02:03:04.5, 02:03:04, 1 02:03; in MINUTE TO SECOND 03:04.5 has no hours
_CLOCK = r"^[+-]?(?:([0-9]{1,9}) +)?([0-9]{1,9}):([0-9]{1,2})(?::([0-9]{1,2}(?:\.[0-9]{1,6})?))?$"
_SHORT_CLOCK = r"^[+-]?([0-9]{1,9}):([0-9]{1,2}(?:\.[0-9]{1,6})?)$"
_YEARS = r"^[+-]?([0-9]{1,9})-([0-9]{1,2})$"
# what CAST(i AS STRING) writes: INTERVAL '1 02:03:04' DAY TO SECOND
_WRITTEN = r"^(?i:interval) *'([^']*)'.*$"


def interval_cast(
    value: Expression, kind: DataType, units: Sequence[str], safe: bool, call: Caller, span: Span | None
) -> Expression | None:
    """Return a number or a text as an interval of ``units``, its first and its last; ``None`` for what is no
    such cast. A number needs one unit.
    """
    if kind not in _WORDS or not units:
        return None
    if isinstance(value.type, String):
        return _of_text(value, kind, units, safe, call, span)
    if len(units) > 1 or not (is_integer(value.type) or isinstance(value.type, Decimal)):
        return None
    # as Spark: a fraction of a day is cut off, one of a second stays
    if isinstance(value.type, Decimal) and units[0] != "SECOND":
        value = Cast(BIGINT, True, arg=value, safe=safe, span=span)
    product = _times(units[0], value, call, span)
    if not safe:
        return product
    # as many as 64 bits of microseconds, or 32 bits of months, have
    length = _LENGTHS[units[0]]
    if isinstance(length, int):
        most = (1 << 31) // length
    else:
        most = ((1 << 63) - 1) // (length // timedelta(microseconds=1))
    limits = [_number(-most + 1), _number(most - 1)]
    inside = conjunction(
        (call("greater_equal", [value, limits[0]], span), call("less_equal", [value, limits[1]], span))
    )
    return case_of([(inside, product)], Literal(kind, True, value=None), span)


def interval_conversion(
    value: Expression, tree: CastTo, call: Caller, span: Span | None
) -> Expression | None:
    """Return a CAST to an interval, or of one to a number, which may be cast further; ``None`` for others."""
    kind, safe = tree.sql_type, bool(tree.args.get("safe"))
    converted = interval_cast(value, kind, tree.interval_units, safe, call, span)
    if converted is None and (unit := written_unit(tree.this)) is not None:
        converted = interval_number(value, unit, kind, call, span)
    return converted


def written_unit(tree: exp.Expr) -> str | None:
    """Return the one unit that an interval is written in, ``None`` where there are several or none."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, IntervalLiteral):
        return tree.args.get("unit") if tree.args.get("last") is None else None
    units = tree.interval_units if isinstance(tree, CastTo) else ()
    return units[0] if len(units) == 1 else None


def interval_number(
    value: Expression, unit: str, kind: DataType, call: Caller, span: Span | None
) -> Expression | None:
    """Return an interval of one unit as a whole number of it; ``None`` for a ``kind`` that is no number."""
    if not is_numeric(kind) or value.type not in _WORDS:
        return None
    end = call("add", [_EPOCH, value], span)
    return call("timestampdiff", [_text(unit), _EPOCH, end], span)


def _of_text(
    value: Expression, kind: DataType, units: Sequence[str], safe: bool, call: Caller, span: Span | None
) -> Expression:
    body = call("regexp_replace", [call("trim", [value], span), _text(_WRITTEN), _text("$1")], span)
    words = _WORDS[kind]
    fraction = _FRACTION if isinstance(kind, DayTimeInterval) else ""
    one = rf"{_AMOUNT}{fraction} *(?:{'|'.join(word.lower() for word in words)})s?"
    parts = [
        _amount(body, rf"(?i)({_AMOUNT}{fraction}) *{word.lower()}s?", 1, kind, call, span) for word in words
    ]
    forms = [(rf"^(?i:{one}(?: +{one})*)$", _sum(words, parts, call, span))]
    if len(units) == 1:
        number = rf"^({_AMOUNT}{_FRACTION if units[0] == 'SECOND' else ''})$"
        forms.append((number, _sum(units, [_amount(body, number, 1, kind, call, span)], call, span)))
    else:
        pattern, named = (
            (_YEARS, words)
            if kind == YEAR_MONTH_INTERVAL
            else (_SHORT_CLOCK, ("MINUTE", "SECOND"))
            if tuple(units) == ("MINUTE", "SECOND")
            else (_CLOCK, ("DAY", "HOUR", "MINUTE", "SECOND"))
        )
        found = [_amount(body, pattern, turn + 1, kind, call, span) for turn in range(len(named))]
        total = _sum(named, found, call, span)
        below = call("startswith", [body, _text("-")], span)
        forms.append((pattern, case_of([(below, call("negate", [total], span))], total, span)))
    cases = [(call("rlike", [body, _text(pattern)], span), made) for pattern, made in forms]
    nothing = Literal(kind, True, value=None)
    if safe:
        return case_of(cases, nothing, span)
    # a text that is no number: its cast says so, and names the type
    told = call("concat", [value, _text(f" as INTERVAL {' TO '.join(units)}")], span)
    number_of = Cast(Decimal(18, 6), True, arg=told, safe=False, span=span)
    unit = "SECOND" if isinstance(kind, DayTimeInterval) else "MONTH"
    wrong = _times(unit, _whole(number_of, kind), call, span)
    return case_of([*cases, (call("is_null", [value], span), nothing)], wrong, span)


def _amount(
    body: Expression, pattern: str, group: int, kind: DataType, call: Caller, span: Span | None
) -> Expression:
    """Return the number of a group of a pattern, 0 where there is none."""
    found = call("regexp_extract", [body, _text(pattern), Literal(INT, False, value=group)], span)
    # no group is an empty text, which is no number
    number = Cast(Decimal(18, 6), True, arg=found, safe=True, span=span)
    return call("coalesce", [_whole(number, kind), _whole(_number(0), kind)], span)


def _whole(number: Expression, kind: DataType) -> Expression:
    if isinstance(kind, DayTimeInterval):
        return number
    return Cast(INT, True, arg=number, safe=True, span=number.span)


def _sum(words: Sequence[str], amounts: Sequence[Expression], call: Caller, span: Span | None) -> Expression:
    total: Expression | None = None
    for word, amount in zip(words, amounts, strict=True):
        part = _times(word, amount, call, span)
        total = part if total is None else call("add", [total, part], span)
    assert total is not None, "an interval has a unit"
    return total


def _times(unit: str, amount: Expression, call: Caller, span: Span | None) -> Expression:
    length = _LENGTHS[unit]
    kind: DataType = YEAR_MONTH_INTERVAL if isinstance(length, int) else DAY_TIME_INTERVAL
    return call("multiply", [Literal(kind, False, value=length), amount], span)


def _text(value: str) -> Expression:
    return Literal(STRING, False, value=value)


def _number(value: int) -> Expression:
    return Literal(Decimal(20, 0), False, value=value)
