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
    ComposedFunction("array_reverse", "array_reverse(a)", "`reverse(a)`.", (1, 1)),
    ComposedFunction(
        "array_slice",
        "array_slice(a, from, to)",
        "The elements of constant positions from 1, both inclusive.",
        (2, 3),
    ),
    ComposedFunction("arrays_zip", "arrays_zip(a, b)", "Rows of the elements of one position.", (1, 2)),
    ComposedFunction("bit_length", "bit_length(s)", "Eight times `octet_length`.", (1, 1)),
    ComposedFunction(
        "bitmap_bit_position",
        "bitmap_bit_position(n)",
        "The bit of n in its bitmap of 32,768 bits.",
        (1, 1),
    ),
    ComposedFunction(
        "bitmap_bucket_number",
        "bitmap_bucket_number(n)",
        "The number of the bitmap of n.",
        (1, 1),
    ),
    ComposedFunction("collation", "collation(s)", "'UTF8_BINARY': texts compare by bytes.", (1, 1)),
    ComposedFunction("convert_tz", "convert_tz(s, from, to)", "A time as text in another zone.", (3, 3)),
    ComposedFunction("current_row_timestamp", "current_row_timestamp()", "`current_timestamp()`.", (0, 0)),
    ComposedFunction("current_time", "current_time()", "The time of day now in the session zone.", (0, 1)),
    ComposedFunction(
        "date_bin",
        "date_bin(interval, time[, origin])",
        "The beginning of the time's bucket of a constant width, from 1970 on or from an origin.",
        (2, 3),
    ),
    ComposedFunction("elt", "elt(n, a, b, ..)", "The n-th value; NULL where there is none.", (2, None)),
    ComposedFunction("equal_null", "equal_null(a, b)", "`a <=> b`.", (2, 2)),
    ComposedFunction("from_base64", "from_base64(s)", "The text of `unbase64(s)`.", (1, 1)),
    ComposedFunction(
        "geohashencode",
        "geohashEncode(longitude, latitude[, n])",
        "The geohash of a place in n characters, or 12; NULL for degrees that are none. As in ClickHouse.",
        (2, 3),
    ),
    ComposedFunction(
        "haversine",
        "haversine(lat1, lon1, lat2, lon2)",
        "Kilometres along a great circle between two places, in degrees; as in Snowflake.",
        (4, 4),
    ),
    ComposedFunction(
        "inet_aton", "inet_aton(s)", "An IPv4 address as a number, NULL of a text that is none.", (1, 1)
    ),
    ComposedFunction(
        "inet_ntoa", "inet_ntoa(n)", "The IPv4 address of a number, NULL of one that is none.", (1, 1)
    ),
    ComposedFunction("is_alpha", "is_alpha(s)", "Whether there are letters only; FALSE for NULL.", (1, 1)),
    ComposedFunction("is_decimal", "is_decimal(s)", "Whether a text is a number; FALSE for NULL.", (1, 1)),
    ComposedFunction("is_digit", "is_digit(s)", "Whether there are digits only; FALSE for NULL.", (1, 1)),
    ComposedFunction("is_ipv4", "is_ipv4(s)", "Whether a text is an IPv4 address.", (1, 1)),
    ComposedFunction("is_ipv6", "is_ipv6(s)", "Whether a text is an IPv6 address.", (1, 1)),
    ComposedFunction("isipv4string", "isIPv4String(s)", "`is_ipv4(s)`, as ClickHouse names it.", (1, 1)),
    ComposedFunction("isipv6string", "isIPv6String(s)", "`is_ipv6(s)`, as ClickHouse names it.", (1, 1)),
    ComposedFunction(
        "ipv4numtostring", "IPv4NumToString(n)", "`inet_ntoa(n)`, as ClickHouse names it.", (1, 1)
    ),
    ComposedFunction(
        "ipv4stringtonumornull", "IPv4StringToNumOrNull(s)", "`inet_aton(s)`, as ClickHouse names it.", (1, 1)
    ),
    ComposedFunction("is_valid_utf8", "is_valid_utf8(s)", "TRUE: every STRING is valid UTF-8.", (1, 1)),
    ComposedFunction(
        "isipaddressinrange",
        "isIPAddressInRange(s, '10.0.0.0/8')",
        "Whether an IPv4 address is one of a constant network; NULL of a text that is none.",
        (2, 2),
    ),
    ComposedFunction("json_quote", "json_quote(s)", "The text as a string of JSON.", (1, 1)),
    ComposedFunction("json_string", "json_string(x)", "The value as JSON.", (1, 1)),
    ComposedFunction(
        "json_extract_path",
        "json_extract_path(s, key, ..)",
        "The value of JSON at names of fields and positions from 0, a VARIANT; also `s -> key`.",
        (2, None),
    ),
    ComposedFunction(
        "json_extract_path_text",
        "json_extract_path_text(s, key, ..)",
        "The value of JSON at names of fields and positions from 0, a text; also `s ->> key`.",
        (2, None),
    ),
    ComposedFunction(
        "json_unquote",
        "json_unquote(s)",
        "The text of a string of JSON; other texts stay.",
        (1, 1),
    ),
    ComposedFunction("localtime", "localtime()", "The time of day now in the session zone.", (0, 1)),
    ComposedFunction("make_dt_interval", "make_dt_interval(d[, h[, m[, s]]])", "Days to seconds.", (1, 4)),
    ComposedFunction(
        "make_interval",
        "make_interval(y[, m[, w[, d[, h[, mi[, s]]]]]])",
        "An interval of years and months, or of the units below; the others are the constant 0.",
        (1, 7),
    ),
    ComposedFunction("make_time", "make_time(h, m, s)", "A TIME.", (3, 3)),
    ComposedFunction(
        "make_timestamp_ltz",
        "make_timestamp_ltz(y, mo, d, h, mi, s)",
        "A TIMESTAMP_LTZ of a time in the session zone.",
        (6, 6),
    ),
    ComposedFunction("make_valid_utf8", "make_valid_utf8(s)", "s: every STRING is valid UTF-8.", (1, 1)),
    ComposedFunction("make_ym_interval", "make_ym_interval(y[, m])", "An interval of months.", (1, 2)),
    ComposedFunction(
        "map_union",
        "map_union(m, n)",
        "A map with the keys of both, with the values of n where both have one.",
        (2, 2),
    ),
    ComposedFunction(
        "map_zip_with",
        "map_zip_with(m, n, (k, v, w) -> ..)",
        "A value for each key of two maps; a value is NULL where a map has not the key.",
        (3, 3),
    ),
    ComposedFunction(
        "mask",
        "mask(s[, upper[, lower[, digit[, other]]]])",
        "Letters and digits replaced by constants, X, x and n; NULL keeps them.",
        (1, 5),
    ),
    ComposedFunction("positive", "positive(x)", "x, which is a number.", (1, 1)),
    ComposedFunction(
        "quote",
        "quote(s)",
        "The text in single quotes, those within behind a backslash.",
        (1, 1),
    ),
    ComposedFunction(
        "regexp_matches",
        "regexp_matches(s, pattern[, options])",
        "`s RLIKE pattern`; of the options i is without case, s lets . match line ends, as in DuckDB.",
        (2, 3),
    ),
    ComposedFunction(
        "regexp_match",
        "regexp_match(s, pattern)",
        "The groups of the first match of a constant pattern, or the match.",
        (2, 2),
    ),
    ComposedFunction("sha224", "sha224(s)", "`sha2(s, 224)`.", (1, 1)),
    ComposedFunction("sha256", "sha256(s)", "`sha2(s, 256)`.", (1, 1)),
    ComposedFunction("sha384", "sha384(s)", "`sha2(s, 384)`.", (1, 1)),
    ComposedFunction("sha512", "sha512(s)", "`sha2(s, 512)`.", (1, 1)),
    ComposedFunction(
        "strftime",
        "strftime(t, format)",
        "`date_format` with a constant format of C, such as '%Y-%m-%d %H:%M'.",
        (2, 2),
    ),
    ComposedFunction(
        "strptime",
        "strptime(s, format)",
        "`to_timestamp` with a constant format of C, such as '%d.%m.%Y'.",
        (2, 2),
    ),
    ComposedFunction(
        "time_bucket",
        "time_bucket(interval, time[, origin])",
        "The beginning of the time's bucket of a constant width, from Monday, 3 January 2000, on.",
        (2, 3),
    ),
    ComposedFunction("time_diff", "time_diff(unit, a, b)", "`timestampdiff` of two TIMEs.", (3, 3)),
    ComposedFunction("time_trunc", "time_trunc(unit, t)", "`date_trunc` of a TIME.", (2, 2)),
    ComposedFunction("to_base64", "to_base64(s)", "`base64(s)`.", (1, 1)),
    ComposedFunction("to_binary", "to_binary(s[, 'hex'])", "Bytes: hex, utf-8 or base64.", (1, 2)),
    ComposedFunction(
        "to_char",
        "to_char(x, format)",
        "`date_format` of a time; a DECIMAL in a constant format such as '99,999.99', as in Spark.",
        (2, 2),
    ),
    ComposedFunction(
        "to_number",
        "to_number(s, format)",
        "The DECIMAL of a text in a constant format such as '99,999.99'.",
        (2, 2),
    ),
    ComposedFunction("to_time", "to_time(s[, pattern])", "A TIME.", (1, 2)),
    ComposedFunction("to_variant_object", "to_variant_object(x)", "`CAST` to VARIANT.", (1, 1)),
    ComposedFunction("to_varchar", "to_varchar(x, format)", "`to_char(x, format)`.", (2, 2)),
    ComposedFunction("truncate", "truncate(x[, d])", "x cut towards zero to d digits (0).", (1, 2)),
    ComposedFunction("try_make_interval", "try_make_interval(y[, m[, ..]])", "`make_interval`.", (1, 7)),
    ComposedFunction(
        "try_make_timestamp",
        "try_make_timestamp(y, mo, d, h, mi, s)",
        "A TIMESTAMP; NULL where there is none.",
        (6, 6),
    ),
    ComposedFunction(
        "try_to_binary",
        "try_to_binary(s[, 'hex'])",
        "`to_binary`; NULL for a text in another format.",
        (1, 2),
    ),
    ComposedFunction("try_to_date", "try_to_date(s)", "`TRY_CAST` to DATE.", (1, 1)),
    ComposedFunction(
        "try_to_number",
        "try_to_number(s, format)",
        "`to_number`; NULL for a text in another format.",
        (2, 2),
    ),
    ComposedFunction("try_to_time", "try_to_time(s)", "`TRY_CAST` to TIME.", (1, 1)),
    ComposedFunction("try_to_timestamp", "try_to_timestamp(s)", "`TRY_CAST` to TIMESTAMP.", (1, 1)),
    ComposedFunction("try_validate_utf8", "try_validate_utf8(s)", "s: every STRING is valid UTF-8.", (1, 1)),
    ComposedFunction(
        "try_variant_get",
        "try_variant_get(v, '$.a[0]'[, 'INT'])",
        "`variant_get`; NULL for a value that is no such type.",
        (2, 3),
    ),
    ComposedFunction("typeof", "typeof(x)", "The name of the type, in small letters.", (1, 1)),
    ComposedFunction("validate_utf8", "validate_utf8(s)", "s: every STRING is valid UTF-8.", (1, 1)),
    ComposedFunction(
        "variant_get",
        "variant_get(v, '$.a[0]'[, 'INT'])",
        "The value at a constant path, as a type; elements count from 0. NULL where there is none.",
        (2, 3),
    ),
)

COMPOSED: dict[str, ComposedFunction] = {function.name: function for function in _FUNCTIONS}
"""These functions by name."""

TREES = frozenset({"arrays_zip", "map_union", "map_zip_with"})
"""Those that are rewritten before their arguments have types."""
