"""Functions of text, declared."""

from __future__ import annotations

from penstock.catalog.function_rules import Function, fixed
from penstock.catalog.nested_rules import concatenated_values, reversed_value
from penstock.catalog.types import BIGINT, BOOLEAN, INT, STRING

_TEXT = fixed(STRING, result=STRING)
_TEXT_TO_INT = fixed(STRING, result=INT)
_TEXT_TEST = fixed(STRING, result=BOOLEAN)
_TEXT_AND_NUMBER = fixed(STRING, INT, result=STRING)
_PADDED = fixed(STRING, INT, STRING, result=STRING)

STRINGS: tuple[Function, ...] = (
    Function("upper", "upper(s)", "The text in capitals.", _TEXT, (1, 1), ("ucase",)),
    Function("lower", "lower(s)", "The text in small letters.", _TEXT, (1, 1), ("lcase",)),
    Function("initcap", "initcap(s)", "Each word with a capital first and small letters after.", _TEXT, (1, 1)),
    Function("trim", "trim(s[, chars])", "The text without leading and trailing blanks (or those characters).", _TEXT, (1, 2), ("btrim",)),
    Function("ltrim", "ltrim(s[, chars])", "The text without leading blanks (or those characters).", _TEXT, (1, 2)),
    Function("rtrim", "rtrim(s[, chars])", "The text without trailing blanks (or those characters).", _TEXT, (1, 2)),
    Function("length", "length(s)", "The number of characters.", _TEXT_TO_INT, (1, 1), ("char_length", "character_length", "len")),
    Function("octet_length", "octet_length(s)", "The number of bytes in UTF-8.", _TEXT_TO_INT, (1, 1)),
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
    Function("repeat", "repeat(s, n)", "The text n times.", _TEXT_AND_NUMBER, (2, 2)),
    Function("space", "space(n)", "n blanks.", fixed(INT, result=STRING), (1, 1)),
    Function("concat", "concat(a, ..)", "Texts, or arrays, joined; NULL when one is NULL.", concatenated_values, (1, None)),
    Function(
        "concat_ws",
        "concat_ws(sep, a, ..)",
        "Texts joined with a separator; NULLs are skipped.",
        fixed(STRING, result=STRING),
        (1, None),
        nullable=True,
    ),
    Function("replace", "replace(s, find[, by])", "The text with every occurrence replaced (removed).", _TEXT, (2, 3)),
    Function("translate", "translate(s, from, to)", "Characters replaced one by one; those without a partner vanish.", _TEXT, (3, 3)),
    Function("lpad", "lpad(s, n[, pad])", "The text cut or filled on the left to n characters.", _PADDED, (2, 3)),
    Function("rpad", "rpad(s, n[, pad])", "The text cut or filled on the right to n characters.", _PADDED, (2, 3)),
    Function("reverse", "reverse(x)", "The characters of a text, or the elements of an array, from last to first.", reversed_value, (1, 1)),
    Function("instr", "instr(s, part)", "The position of the first occurrence from 1; 0 when there is none.", _TEXT_TO_INT, (2, 2)),
    Function(
        "position",
        "position(part, s[, start])",
        "The position of the first occurrence at or after start, from 1; 0 when there is none.",
        fixed(STRING, STRING, INT, result=INT),
        (2, 3),
        ("locate", "charindex"),
    ),
    Function(
        "split_part",
        "split_part(s, delimiter, n)",
        "The n-th piece from 1 (from the end below zero); empty when there is none, n = 0 raises.",
        fixed(STRING, STRING, INT, result=STRING),
        (3, 3),
        fallible=True,
    ),
    Function("starts_with", "starts_with(s, part)", "Whether the text begins so.", _TEXT_TEST, (2, 2), ("startswith",)),
    Function("ends_with", "ends_with(s, part)", "Whether the text ends so.", _TEXT_TEST, (2, 2), ("endswith",)),
    Function("contains", "contains(s, part)", "Whether the part occurs in the text.", _TEXT_TEST, (2, 2)),
    Function(
        "regexp_replace",
        "regexp_replace(s, pattern, by)",
        "Every match replaced; $1 in the replacement is the first group.",
        fixed(STRING, result=STRING),
        (3, 3),
        fallible=True,
    ),
    Function(
        "regexp_extract",
        "regexp_extract(s, pattern[, group])",
        "The group (1) of the first match; empty when there is no match.",
        fixed(STRING, STRING, INT, result=STRING),
        (2, 3),
        fallible=True,
    ),
    Function("ascii", "ascii(s)", "The code of the first character; 0 for an empty text.", _TEXT_TO_INT, (1, 1)),
    Function("chr", "chr(n)", "The character of code n modulo 256; empty below zero.", fixed(BIGINT, result=STRING), (1, 1), ("char",)),
    Function("md5", "md5(s)", "MD5 digest in hexadecimal.", _TEXT, (1, 1)),
    Function("sha1", "sha1(s)", "SHA-1 digest in hexadecimal.", _TEXT, (1, 1), ("sha",)),
    Function("sha2", "sha2(s, bits)", "SHA-2 digest in hexadecimal; bits is 224, 256 (or 0), 384 or 512.", _TEXT_AND_NUMBER, (2, 2), nullable=True),
)
