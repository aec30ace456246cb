"""Functions of words in texts, and a few of numbers and days, declared."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.bit_functions import function_of as of
from penstock.catalog.function_rules import Function, Mismatch, Operand, Rule, Typing, fixed, wanted
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Array,
    Boolean,
    DataType,
    Decimal,
    Null,
    String,
    is_integer,
    is_numeric,
    is_timestamp,
)

_TEXT = fixed(STRING, result=STRING)
_FOUND = fixed(STRING, result=INT)


def _formatted(operands: Sequence[Operand]) -> Typing:
    for position, operand in enumerate(operands[1:], 2):
        if not (is_numeric(operand.type) or isinstance(operand.type, String | Boolean)):
            raise Mismatch(f"argument {position} is {operand.type}, wanted a text, number or BOOLEAN", "CAST it to STRING")
    return (wanted(operands[0], STRING, 1), *(operand.type for operand in operands[1:])), STRING


def _number_text(operands: Sequence[Operand]) -> Typing:
    kind = operands[0].type
    number = kind if is_integer(kind) or isinstance(kind, Decimal) else wanted(operands[0], DOUBLE, 1)
    return (number, wanted(operands[1], INT, 2)), STRING


def _in_zone(operands: Sequence[Operand]) -> Typing:
    kind = operands[0].type
    moment = kind if is_timestamp(kind) else wanted(operands[0], TIMESTAMP, 1)
    return (moment, wanted(operands[1], STRING, 2)), moment


def _moment(result: DataType) -> Rule:
    def rule(operands: Sequence[Operand]) -> Typing:
        kind = operands[0].type
        return (kind if is_timestamp(kind) else DATE if isinstance(kind, Null) else wanted(operands[0], TIMESTAMP, 1),), result

    return rule


def _months(operands: Sequence[Operand]) -> Typing:
    kinds = tuple(o.type if is_timestamp(o.type) else wanted(o, TIMESTAMP, i) for i, o in enumerate(operands[:2], 1))
    return (*kinds, *(BOOLEAN for _ in operands[2:])), DOUBLE


WORDS: tuple[Function, ...] = (
    of("levenshtein", "levenshtein(a, b[, limit])", "How many letters must change; -1 beyond the limit.", fixed(STRING, STRING, INT, result=INT)),
    of("soundex", "soundex(s)", "The sound of a word in a letter and three digits.", _TEXT),
    of("overlay", "overlay(s, by, start[, length])", "A piece of the text replaced.", fixed(STRING, STRING, INT, result=STRING)),
    of(
        "substring_index",
        "substring_index(s, delimiter, n)",
        "What stands before the n-th delimiter, or after it from the end.",
        fixed(STRING, STRING, INT, result=STRING),
    ),
    of(
        "split_index",
        "split_index(s, delimiter, n)",
        "The piece of number n from 0; NULL where there is none.",
        fixed(STRING, STRING, INT, result=STRING),
        nullable=True,
    ),
    of("format_number", "format_number(x, d)", "The number with d digits and thousands apart.", _number_text, nullable=True),
    Function(
        "format_string",
        "format_string(format, a, ..)",
        "The values put into a format such as '%s: %5.2f'.",
        _formatted,
        (1, None),
        ("printf",),
        False,
        fallible=True,
    ),
    of("find_in_set", "find_in_set(s, list)", "The place of the text in a list with commas, from 1.", _FOUND),
    of("regexp_count", "regexp_count(s, pattern)", "How often the pattern matches.", _FOUND, fallible=True),
    of("regexp_substr", "regexp_substr(s, pattern)", "The first match; NULL where there is none.", _TEXT, fallible=True, nullable=True),
    of("regexp_instr", "regexp_instr(s, pattern)", "Where the first match begins, from 1; 0 where there is none.", _FOUND, fallible=True),
    of(
        "regexp_extract_all",
        "regexp_extract_all(s, pattern[, group])",
        "The group (1) of all matches.",
        fixed(STRING, STRING, INT, result=Array(STRING)),
        fallible=True,
    ),
)


def _double(name: str, usage: str, text: str, *aliases: str) -> Function:
    return of(name, usage, text, fixed(DOUBLE, result=DOUBLE), *aliases)


NUMBERS: tuple[Function, ...] = (
    _double("sinh", "sinh(x)", "Hyperbolic sine."),
    _double("cosh", "cosh(x)", "Hyperbolic cosine."),
    _double("tanh", "tanh(x)", "Hyperbolic tangent."),
    _double("asinh", "asinh(x)", "Inverse hyperbolic sine."),
    _double("acosh", "acosh(x)", "Inverse hyperbolic cosine; NaN below 1."),
    _double("atanh", "atanh(x)", "Inverse hyperbolic tangent; NaN beyond 1."),
    _double("cot", "cot(x)", "Cotangent of an angle in radians."),
    _double("sec", "sec(x)", "Secant of an angle in radians."),
    _double("csc", "csc(x)", "Cosecant of an angle in radians."),
    _double("expm1", "expm1(x)", "exp(x) - 1, exact near 0."),
    of("log1p", "log1p(x)", "ln(1 + x), exact near 0; NULL at and below -1.", fixed(DOUBLE, result=DOUBLE), nullable=True),
    _double("hypot", "hypot(x, y)", "Length of the vector (x, y)."),
    _double("rint", "rint(x)", "x without fraction, halves to even."),
    _double("nanvl", "nanvl(x, y)", "x, or y where x is NaN."),
    Function("e", "e()", "2.718281828459045.", fixed(DOUBLE, result=DOUBLE), (0, 0), nullable=False),
    of("factorial", "factorial(n)", "1 * 2 * .. * n; NULL below 0 and above 20.", fixed(INT, result=BIGINT), nullable=True),
    of(
        "width_bucket",
        "width_bucket(x, low, high, n)",
        "Which of n equal parts between low and high x is in; 0 before, n + 1 behind.",
        fixed(DOUBLE, DOUBLE, DOUBLE, BIGINT, result=BIGINT),
        nullable=True,
    ),
)

DAYS: tuple[Function, ...] = (
    of("next_day", "next_day(d, name)", "The first day of that name after d.", fixed(DATE, STRING, result=DATE), fallible=True),
    of("dayname", "dayname(t)", "The day of the week: Mon, Tue, ..", _moment(STRING)),
    of("monthname", "monthname(t)", "The month: Jan, Feb, ..", _moment(STRING)),
    of("exact_second", "extract(second FROM t)", "The second with its fraction.", _moment(Decimal(8, 6))),
    of("months_between", "months_between(a, b[, rounded])", "Months from b to a; days count as parts of 31.", _months),
    of("from_utc_timestamp", "from_utc_timestamp(t, zone)", "The wall clock of a zone when that of UTC shows t.", _in_zone, fallible=True),
    of("to_utc_timestamp", "to_utc_timestamp(t, zone)", "The wall clock of UTC when that of a zone shows t.", _in_zone, fallible=True),
    of(
        "convert_timezone",
        "convert_timezone(source, target, t)",
        "The wall clock of a zone when that of another shows t.",
        fixed(STRING, STRING, TIMESTAMP, result=TIMESTAMP),
        fallible=True,
    ),
)
