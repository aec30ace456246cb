"""Declarations of the functions of text, and of further functions of numbers and days."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.functions.bitwise import function_of as of
from penstock.catalog.functions.bitwise import text_or_bytes
from penstock.catalog.functions.nested_type_rules import concatenated_values, reversed_value
from penstock.catalog.functions.type_rules import Function, Mismatch, Operand, Rule, Typing, fixed, wanted
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

# The last type repeats, so each of these rules serves any number of arguments (the arity limits them).
_TEXT = fixed(STRING, result=STRING)
_TEXT_TO_INT = fixed(STRING, result=INT)
_TEXT_TEST = fixed(STRING, result=BOOLEAN)
_TEXT_AND_NUMBER = fixed(STRING, INT, result=STRING)
_PADDED = fixed(STRING, INT, STRING, result=STRING)

_DIGEST = text_or_bytes(STRING)


def _sized_digest(operands: Sequence[Operand]) -> Typing:
    (first,), result = _DIGEST(operands[:1])
    return (first, wanted(operands[1], INT, 2)), result


STRINGS: tuple[Function, ...] = (
    Function("upper", "upper(s)", "The text in capitals.", _TEXT, (1, 1), ("ucase",)),
    Function("lower", "lower(s)", "The text in small letters.", _TEXT, (1, 1), ("lcase",)),
    Function(
        "initcap", "initcap(s)", "Each word with a capital first and small letters after.", _TEXT, (1, 1)
    ),
    # btrim is Postgres' and Spark's name of the two-sided form.
    Function(
        "trim",
        "trim(s[, chars])",
        "The text without leading and trailing blanks (or those characters).",
        _TEXT,
        (1, 2),
        ("btrim",),
    ),
    Function(
        "ltrim", "ltrim(s[, chars])", "The text without leading blanks (or those characters).", _TEXT, (1, 2)
    ),
    Function(
        "rtrim", "rtrim(s[, chars])", "The text without trailing blanks (or those characters).", _TEXT, (1, 2)
    ),
    # Characters, not bytes: octet_length counts those.
    Function(
        "length",
        "length(s)",
        "The number of characters.",
        _TEXT_TO_INT,
        (1, 1),
        ("char_length", "character_length", "len"),
    ),
    Function("octet_length", "octet_length(s)", "The number of bytes in UTF-8.", _TEXT_TO_INT, (1, 1)),
    # Start 0 is read as 1, as in Spark.
    Function(
        "substr",
        "substr(s, start[, length])",
        "A piece of the text; start counts from 1, 0 is read as 1, below zero counts from the end.",
        fixed(STRING, INT, INT, result=STRING),
        (2, 3),
        ("substring", "mid"),
    ),
    Function("left", "left(s, n)", "The first n characters.", _TEXT_AND_NUMBER, (2, 2)),
    Function("right", "right(s, n)", "The last n characters.", _TEXT_AND_NUMBER, (2, 2)),
    Function("repeat", "repeat(s, n)", "The text n times.", _TEXT_AND_NUMBER, (2, 2), ("replicate",)),
    Function("space", "space(n)", "n blanks.", fixed(INT, result=STRING), (1, 1)),
    Function(
        "concat",
        "concat(a, ..)",
        "Texts, or arrays, joined; NULL when one is NULL.",
        concatenated_values,
        (1, None),
    ),
    # Unlike concat, skips NULLs; NULL only where the separator is.
    Function(
        "concat_ws",
        "concat_ws(sep, a, ..)",
        "Texts joined with a separator; NULLs are skipped.",
        fixed(STRING, result=STRING),
        (1, None),
        nullable=True,
    ),
    Function(
        "replace",
        "replace(s, find[, by])",
        "The text with every occurrence replaced (removed).",
        _TEXT,
        (2, 3),
    ),
    Function(
        "translate",
        "translate(s, from, to)",
        "Characters replaced one by one; those without a partner vanish.",
        _TEXT,
        (3, 3),
    ),
    Function(
        "lpad", "lpad(s, n[, pad])", "The text cut or filled on the left to n characters.", _PADDED, (2, 3)
    ),
    Function(
        "rpad", "rpad(s, n[, pad])", "The text cut or filled on the right to n characters.", _PADDED, (2, 3)
    ),
    Function(
        "reverse",
        "reverse(x)",
        "The characters of a text, or the elements of an array, from last to first.",
        reversed_value,
        (1, 1),
    ),
    Function(
        "instr",
        "instr(s, part)",
        "The position of the first occurrence from 1; 0 when there is none.",
        _TEXT_TO_INT,
        (2, 2),
        ("strpos",),
    ),
    # position(part IN s) and locate(part, s): the part comes first; instr(s, part) has it second.
    Function(
        "position",
        "position(part, s[, start])",
        "The position of the first occurrence at or after start, from 1; 0 when there is none.",
        fixed(STRING, STRING, INT, result=INT),
        (2, 3),
        ("locate", "charindex"),
    ),
    # From 1, and an error for 0; split_index of Flink counts from 0 and returns NULL where there is none.
    Function(
        "split_part",
        "split_part(s, delimiter, n)",
        "The n-th piece from 1 (from the end below zero); empty when there is none, n = 0 raises.",
        fixed(STRING, STRING, INT, result=STRING),
        (3, 3),
        fallible=True,
    ),
    Function(
        "starts_with",
        "starts_with(s, part)",
        "Whether the text begins so.",
        _TEXT_TEST,
        (2, 2),
        ("startswith",),
    ),
    Function(
        "ends_with", "ends_with(s, part)", "Whether the text ends so.", _TEXT_TEST, (2, 2), ("endswith",)
    ),
    Function("contains", "contains(s, part)", "Whether the part occurs in the text.", _TEXT_TEST, (2, 2)),
    # Fallible, as all regular expressions: a pattern in a column may be invalid.
    Function(
        "regexp_replace",
        "regexp_replace(s, pattern, by)",
        "Every match replaced; $1 in the replacement is the first group.",
        fixed(STRING, result=STRING),
        (3, 3),
        fallible=True,
    ),
    # The group is 1 unless said, as in Spark; in Flink it is 0, the whole match.
    Function(
        "regexp_extract",
        "regexp_extract(s, pattern[, group])",
        "The group (1) of the first match; empty when there is no match.",
        fixed(STRING, STRING, INT, result=STRING),
        (2, 3),
        fallible=True,
    ),
    Function(
        "ascii", "ascii(s)", "The code of the first character; 0 for an empty text.", _TEXT_TO_INT, (1, 1)
    ),
    Function(
        "chr",
        "chr(n)",
        "The character of code n modulo 256; empty below zero.",
        fixed(BIGINT, result=STRING),
        (1, 1),
        ("char",),
    ),
    Function("md5", "md5(s)", "MD5 digest of a text or of bytes, in hexadecimal.", _DIGEST, (1, 1)),
    Function("sha1", "sha1(s)", "SHA-1 digest in hexadecimal.", _DIGEST, (1, 1), ("sha",)),
    # NULL for other numbers of bits.
    Function(
        "sha2",
        "sha2(s, bits)",
        "SHA-2 digest in hexadecimal; bits is 224, 256 (or 0), 384 or 512.",
        _sized_digest,
        (2, 2),
        nullable=True,
    ),
)


_FOUND = fixed(STRING, result=INT)


def _formatted(operands: Sequence[Operand]) -> Typing:
    # %s, %d and %f have no form for nested values and times.
    for position, operand in enumerate(operands[1:], 2):
        if not (is_numeric(operand.type) or isinstance(operand.type, String | Boolean)):
            raise Mismatch(
                f"argument {position} is {operand.type}, wanted a text, number or BOOLEAN",
                "CAST it to STRING",
            )
    return (wanted(operands[0], STRING, 1), *(operand.type for operand in operands[1:])), STRING


def _number_text(operands: Sequence[Operand]) -> Typing:
    kind = operands[0].type
    # Integers and decimals stay exact: a DOUBLE would lose digits beyond 2**53.
    number = kind if is_integer(kind) or isinstance(kind, Decimal) else wanted(operands[0], DOUBLE, 1)
    return (number, wanted(operands[1], INT, 2)), STRING


def _in_zone(operands: Sequence[Operand]) -> Typing:
    kind = operands[0].type
    # The result has the type of the argument: its wall clock moves, its type does not.
    moment = kind if is_timestamp(kind) else wanted(operands[0], TIMESTAMP, 1)
    return (moment, wanted(operands[1], STRING, 2)), moment


def _moment(result: DataType) -> Rule:
    def rule(operands: Sequence[Operand]) -> Typing:
        kind = operands[0].type
        return (
            kind
            # NULL has no precision: a DATE is enough for the name of a day.
            if is_timestamp(kind)
            else DATE
            if isinstance(kind, Null)
            else wanted(operands[0], TIMESTAMP, 1),
        ), result

    return rule


def _months(operands: Sequence[Operand]) -> Typing:
    kinds = tuple(
        o.type if is_timestamp(o.type) else wanted(o, TIMESTAMP, i) for i, o in enumerate(operands[:2], 1)
    )
    return (*kinds, *(BOOLEAN for _ in operands[2:])), DOUBLE


WORDS: tuple[Function, ...] = (
    of(
        "levenshtein",
        "levenshtein(a, b[, limit])",
        "How many letters must change; -1 beyond the limit.",
        fixed(STRING, STRING, INT, result=INT),
    ),
    of("soundex", "soundex(s)", "The sound of a word in a letter and three digits.", _TEXT),
    of(
        "overlay",
        "overlay(s, by, start[, length])",
        "A piece of the text replaced.",
        fixed(STRING, STRING, INT, result=STRING),
    ),
    of(
        "substring_index",
        "substring_index(s, delimiter, n)",
        "The text before the n-th delimiter, or after it from the end.",
        fixed(STRING, STRING, INT, result=STRING),
    ),
    of(
        # Of Flink.
        "split_index",
        "split_index(s, delimiter, n)",
        "The piece of number n from 0; NULL where there is none.",
        fixed(STRING, STRING, INT, result=STRING),
        nullable=True,
    ),
    of(
        "format_number",
        "format_number(x, d)",
        "The number with d digits and thousands apart.",
        _number_text,
        nullable=True,
    ),
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
    of(
        "find_in_set",
        "find_in_set(s, list)",
        "The position of the text in a list with commas, from 1.",
        _FOUND,
    ),
    of("regexp_count", "regexp_count(s, pattern)", "How often the pattern matches.", _FOUND, fallible=True),
    of(
        "regexp_substr",
        "regexp_substr(s, pattern)",
        "The first match; NULL where there is none.",
        _TEXT,
        fallible=True,
        nullable=True,
    ),
    of(
        "regexp_instr",
        "regexp_instr(s, pattern)",
        "Where the first match begins, from 1; 0 where there is none.",
        _FOUND,
        fallible=True,
    ),
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
    of(
        "log1p",
        "log1p(x)",
        "ln(1 + x), exact near 0; NULL at and below -1.",
        fixed(DOUBLE, result=DOUBLE),
        nullable=True,
    ),
    _double("hypot", "hypot(x, y)", "Length of the vector (x, y)."),
    _double("rint", "rint(x)", "x without fraction, halves to even."),
    _double("nanvl", "nanvl(x, y)", "x, or y where x is NaN."),
    Function("e", "e()", "2.718281828459045.", fixed(DOUBLE, result=DOUBLE), (0, 0), nullable=False),
    of(
        # 21! does not fit 64 bits.
        "factorial",
        "factorial(n)",
        "1 * 2 * .. * n; NULL below 0 and above 20.",
        fixed(INT, result=BIGINT),
        nullable=True,
    ),
    of(
        # NULL where n is not above 0, low equals high, or one is not finite.
        "width_bucket",
        "width_bucket(x, low, high, n)",
        "Which of n equal parts between low and high x is in; 0 before, n + 1 behind.",
        fixed(DOUBLE, DOUBLE, DOUBLE, BIGINT, result=BIGINT),
        nullable=True,
    ),
)

DAYS: tuple[Function, ...] = (
    of(
        "next_day",
        "next_day(d, name)",
        "The first day of that name after d.",
        fixed(DATE, STRING, result=DATE),
        fallible=True,
    ),
    of("dayname", "dayname(t)", "The day of the week: Mon, Tue, ..", _moment(STRING)),
    of("monthname", "monthname(t)", "The month: Jan, Feb, ..", _moment(STRING)),
    # 59.999999: two digits before the point, microseconds behind it.
    of("exact_second", "extract(second FROM t)", "The second with its fraction.", _moment(Decimal(8, 6))),
    of(
        "months_between",
        "months_between(a, b[, rounded])",
        "Months from b to a; days count as parts of 31.",
        _months,
    ),
    of(
        # Not AT TIME ZONE: the argument and the result are both wall clocks.
        "from_utc_timestamp",
        "from_utc_timestamp(t, zone)",
        "The wall clock of a zone when that of UTC shows t.",
        _in_zone,
        fallible=True,
    ),
    of(
        "to_utc_timestamp",
        "to_utc_timestamp(t, zone)",
        "The wall clock of UTC when that of a zone shows t.",
        _in_zone,
        fallible=True,
    ),
    of(
        "convert_timezone",
        "convert_timezone(source, target, t)",
        "The wall clock of a zone when that of another shows t.",
        fixed(STRING, STRING, TIMESTAMP, result=TIMESTAMP),
        fallible=True,
    ),
)
