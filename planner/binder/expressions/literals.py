"""Literals with Spark's types: numbers, times, intervals, parameters."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as PyDecimal
from zoneinfo import ZoneInfo

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    DataType,
    Decimal,
)
from penstock.planner.expressions.nodes import Literal
from penstock.planner.parser.syntax_nodes import IntervalLiteral, TypedLiteral, span_of

# the first magnitude that does not fit: values are -range .. range - 1
_RANGES: dict[DataType, int] = {TINYINT: 1 << 7, SMALLINT: 1 << 15, INT: 1 << 31, BIGINT: 1 << 63}
_LONGEST = 400  # characters of a number; a DOUBLE written out in full has 309 digits
_SUFFIXES: dict[str, DataType] = {"L": BIGINT, "S": SMALLINT, "Y": TINYINT, "D": DOUBLE, "F": FLOAT}
_MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
# '1 hour 30 minutes'
_WORD_PARTS = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]+)")
# (first unit, last unit): the form of the text in INTERVAL '..' first TO last
_SPANS = {
    ("DAY", "HOUR"): r"(?P<DAY>\d+) (?P<HOUR>\d+)",
    ("DAY", "MINUTE"): r"(?P<DAY>\d+) (?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("DAY", "SECOND"): r"(?P<DAY>\d+) (?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d+)?)",
    ("HOUR", "MINUTE"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("HOUR", "SECOND"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d+)?)",
    ("MINUTE", "SECOND"): r"(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d+)?)",
    ("YEAR", "MONTH"): r"(?P<YEAR>\d+)-(?P<MONTH>\d+)",
}


def _bad(message: str, span: Span | None, hint: str | None = None) -> PenstockError:
    return PenstockError("SQL-1011", message, span=span, hint=hint, sqlstate="22007")


def integer_type(value: int) -> DataType | None:
    """Return the smallest of INT, BIGINT and DECIMAL that holds the value; ``None`` above 38 digits."""
    for kind in (INT, BIGINT):
        if -_RANGES[kind] <= value < _RANGES[kind]:
            return kind
    # 38 is the largest precision of a DECIMAL
    digits = len(str(abs(value)))
    return Decimal(digits, 0) if digits <= 38 else None


def number(node: exp.Expr, negative: bool, span: Span | None) -> Literal:
    """Return a numeric literal. The sign belongs to it, so that the smallest INT is representable."""
    # 10L, 10S, 10Y, 1.5D, 1.5F, 1.5BD
    text, suffix = ("-" if negative else "") + node.name, node.meta.get("suffix")
    if len(text) > _LONGEST:
        raise _bad(
            f"a number of {len(text):,} characters is longer than any that fits",
            span,
            "numbers have at most 38 digits",
        )
    # 1e3 is a DOUBLE
    if suffix in ("D", "F") or (suffix is None and "e" in text.lower()):
        if math.isinf(float(text)):
            raise _bad(f"{text} does not fit a DOUBLE", span)
        return Literal(_SUFFIXES.get(suffix or "D", DOUBLE), False, value=float(text), span=span)
    # 1.5 is a DECIMAL(2, 1), as in Spark
    if suffix == "BD" or "." in text:
        return decimal_literal(text, span)
    # 10 is an INT, 10000000000 a BIGINT, longer ones a DECIMAL; a suffix fixes the type
    value = int(text)
    kind = _SUFFIXES[suffix] if suffix else integer_type(value)
    if kind is None or (suffix and not -_RANGES[kind] <= value < _RANGES[kind]):
        raise _bad(f"{text}{suffix or ''} does not fit {kind or 'a DECIMAL of 38 digits'}", span)
    return Literal(kind, False, value=value if not isinstance(kind, Decimal) else PyDecimal(value), span=span)


def decimal_literal(text: str, span: Span | None) -> Literal:
    """Return a DECIMAL of the digits of a text."""
    value = PyDecimal(text)
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    # 1E2BD: a positive exponent adds digits; 0.001 has precision 3.
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > 38:
        raise _bad(
            f"{text} does not fit a DECIMAL of 38 digits",
            span,
            "write it with an exponent, as 1.5e0, for a DOUBLE",
        )
    return Literal(Decimal(precision, scale), False, value=value, span=span)


def typed(node: TypedLiteral, zone: ZoneInfo) -> Literal:
    """Return ``DATE '..'``, ``TIME '..'``, ``TIMESTAMP '..'``, ``TIMESTAMP_LTZ '..'`` (an instant, read in
    ``zone``) or ``X'..'``.
    """
    text, kind, span = node.this.strip(), node.args["kind"], span_of(node)
    try:
        match kind:
            case "DATE":
                return Literal(DATE, False, value=date.fromisoformat(text), span=span)
            case "TIME":
                return Literal(TIME, False, value=time.fromisoformat(text), span=span)
            # X'00ff'
            case "X":
                return Literal(BINARY, False, value=bytes.fromhex(text), span=span)
        moment = datetime.fromisoformat(text)
    except ValueError:
        shape = {"DATE": "'2013-01-31'", "TIME": "'12:30:00'", "X": "'00ff'"}.get(
            kind, "'2013-01-31 12:30:00'"
        )
        raise _bad(f"'{node.this}' is no {kind}", span, f"write it as {shape}") from None
    # A text without an offset is local time in the session's zone.
    if kind == "TIMESTAMP_LTZ":
        local = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return Literal(TIMESTAMP_LTZ, False, value=local.astimezone(UTC), span=span)
    if moment.tzinfo is not None:
        raise _bad(f"a {kind} has no time zone", span, f"write TIMESTAMP_LTZ '{node.this}' for an instant")
    return Literal(TIMESTAMP, False, value=moment, span=span)


def interval(node: IntervalLiteral) -> Literal:
    """Return an interval literal: a timedelta for units up to weeks, a number of months for years
    and months.
    """
    text, span, sign = node.this.strip(), span_of(node), -1 if node.args.get("negative") else 1
    unit, last = node.args.get("unit"), node.args.get("last")
    # INTERVAL '-5' DAY and INTERVAL - '5' DAY; both signs cancel each other.
    if text.startswith(("-", "+")) and unit is not None:
        sign, text = (-sign if text[0] == "-" else sign), text[1:].strip()
    parts = _interval_parts(text, unit, last, span)
    months = sum(int(value) * _MONTHS[name] for name, value in parts if name in _MONTHS)
    exact = sum((value * _MICROSECONDS[name] for name, value in parts if name in _MICROSECONDS), PyDecimal(0))
    # Months differ in length, so they do not mix with days and smaller units.
    kinds = {name in _MONTHS for name, _ in parts}
    if len(kinds) > 1:
        raise _bad(
            "an interval has either months and years or days and less", span, "add two intervals instead"
        )
    # INTERVAL '1' YEAR is 12 months, stored in 32 bits
    if True in kinds:
        if not -(1 << 31) <= sign * months < 1 << 31:
            raise _bad(
                "the interval is too long", span, "an interval has at most 178956970 years and 7 months"
            )
        return Literal(YEAR_MONTH_INTERVAL, False, value=sign * months, span=span)
    if exact >= 1 << 62:
        raise _bad("the interval is too long", span)
    return Literal(DAY_TIME_INTERVAL, False, value=timedelta(microseconds=sign * int(exact)), span=span)


def _interval_parts(
    text: str, unit: str | None, last: str | None, span: Span | None
) -> list[tuple[str, PyDecimal]]:
    # INTERVAL '1 02:03:04' DAY TO SECOND
    if unit is not None and last is not None and last != unit:
        pattern = _SPANS.get((unit, last))
        if pattern is None:
            raise _bad(
                f"an interval of {unit} TO {last} does not exist",
                span,
                "write DAY TO SECOND or YEAR TO MONTH",
            )
        match = re.fullmatch(pattern, text)
        if match is None:
            shape = {"SECOND": "1 02:03:04", "MONTH": "1-2"}.get(last, "1 02")
            raise _bad(f"'{text}' is no interval of {unit} TO {last}", span, f"write it as '{shape}'")
        return [(name, PyDecimal(value)) for name, value in match.groupdict().items()]
    # INTERVAL '10' MINUTE; only seconds may have a fraction
    if unit is not None:
        if re.fullmatch(r"\d+", text) is None and not (unit == "SECOND" and re.fullmatch(r"\d+\.\d+", text)):
            raise _bad(f"'{text}' is no number of {unit}S", span, f"write INTERVAL '10' {unit}")
        return [(unit, PyDecimal(text))]
    # INTERVAL '1 hour 30 minutes'
    parts = [
        (match[2].upper().removesuffix("S"), PyDecimal(match[1])) for match in _WORD_PARTS.finditer(text)
    ]
    if (
        not parts
        or _WORD_PARTS.sub("", text).strip()
        or any(name not in _MICROSECONDS and name not in _MONTHS for name, _ in parts)
    ):
        raise _bad(
            f"'{text}' is no interval", span, "write INTERVAL '10' MINUTE or INTERVAL '1 hour 30 minutes'"
        )
    return parts
