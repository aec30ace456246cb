"""Spark's spellings of the registry's functions; nearly all have the same name."""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.functions.datetime import canonical_unit
from penstock.catalog.types import (
    BIGINT,
    TIMESTAMP_LTZ,
    Date,
    DayTimeInterval,
    Timestamp,
    TimestampLtz,
    to_spark,
)
from penstock.planner.expressions.nodes import Call, Literal
from penstock.planner.sql_generator.dialect import (
    CONFLICTING_ROWS,
    OPERATORS,
    SEVERAL_ROWS,
    Spelling,
    binary,
    cast,
    function,
    infix,
    named,
    same_names,
    single_value,
    when,
)
from penstock.planner.sql_generator.spark.intervals import us_interval
from penstock.planner.sql_generator.spark.nested import SPARK_NESTED

FIXED_UNITS_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
"""Units of time of fixed length, in microseconds."""


def unit_of(call: Call) -> str:
    """Return the constant unit of time that is a call's first argument, in canonical form."""
    unit = call.args[0]
    assert isinstance(unit, Literal) and isinstance(unit.value, str)
    return canonical_unit(unit.value)


def like(node: type[exp.Expr]) -> Spelling:
    """Return the spelling of LIKE or ILIKE with its escape character, a backslash by default."""

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        escape = args[2] if len(args) > 2 else exp.Literal.string("\\")
        return exp.Paren(this=exp.Escape(this=node(this=args[0], expression=args[1]), expression=escape))

    return spelling


def is_truth(truth: bool) -> Spelling:
    """Return the spelling of IS TRUE or IS FALSE."""
    return lambda call, args: exp.Paren(
        this=exp.Is(this=args[0], expression=exp.true() if truth else exp.false())
    )


