"""CAST with Spark's semantics on DuckDB. Fractions are truncated, not rounded; text must be a whole number to
become an integer; truth values have words.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.types import (
    BIGINT,
    DOUBLE,
    STRING,
    TIMESTAMP,
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Double,
    Float,
    Map,
    Row,
    String,
    Timestamp,
    TimestampLtz,
    YearMonthInterval,
    is_integer,
    is_numeric,
    to_spark,
)
from penstock.planner.sql_generator.dialect import Flavour, binary, cast, function, integer, text, when
from penstock.planner.sql_generator.duckdb.nested import nested_cast

# 1.5d, 2F: the group is the number without its suffix.
_SUFFIXED_NUMBER = r"^(\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]\s*$"
_WITHOUT_ZONE = "[0-9]+-[0-9]+-[0-9]+([ T][0-9:.]*)?"
# Half a step above the largest float: a double from here on rounds to infinity.
_LARGEST_SINGLE = "3.4028235677973366e38"
_INTEGER_TEXT = r"\s*[+-]?[0-9]+\s*"
_TRUE_WORDS, _FALSE_WORDS = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def instant_of_text(moment: exp.Expr, kind: exp.DataType, safe: bool) -> exp.Expr:
    """Return a text as an instant of type ``kind``. Without a zone it is a time of the session's zone."""
    local = cast(moment.copy(), exp.DataType.build(to_spark(TIMESTAMP), dialect="spark"), safe)
    without_zone = function("regexp_full_match", moment.copy(), text(_WITHOUT_ZONE))
    return when(without_zone, function("penstock_instant", local), cast(moment, kind, safe))


def failing(message: str, kind: exp.DataType) -> exp.Expr:
    """Return an expression of a type that raises when it is computed."""
    return cast(function("error", text(message)), kind)


def _whole_number(arg: exp.Expr, target: DataType, kind: exp.DataType, safe: bool) -> exp.Expr:
    """Return a text that must be a whole number as an integer."""
    whole = function("regexp_full_match", arg, text(_INTEGER_TEXT))
    wrong = (
        exp.null()
        if safe
        else failing(f"CAST_INVALID_INPUT: text that is no whole number cannot be cast to {target}", kind)
    )
    return when(
        exp.Or(this=whole, expression=exp.Is(this=arg.copy(), expression=exp.null())),
        cast(arg.copy(), kind, safe),
        wrong,
    )


def cast_like_spark(
    flavour: Flavour, arg: exp.Expr, source: DataType, target: DataType, safe: bool
) -> exp.Expr:
    """Return CAST(arg AS target), or TRY_CAST when ``safe``, with Spark's ANSI semantics."""
    if isinstance(source, Array | Map | Row) or isinstance(target, Array | Map | Row):
        return nested_cast(flavour, arg, source, target, safe)
    kind = flavour.kind(target)
    match source, target:
        case String(), Boolean():  # Spark's words: t, yes, 1 and others
            return _truth(flavour, arg, safe)
        # DuckDB would round '1.5'
        case String(), _ if is_integer(target):
            return _whole_number(arg, target, kind, safe)
        # Spark truncates, DuckDB rounds
        case ((Float() | Double() | Decimal()), _) if is_integer(target):
            return cast(function("trunc", arg), kind, safe)
        # by way of text: the decimal that the double prints as
        case ((Float() | Double()), Decimal()):
            return cast(cast(cast(arg, flavour.kind(DOUBLE)), flavour.kind(STRING)), kind, safe)
        case ((Float() | Double()), String()):
            return function("penstock_text", arg)
        # Spark overflows to infinity, DuckDB raises
        case Double(), Float():
            return _single(arg, kind)
        # '1.5d' is a number in Spark
        case String(), (Float() | Double()):
            return cast(function("regexp_replace", arg, text(_SUFFIXED_NUMBER), text(r"\1")), kind, safe)
        case String(), Date():
            return cast(function("penstock_day", arg), kind, safe)
        case String(), (Timestamp() | TimestampLtz()):
            moment = function("penstock_moment", arg)
            return (instant_of_text if isinstance(target, TimestampLtz) else cast)(moment, kind, safe)
        case Timestamp(), TimestampLtz():
            return function("penstock_instant", arg)
        case ((Float() | Double() | Decimal()), TimestampLtz()):  # seconds since 1970, cut to microseconds
            number = arg if isinstance(source, Decimal) else cast(arg, flavour.kind(DOUBLE))
            micros = function("trunc", binary(exp.Mul, number, integer(1_000_000)))
            return flavour.from_epoch_us(cast(micros, flavour.kind(BIGINT), safe), target)
        case TimestampLtz(), Decimal():  # exact: microseconds times 0.000001
            micros = cast(function("epoch_us", arg), flavour.kind(Decimal(32, 0)))
            return cast(
                binary(exp.Mul, micros, cast(text("0.000001"), flavour.kind(Decimal(6, 6)))), kind, safe
            )
        case TimestampLtz(), (Float() | Double()):  # seconds since 1970 with a fraction
            return cast(binary(exp.Div, function("epoch_us", arg), integer(1_000_000)), kind, safe)
        case ((DayTimeInterval() | YearMonthInterval()), String()):
            raise flavour.refusal(f"CAST of {source} to STRING")
        case TimestampLtz(), String():  # in the session's time zone
            return cast(cast(arg, flavour.kind(TIMESTAMP)), kind)
        case TimestampLtz(), _ if is_numeric(target):  # whole seconds, rounded down: also before 1970
            seconds = function("floor", binary(exp.Div, function("epoch_us", arg), integer(1_000_000)))
            return cast(cast(seconds, flavour.kind(BIGINT)), kind, safe)
        case _, TimestampLtz() if is_integer(source):  # whole seconds since 1970
            return flavour.from_epoch_us(
                binary(exp.Mul, cast(arg, flavour.kind(BIGINT)), integer(1_000_000)), target
            )
        case Binary(), String():  # UTF-8
            return function("decode", arg)
        case String(), Binary():
            return function("encode", arg)
    return cast(arg, kind, safe)


def _single(arg: exp.Expr, kind: exp.DataType) -> exp.Expr:
    """A double that is too large for a float becomes infinite."""
    large = exp.GTE(this=function("abs", arg), expression=exp.Literal.number(_LARGEST_SINGLE))
    infinite = when(
        exp.GT(this=arg.copy(), expression=integer(0)),
        cast(text("Infinity"), kind),
        cast(text("-Infinity"), kind.copy()),
    )
    special = exp.Or(this=function("isnan", arg.copy()), expression=function("isinf", arg.copy()))
    return when(special, cast(arg.copy(), kind.copy()), when(large, infinite, cast(arg.copy(), kind.copy())))


def _truth(flavour: Flavour, arg: exp.Expr, safe: bool) -> exp.Expr:
    word = function("lower", function("trim", arg))

    def one_of(words: tuple[str, ...]) -> exp.Expr:
        return exp.In(this=word.copy(), expressions=[text(w) for w in words])

    kind = flavour.kind(Boolean())
    wrong = (
        exp.null()
        if safe
        else failing("CAST_INVALID_INPUT: text that is no truth value cannot be cast to BOOLEAN", kind)
    )
    ifs = [
        exp.If(this=one_of(_TRUE_WORDS), true=exp.true()),
        exp.If(this=one_of(_FALSE_WORDS), true=exp.false()),
        exp.If(this=exp.Is(this=arg.copy(), expression=exp.null()), true=exp.null()),
    ]
    return exp.Case(ifs=ifs, default=wrong)
