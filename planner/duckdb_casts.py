"""CAST as Spark does it, on DuckDB: fractions are cut, not rounded; text must be a whole number to be an integer; words for truth."""

from __future__ import annotations

from sqlglot import exp

from catalog.types import (
    BIGINT,
    STRING,
    TIMESTAMP,
    Binary,
    Boolean,
    DataType,
    Decimal,
    Double,
    Float,
    String,
    TimestampLtz,
    is_integer,
    is_numeric,
)
from planner.sql_flavour import Flavour, binary, cast, function, integer, text, when

_INTEGER_TEXT = r"\s*[+-]?[0-9]+\s*"
_TRUE_WORDS, _FALSE_WORDS = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")


def failing(message: str, kind: exp.DataType) -> exp.Expr:
    """Return an expression of a type that raises when it is computed."""
    return cast(function("error", text(message)), kind)


def cast_like_spark(flavour: Flavour, arg: exp.Expr, source: DataType, target: DataType, safe: bool) -> exp.Expr:
    """Return CAST(arg AS target), or TRY_CAST when ``safe``, with Spark's ANSI meaning."""
    kind = flavour.kind(target)
    match source, target:
        case String(), Boolean():
            return _truth(flavour, arg, safe)
        case String(), _ if is_integer(target):
            whole = function("regexp_full_match", arg, text(_INTEGER_TEXT))
            wrong = exp.null() if safe else failing(f"CAST_INVALID_INPUT: text that is no whole number cannot be cast to {target}", kind)
            return when(exp.Or(this=whole, expression=exp.Is(this=arg.copy(), expression=exp.null())), cast(arg.copy(), kind, safe), wrong)
        case ((Float() | Double() | Decimal()), _) if is_integer(target):
            return cast(function("trunc", arg), kind, safe)
        case ((Float() | Double()), Decimal()):
            return cast(cast(arg, flavour.kind(STRING)), kind, safe)
        case TimestampLtz(), String():
            return cast(cast(arg, flavour.kind(TIMESTAMP)), kind)
        case TimestampLtz(), _ if is_numeric(target):
            seconds = function("floor", binary(exp.Div, function("epoch_us", arg), integer(1_000_000)))
            return cast(cast(seconds, flavour.kind(BIGINT)), kind, safe)
        case _, TimestampLtz() if is_integer(source):
            return flavour.from_epoch_us(binary(exp.Mul, cast(arg, flavour.kind(BIGINT)), integer(1_000_000)), target)
        case Binary(), String():
            return function("decode", arg)
        case String(), Binary():
            return function("encode", arg)
    return cast(arg, kind, safe)


def _truth(flavour: Flavour, arg: exp.Expr, safe: bool) -> exp.Expr:
    word = function("lower", function("trim", arg))

    def one_of(words: tuple[str, ...]) -> exp.Expr:
        return exp.In(this=word.copy(), expressions=[text(w) for w in words])

    kind = flavour.kind(Boolean())
    wrong = exp.null() if safe else failing("CAST_INVALID_INPUT: text that is no truth value cannot be cast to BOOLEAN", kind)
    ifs = [
        exp.If(this=one_of(_TRUE_WORDS), true=exp.true()),
        exp.If(this=one_of(_FALSE_WORDS), true=exp.false()),
        exp.If(this=exp.Is(this=arg.copy(), expression=exp.null()), true=exp.null()),
    ]
    return exp.Case(ifs=ifs, default=wrong)
