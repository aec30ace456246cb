"""Casts to ``TIMESTAMP(p)`` and ``TIME(p)`` with fewer than six digits, inside arrays, maps and rows too: the
finer digits are cut off, as arithmetic on microseconds that every backend has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time

from penstock.catalog.errors import Span
from penstock.catalog.functions.registry import resolve
from penstock.catalog.types import (
    BIGINT,
    INT,
    STRING,
    Array,
    DataType,
    Date,
    Map,
    Null,
    Row,
    Time,
    Timestamp,
    TimestampLtz,
    is_timestamp,
)
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.binder.expressions.overloads import overloaded
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import Call, Cast, Expression, Lambda, LambdaVariable, Literal

_MICROSECONDS = 6
_EPOCH = datetime(1970, 1, 1)
# units that DATE_TRUNC has for a number of digits
_UNITS = {0: "SECOND", 3: "MILLISECOND"}


def _call(function: str, args: Sequence[Expression], span: Span | None) -> Expression:
    """Return the call of a function that takes its arguments as they are."""
    if (rewritten := overloaded(function, args, _call, span)) is not None:
        return rewritten
    signature = resolve(function, args, span)
    wanted = [coerced(arg, kind) for arg, kind in zip(args, signature.arg_types, strict=False)]
    nullable = any(arg.nullable for arg in args) if signature.nullable is None else signature.nullable
    return Call(signature.result, nullable, function=signature.canonical, args=tuple(wanted), span=span)


def cut_cast(cast: Expression, source: DataType, wanted: DataType, outer: int = 0) -> Expression:
    """Return a cast without what is finer than the times of the wanted type say; the cast itself where its
    source is as coarse. ``outer``: the number of parameters of lambdas around it.

    A time before 1970 is cut downwards, as the others are. Keys of a map that become equal are an error.
    """
    return _cut(cast, source, wanted, outer)


def _cut(value: Expression, source: DataType | None, wanted: DataType, outer: int) -> Expression:
    """Return a value without the digits that ``wanted`` does not have. ``source``: its type before, ``None``
    for a text.
    """
    if not _is_finer(source, wanted):
        return value
    match wanted:
        case Array(element):
            body = _body(outer, ("element", element))
            return body("transform", value, 0, source.element if isinstance(source, Array) else None)
        case Map(key, item):
            body = _body(outer, ("key", key), ("value", item))
            before = source if isinstance(source, Map) else None
            if _is_finer(before and before.key, key):
                value = body("transform_keys", value, 0, before and before.key)
            if _is_finer(before and before.value, item):
                value = body("transform_values", value, 1, before and before.value)
            return value
        case Row():
            return _cut_row(value, source, wanted, outer)
    return _cut_time(value, wanted)


def _is_finer(source: DataType | None, wanted: DataType) -> bool:
    """Return whether a value of the source type may have digits that the wanted type has not."""
    if isinstance(source, Null):
        return False
    match wanted:
        case Array(element):
            return _is_finer(source.element if isinstance(source, Array) else None, element)
        case Map(key, value):
            before = (source.key, source.value) if isinstance(source, Map) else (None, None)
            return _is_finer(before[0], key) or _is_finer(before[1], value)
        case Row(fields):
            parts = _parts(source, wanted)
            return any(_is_finer(part, kind) for part, (_, kind) in zip(parts, fields, strict=True))
        case Timestamp(digits) | TimestampLtz(digits):
            # what is of that precision already is not computed anew: joins by time look for bare columns
            coarse = isinstance(source, Timestamp | TimestampLtz) and source.precision <= digits
            return digits < _MICROSECONDS and not coarse and not isinstance(source, Date)
        case Time(digits):
            return digits < _MICROSECONDS
    return False


def _parts(source: DataType | None, wanted: Row) -> list[DataType | None]:
    """Return the types of a row's fields before its cast, which is by position."""
    if not isinstance(source, Row):
        return [None] * len(wanted.fields)
    return [kind for _, kind in source.fields]


def _body(outer: int, *parameters: tuple[str, DataType]) -> Callable[..., Expression]:
    """Return what makes a call whose lambda cuts one of its parameters."""
    variables = tuple(
        LambdaVariable(kind, name != "key", number=outer + i, name=f"{name}_{outer}")
        for i, (name, kind) in enumerate(parameters)
    )

    def made(function: str, value: Expression, which: int, source: DataType | None) -> Expression:
        one = variables[which]
        body = _cut(one, source, one.type, outer + len(variables))
        nullable, span = value.nullable, value.span
        cutting = Lambda(body.type, body.nullable, span=span, parameters=variables, body=body)
        return Call(value.type, nullable, function=function, args=(value, cutting), span=span)

    return made


def _cut_row(value: Expression, source: DataType | None, wanted: Row, outer: int) -> Expression:
    span, parts = value.span, []
    for i, ((name, kind), before) in enumerate(zip(wanted.fields, _parts(source, wanted), strict=True)):
        place = Literal(INT, False, value=i)
        part = Call(kind, True, function="field", args=(value, place), span=span)
        parts += [Literal(STRING, False, value=name), _cut(part, before, kind, outer)]
    made = _call("named_struct", parts, span)
    if not value.nullable:
        return made
    # a NULL is no row of NULLs
    return case_of([(_call("is_not_null", [value], span), made)], None, span)


def _cut_time(value: Expression, kind: DataType) -> Expression:
    assert isinstance(kind, Time | Timestamp | TimestampLtz)
    digits, span = kind.precision, value.span
    step_us = 10 ** (_MICROSECONDS - digits)
    # a constant stays one: options of table functions must be constants
    if isinstance(value, Cast) and isinstance(value.arg, Literal):
        constant = value.arg.value
        if isinstance(constant, datetime | time):
            cut = constant.replace(microsecond=constant.microsecond - constant.microsecond % step_us)
            return replace(value, arg=replace(value.arg, value=cut))
    unit = _UNITS.get(digits)
    # DATE_TRUNC of an instant goes by the wall clock of the zone, which shows an hour of autumn twice
    if unit is not None and not isinstance(kind, TimestampLtz):
        args = [Literal(STRING, False, value=unit), value]
        return _call("date_trunc", args, span)
    return _without_rest(value, step_us, span)


def _without_rest(time: Expression, step_us: int, span: Span | None) -> Expression:
    """Return the last multiple of ``step_us`` microseconds that is not after a time."""
    unit = Literal(STRING, False, value="MICROSECOND")
    start: Expression
    if is_timestamp(time.type):
        epoch = _EPOCH.replace(tzinfo=UTC) if isinstance(time.type, TimestampLtz) else _EPOCH
        start = Literal(time.type, False, value=epoch)
    else:
        start = Cast(time.type, False, arg=Literal(STRING, False, value="00:00:00"), safe=False, span=span)
    since = _call("timestampdiff", [unit, start, time], span)
    rest = _call("pmod", [since, Literal(BIGINT, False, value=step_us)], span)
    moved = [unit, _call("negate", [rest], span), time]
    return _call("timestampadd", moved, span)
