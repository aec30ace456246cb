"""Functions of BINARY, TIME and intervals, as expressions of functions of text and of timestamps. So every
runtime computes them, and alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import (
    BINARY,
    DAY_TIME_INTERVAL,
    INT,
    STRING,
    TIME,
    Binary,
    DayTimeInterval,
    Null,
    Time,
    Timestamp,
    YearMonthInterval,
)
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Caller, Cast, Expression, Literal

Arguments = Sequence[Expression]
Overload = Callable[[Arguments, Caller, Span | None], Expression]

# the day on which a TIME is a timestamp; a month that begins a leap cycle has no part in a time of day
_DAY = "1970-01-01 "
_EPOCH = Literal(Timestamp(6), False, value=datetime(1970, 1, 1))


def overloaded(name: str, args: Arguments, call: Caller, span: Span | None) -> Expression | None:
    """Return a call over BINARY, TIME or an interval as an expression of others; ``None`` for any other."""
    first = next((arg.type for arg in args if isinstance(arg.type, _TYPES)), None)
    if first is None:
        return None
    # BINARY beside a text is a text's function, which says what is wrong
    if isinstance(first, Binary):
        # characters to remove are no bytes
        if name in _TRIMS and not all(isinstance(arg.type, Binary | Null) for arg in args):
            return None
        table = _OF_BINARY if isinstance(args[0].type, Binary | Null) else {}
    elif isinstance(first, Time):
        table = _OF_TIME
    else:
        table = _OF_DAYS if isinstance(first, DayTimeInterval) else _OF_MONTHS
    build = table.get(name)
    return None if build is None else build(args, call, span)


def _whole(value: int) -> Expression:
    return Literal(INT, False, value=value)


# BINARY: a byte is two hexadecimal digits


def _hex(arg: Expression, call: Caller, span: Span | None) -> Expression:
    # a NULL without a type
    known = Cast(BINARY, True, arg=arg, safe=False, span=span) if isinstance(arg.type, Null) else arg
    return call("hex", [known], span)


def _bytes(digits: Expression, call: Caller, span: Span | None) -> Expression:
    return call("unhex", [digits], span)


def _doubled(arg: Expression, call: Caller, span: Span | None) -> Expression:
    return call("multiply", [arg, _whole(2)], span)


def _length(bits: int) -> Overload:
    """Return the builder of the number of bytes, or of their bits."""

    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        digits = call("length", [_hex(args[0], call, span)], span)
        if bits == 8:
            return call("multiply", [digits, _whole(4)], span)
        return call("shiftright", [digits, _whole(1)], span)

    return build


def _substr(args: Arguments, call: Caller, span: Span | None) -> Expression:
    start = args[1]
    # byte n begins at digit 2n - 1; 0 is read as 1, and below zero is from the end
    positive = call("greater", [start, _whole(0)], span)
    twice = _doubled(start, call, span)
    at = case_of([(positive, call("subtract", [twice, _whole(1)], span))], twice, span)
    lengths = [_doubled(arg, call, span) for arg in args[2:]]
    return _bytes(call("substr", [_hex(args[0], call, span), at, *lengths], span), call, span)


def _ends(side: str) -> Overload:
    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        digits = call(side, [_hex(args[0], call, span), _doubled(args[1], call, span)], span)
        return _bytes(digits, call, span)

    return build


def _padded(side: str) -> Overload:
    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        # as in Spark: without bytes to fill with, zeros
        pad = _hex(args[2], call, span) if len(args) > 2 else Literal(STRING, False, value="00")
        digits = [_hex(args[0], call, span), _doubled(args[1], call, span), pad]
        return _bytes(call(side, digits, span), call, span)

    return build


def _trimmed(*patterns: str) -> Overload:
    """Return the builder of TRIM: bytes of a constant set at the ends, blanks without one. Each is a pair of
    digits, and a match at an end begins between two of them.
    """

    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        digits = _hex(args[0], call, span)
        removed = _constant_bytes(args[1], span) if len(args) > 1 else b" "
        if removed is None:
            return Literal(BINARY, True, value=None)
        if not removed:
            return args[0]
        anyone = f"(?:{'|'.join(sorted({f'{byte:02X}' for byte in removed}))})+"
        for pattern in patterns:
            written = Literal(STRING, False, value=pattern.format(anyone))
            digits = call("regexp_replace", [digits, written, Literal(STRING, False, value="")], span)
        return _bytes(digits, call, span)

    return build


def _constant_bytes(arg: Expression, span: Span | None) -> bytes | None:
    """Return the bytes that TRIM removes, ``None`` for NULL. Raises SQL-1103 for what is no constant."""
    if isinstance(arg, Cast) and isinstance(arg.arg.type, Null):
        return None
    if isinstance(arg, Literal) and (arg.value is None or isinstance(arg.value, bytes)):
        return arg.value
    raise PenstockError(
        "SQL-1103",
        "TRIM of BINARY takes the bytes to remove as a constant",
        span=span,
        hint="write trim(b, X'00'), or unhex(regexp_replace(hex(b), '^(?:00)+', ''))",
        sqlstate="42804",
    )


def _joined(args: Arguments, call: Caller, span: Span | None) -> Expression:
    return _bytes(call("concat", [_hex(arg, call, span) for arg in args], span), call, span)


# TIME: a timestamp of the first day of 1970


def _timestamp(arg: Expression, call: Caller, span: Span | None) -> Expression:
    if not isinstance(arg.type, Time):
        return arg
    written = Cast(STRING, arg.nullable, arg=arg, safe=False, span=span)
    text = call("concat", [Literal(STRING, False, value=_DAY), written], span)
    return Cast(Timestamp(6), arg.nullable, arg=text, safe=False, span=span)


def _of_timestamp(name: str) -> Overload:
    """Return the builder of a call of the same function of timestamps."""
    return lambda args, call, span: call(name, [_timestamp(arg, call, span) for arg in args], span)


def _time(name: str) -> Overload:
    """Return the builder of a function that makes another TIME; beyond midnight it begins anew."""

    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        moved = call(name, [_timestamp(arg, call, span) for arg in args], span)
        # the difference of two is an interval
        if not isinstance(moved.type, Timestamp):
            return moved
        return Cast(TIME, moved.nullable, arg=moved, safe=False, span=span)

    return build


# intervals: their distance from 1970


def _part_of_days(name: str) -> Overload:
    """Return the builder of hours, minutes or seconds of an interval, negative where it is."""

    def build(args: Arguments, call: Caller, span: Span | None) -> Expression:
        size = call("abs", [args[0]], span)
        part = call(name, [call("add", [_EPOCH, size], span)], span)
        none = Literal(DAY_TIME_INTERVAL, False, value=timedelta(0))
        negative = call("less", [args[0], none], span)
        return case_of([(negative, call("negate", [part], span))], part, span)

    return build


def _days(args: Arguments, call: Caller, span: Span | None) -> Expression:
    return _count("DAY", args[0], call, span)


def _count(unit: str, interval: Expression, call: Caller, span: Span | None) -> Expression:
    end = call("add", [_EPOCH, interval], span)
    whole = call("timestampdiff", [Literal(STRING, False, value=unit), _EPOCH, end], span)
    return Cast(INT, whole.nullable, arg=whole, safe=False, span=span)


def _years(args: Arguments, call: Caller, span: Span | None) -> Expression:
    months = _count("MONTH", args[0], call, span)
    years = call("div", [months, _whole(12)], span)
    return Cast(INT, years.nullable, arg=years, safe=False, span=span)


def _months(args: Arguments, call: Caller, span: Span | None) -> Expression:
    return call("mod", [_count("MONTH", args[0], call, span), _whole(12)], span)


_TYPES = (Binary, Time, DayTimeInterval, YearMonthInterval)

_TRIMS: dict[str, Overload] = {
    **dict.fromkeys(("trim", "btrim"), _trimmed("^{}", "{}$")),
    "ltrim": _trimmed("^{}"),
    "rtrim": _trimmed("{}$"),
}
_OF_BINARY: dict[str, Overload] = {
    **dict.fromkeys(("length", "char_length", "character_length", "len", "octet_length"), _length(1)),
    "bit_length": _length(8),
    **dict.fromkeys(("substr", "substring", "mid"), _substr),
    "left": _ends("left"),
    "right": _ends("right"),
    "lpad": _padded("lpad"),
    "rpad": _padded("rpad"),
    **_TRIMS,
    "concat": _joined,
    "concat_op": _joined,
}
_OF_TIME: dict[str, Overload] = {
    **{name: _of_timestamp(name) for name in ("hour", "minute", "second", "exact_second", "date_format")},
    **{name: _of_timestamp(name) for name in ("timestampdiff", "datediff")},
    **{name: _time(name) for name in ("add", "subtract", "timestampadd", "date_trunc")},
    "time_diff": _of_timestamp("timestampdiff"),
    "time_trunc": _time("date_trunc"),
    "to_char": _of_timestamp("date_format"),
    "to_varchar": _of_timestamp("date_format"),
}
_OF_DAYS: dict[str, Overload] = {
    "day": _days,
    "dayofmonth": _days,
    **{name: _part_of_days(name) for name in ("hour", "minute", "second", "exact_second")},
}
_OF_MONTHS: dict[str, Overload] = {"year": _years, "month": _months}