def conditional(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """Spell if(condition, a, b) as CASE."""
    return when(*args)


def nvl2(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """Spell nvl2(x, a, b) as CASE."""
    return when(exp.Not(this=exp.Is(this=args[0], expression=exp.null())), args[1], args[2])


def _typed(spelling: Spelling) -> Spelling:
    """Cast to the call's type, where Spark's own result type differs."""
    return lambda call, args: cast(
        spelling(call, args), exp.DataType.build(to_spark(call.type), dialect="spark")
    )


def _moved(node: type[exp.Expr]) -> Spelling:
    """``+`` and ``-`` on dates: the operand, or the difference, is cast to the plan's type. Between instants
    is the time that passes, where Spark subtracts wall clocks.
    """

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        if all(isinstance(arg.type, TimestampLtz) for arg in call.args):
            return us_interval(binary(node, *(function("unix_micros", arg) for arg in args)))
        result = binary(node, *args)
        # DATE + INTERVAL '1' DAY is a TIMESTAMP in Spark where the plan has a DATE.
        if isinstance(call.type, Date | DayTimeInterval | Timestamp) and any(
            isinstance(arg.type, Date) for arg in call.args
        ):
            return cast(result, exp.DataType.build(to_spark(call.type), dialect="spark"))
        return result

    return spelling


def _trimmed(name: str) -> Spelling:
    """LTRIM and RTRIM with the characters as the first argument."""
    # ltrim(text, characters) is ltrim(characters, text) in Spark.
    return lambda call, args: function(name, *reversed(args))


def _timestampdiff(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return function("timestampdiff", exp.var(unit_of(call).upper()), *args[1:])


def _timestampadd(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return function("timestampadd", exp.var(unit_of(call).upper()), *args[1:])


def _to_timestamp_ltz(call: Call, args: list[exp.Expr]) -> exp.Expr:
    if call.args[0].type == BIGINT:
        # TO_TIMESTAMP_LTZ(n, 0) counts seconds, TO_TIMESTAMP_LTZ(n, 3) milliseconds
        precision = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], Literal) else 3
        return function("timestamp_seconds" if precision == 0 else "timestamp_millis", args[0])
    return function("to_timestamp_ltz", *args)


def _unix_timestamp(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # Spark reads a TIMESTAMP_NTZ as one of UTC: here it is one of the session's zone
    if isinstance(call.args[0].type, Timestamp):
        args = [cast(args[0], exp.DataType.build(to_spark(TIMESTAMP_LTZ), dialect="spark")), *args[1:]]
    return function("unix_timestamp", *args)


def _wall_clock(name: str) -> Spelling:
    """Return the spelling of ``from_utc_timestamp`` or ``to_utc_timestamp``. Spark's own take instants: a
    TIMESTAMP_NTZ would be read in the session's zone.
    """

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        if isinstance(call.args[0].type, TimestampLtz):
            return function(name, *args)
        zones = [exp.Literal.string("UTC"), args[1]]
        return function("convert_timezone", *(zones if name.startswith("from") else zones[::-1]), args[0])

    return spelling


def _from_json(call: Call, args: list[exp.Expr]) -> exp.Expr:
    options = [function("map", exp.Literal.string("mode"), mode) for mode in args[2:]]
    return function("from_json", args[0], exp.Literal.string(to_spark(call.type)), *options)


_SAME_NAME = (
    "coalesce nullif greatest least abs ceil floor round bround pmod sqrt cbrt pow exp ln log log10 "
    "log2 sin cos tan asin acos atan "
    "atan2 degrees radians pi upper lower initcap length octet_length substr left right repeat "
    "space concat concat_ws replace translate "
    "lpad rpad reverse instr position split_part contains regexp_replace regexp_extract ascii chr "
    "md5 sha1 sha2 year quarter "
    "month day hour minute second dayofweek weekday dayofyear weekofyear trunc date_format to_date "
    "make_date datediff date_add date_sub "
    "add_months last_day from_unixtime timestamp_seconds timestamp_millis "
    "timestamp_micros unix_seconds unix_millis "
    "unix_micros unix_date date_from_unix_date current_timestamp localtimestamp current_date rlike"
)

# Functions of Spark alone: on DuckDB they are refused.
_MORE_OF_SPARK = (
    "shiftleft shiftright shiftrightunsigned bit_count getbit bin hex unhex conv crc32 hash "
    "xxhash64 base64 unbase64 encode decode url_encode "
    "url_decode parse_url try_url_decode try_parse_url luhn_check levenshtein soundex overlay "
    "substring_index format_number format_string "
    "find_in_set regexp_count regexp_substr "
    "regexp_instr regexp_extract_all get_json_object json_array_length json_object_keys sinh cosh "
    "tanh asinh acosh atanh cot sec csc expm1 log1p "
    "hypot rint nanvl zeroifnull nullifzero e factorial width_bucket next_day dayname monthname "
    "months_between convert_timezone "
    "try_add try_subtract try_multiply try_divide try_mod"
)

FUNCTIONS: dict[str, Spelling] = {
    **OPERATORS,
    **same_names(_SAME_NAME),
    **SPARK_NESTED,
    "add": _moved(exp.Add),
    "subtract": _moved(exp.Sub),
    "unix_timestamp": _unix_timestamp,
    **same_names(_MORE_OF_SPARK),
    "from_json": _from_json,
    **same_names("to_json schema_of_json"),
    "bitwise_and": infix(exp.BitwiseAnd),
    "bitwise_or": infix(exp.BitwiseOr),
    "bitwise_xor": infix(exp.BitwiseXor),
    "bitwise_not": lambda call, args: exp.Paren(this=exp.BitwiseNot(this=args[0])),
    "exact_second": lambda call, args: function("date_part", exp.Literal.string("SECOND"), *args),
    "div": lambda call, args: exp.Paren(this=exp.IntDiv(this=args[0], expression=args[1])),
    "proctime": lambda call, args: function("current_timestamp"),
    "is_true": is_truth(True),
    "is_false": is_truth(False),
    "like": like(exp.Like),
    "ilike": like(exp.ILike),
    "if": conditional,
    "single_value": single_value("raise_error", SEVERAL_ROWS),
    "unique_row": single_value("raise_error", CONFLICTING_ROWS),
    "nvl2": nvl2,
    "sign": named("sign"),
    "is_nan": named("isnan"),
    "trim": lambda call, args: function("trim" if len(args) == 1 else "btrim", *args),
    "ltrim": _trimmed("ltrim"),
    "rtrim": _trimmed("rtrim"),
    "starts_with": named("startswith"),
    "ends_with": named("endswith"),
    "date_trunc": _typed(named("date_trunc")),
    "to_timestamp": _typed(named("to_timestamp_ntz")),
    "to_timestamp_ltz": _to_timestamp_ltz,
    "make_timestamp": named("make_timestamp_ntz"),
    **{name: _wall_clock(name) for name in ("from_utc_timestamp", "to_utc_timestamp")},
    "timestampdiff": _timestampdiff,
    "timestampadd": _timestampadd,
}
