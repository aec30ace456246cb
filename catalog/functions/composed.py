"""Scalar functions of Spark and Flink that the binder writes with other functions."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass


@dataclass(frozen=True)
class ComposedFunction:
    """A function that is an expression of others. ``arity`` is (least, most); most is None where there is no
    limit.
    """

    name: str
    usage: str
    help: str
    arity: tuple[int, int | None]


_FUNCTIONS = (
    ComposedFunction("array_concat", "array_concat(a, b, ..)", "`concat` of arrays.", (1, None)),
    ComposedFunction(
        "array_insert",
        "array_insert(a, position, x)",
        "x at a constant position from 1, from the end below zero; NULLs fill a gap.",
        (3, 3),
    ),
    ComposedFunction("arrays_zip", "arrays_zip(a, b)", "Rows of the elements of one position.", (1, 2)),
    ComposedFunction("array_reverse", "array_reverse(a)", "`reverse(a)`.", (1, 1)),
    ComposedFunction("bit_length", "bit_length(s)", "Eight times `octet_length`.", (1, 1)),
    ComposedFunction("convert_tz", "convert_tz(s, from, to)", "A time as text in another zone.", (3, 3)),
    ComposedFunction("elt", "elt(n, a, b, ..)", "The n-th value; NULL where there is none.", (2, None)),
    ComposedFunction("equal_null", "equal_null(a, b)", "`a <=> b`.", (2, 2)),
    ComposedFunction("from_base64", "from_base64(s)", "The text of `unbase64(s)`.", (1, 1)),
    ComposedFunction("is_alpha", "is_alpha(s)", "Whether there are letters only; FALSE for NULL.", (1, 1)),
    ComposedFunction("is_digit", "is_digit(s)", "Whether there are digits only; FALSE for NULL.", (1, 1)),
    ComposedFunction("make_dt_interval", "make_dt_interval(d[, h[, m]])", "An interval of days.", (1, 3)),
    ComposedFunction("make_ym_interval", "make_ym_interval(y[, m])", "An interval of months.", (1, 2)),
    ComposedFunction(
        "map_zip_with",
        "map_zip_with(m, n, (k, v, w) -> ..)",
        "A value for each key of two maps; a value is NULL where a map has not the key.",
        (3, 3),
    ),
    ComposedFunction("positive", "positive(x)", "x, which is a number.", (1, 1)),
    ComposedFunction("sha224", "sha224(s)", "`sha2(s, 224)`.", (1, 1)),
    ComposedFunction("sha256", "sha256(s)", "`sha2(s, 256)`.", (1, 1)),
    ComposedFunction("sha384", "sha384(s)", "`sha2(s, 384)`.", (1, 1)),
    ComposedFunction("sha512", "sha512(s)", "`sha2(s, 512)`.", (1, 1)),
    ComposedFunction("to_base64", "to_base64(s)", "`base64(s)`.", (1, 1)),
    ComposedFunction("to_binary", "to_binary(s[, 'hex'])", "Bytes: hex, utf-8 or base64.", (1, 2)),
    ComposedFunction("to_char", "to_char(time, pattern)", "`date_format` of a time.", (2, 2)),
    ComposedFunction("to_varchar", "to_varchar(time, pattern)", "`date_format` of a time.", (2, 2)),
    ComposedFunction("truncate", "truncate(x[, d])", "x cut towards zero to d digits (0).", (1, 2)),
    ComposedFunction("try_to_date", "try_to_date(s)", "`TRY_CAST` to DATE.", (1, 1)),
    ComposedFunction("try_to_timestamp", "try_to_timestamp(s)", "`TRY_CAST` to TIMESTAMP.", (1, 1)),
    ComposedFunction("typeof", "typeof(x)", "The name of the type, in small letters.", (1, 1)),
)

COMPOSED: dict[str, ComposedFunction] = {function.name: function for function in _FUNCTIONS}
"""These functions by name."""

TREES = frozenset({"arrays_zip", "map_zip_with"})
"""Those that are rewritten before their arguments have types."""
