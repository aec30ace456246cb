"""DuckDB's spellings of date and time functions, with Spark's values."""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.catalog.functions.datetime import canonical_unit
from penstock.catalog.types import (
    BIGINT,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Date,
    Timestamp,
    TimestampLtz,
    to_spark,
)
from penstock.planner.expressions.nodes import Call
from penstock.planner.sql_generator.dialect import Spelling, binary, cast, function, integer, named, text
from penstock.planner.sql_generator.duckdb.casts import instant_of_text
from penstock.planner.sql_generator.duckdb.strings import constant, refuse
from penstock.planner.sql_generator.spark.functions import FIXED_UNITS_US, unit_of

# Spark's letters and DuckDB's directives; %-d is a number without leading zeros.
_WRITTEN = (
    "y=%Y yyyy=%Y yy=%y M=%-m MM=%m MMM=%b MMMM=%B d=%-d dd=%d H=%-H HH=%H h=%-I hh=%I m=%-M mm=%M "
    "s=%-S ss=%S SSS=%g SSSSSS=%f"
    " a=%p E=%a EE=%a EEE=%a EEEE=%A D=%-j DDD=%j"
)
_DIRECTIVES = dict(pair.split("=") for pair in _WRITTEN.split())
# Quoted text, a run of one letter, or other characters.
_PATTERN_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def strftime_pattern(call: Call, pattern: object) -> str:
    """Return a Spark datetime pattern as DuckDB's. Raise BND-5101 for a letter without a directive."""
    if not isinstance(pattern, str):
        raise refuse(call, "with a pattern that is no constant")
    written = []
    for piece in _PATTERN_PIECE.finditer(pattern):
        # A run of a letter: yyyy, MM.
        if piece[2]:
            if piece[0] not in _DIRECTIVES:
                raise refuse(call, f"with '{piece[0]}' in its pattern")
            written.append(_DIRECTIVES[piece[0]])
        else:
            # 'T' is T, '' is a quote; % is written twice for DuckDB.
            quoted = (piece[1] or "'").replace("''", "'") if piece[0].startswith("'") else piece[0]
            written.append(quoted.replace("%", "%%"))
    return "".join(written)


def _strptime_pattern(call: Call, pattern: object) -> str:
    """Return a pattern for parsing. DuckDB defaults a missing year to 1900 and does not check that the parts
    of a text agree, so such patterns raise BND-5101.
    """
    written = strftime_pattern(call, pattern)
    letters = {piece[2] for piece in _PATTERN_PIECE.finditer(str(pattern)) if piece[2]}
    # hh needs AM or PM and AM or PM needs hh; HH and hh together may disagree.
    if "y" not in letters or "D" in letters or ("a" in letters) != ("h" in letters) or {"H", "h"} <= letters:
        raise refuse(
            call, "with a pattern without a year, with a day of the year, or with other hours than HH or hh a"
        )
    return written


def _kind(kind: object) -> exp.DataType:
    return exp.DataType.build(to_spark(kind), dialect="spark")  # type: ignore[arg-type]


def _typed(spelling: Spelling) -> Spelling:
    return lambda call, args: cast(spelling(call, args), _kind(call.type))


def _part(name: str, shift: int = 0) -> Spelling:
    """A part of a time as INT."""
    return lambda call, args: cast(
        binary(exp.Add, function("datepart", text(name), args[0]), integer(shift)), _kind(call.type)
    )


def _instant(micros: exp.Expr) -> exp.Expr:
    epoch = cast(text("1970-01-01 00:00:00+00"), _kind(TIMESTAMP_LTZ))
    return binary(exp.Add, epoch, function("to_microseconds", micros))


def _scaled(width_us: int) -> Spelling:
    """A number of units since 1970 as TIMESTAMP_LTZ."""

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        # Fractions of a second: cut to microseconds.
        if call.args[0].type != BIGINT:
            return _instant(
                cast(function("trunc", binary(exp.Mul, args[0], integer(width_us))), _kind(BIGINT))
            )
        return _instant(binary(exp.Mul, args[0], integer(width_us)))

    return spelling


def _floored(time: exp.Expr, width_us: int) -> exp.Expr:
    """Whole units since 1970 as BIGINT, rounded down."""
    micros = function("epoch_us", time)
    # % keeps the sign of the dividend: the width is added so that times before 1970 round down.
    remainder = binary(
        exp.Mod,
        binary(exp.Add, binary(exp.Mod, micros, integer(width_us)), integer(width_us)),
        integer(width_us),
    )
    return binary(exp.IntDiv, binary(exp.Sub, micros.copy(), remainder), integer(width_us))


def _counted(width_us: int) -> Spelling:
    return lambda call, args: _floored(args[0], width_us)


def _timestampdiff(call: Call, args: list[exp.Expr]) -> exp.Expr:
    unit, (first, second) = unit_of(call), args[1:]
    width = FIXED_UNITS_US.get(unit)
    # The wall clock of the session's zone, as Spark counts: a day has 24 hours also when it is changed.
    if not isinstance(call.args[1].type, Timestamp):
        first, second = (cast(time, _kind(TIMESTAMP)) for time in (first, second))
    # months, quarters and years by the calendar
    if width is None:
        return binary(exp.IntDiv, function("penstock_months", first, second), integer(_MONTHS[unit]))
    return binary(
        exp.IntDiv, binary(exp.Sub, function("epoch_us", second), function("epoch_us", first)), integer(width)
    )


def _timestampadd(call: Call, args: list[exp.Expr]) -> exp.Expr:
    unit, (count, time) = unit_of(call), args[1:]
    # months by the calendar
    if unit in _MONTHS:
        by = function(
            "to_months", cast(binary(exp.Mul, count, integer(_MONTHS[unit])), exp.DataType.build("INT"))
        )
    # days by the calendar, not 24 hours each
    elif unit in ("day", "week"):
        by = function(
            "to_days",
            cast(binary(exp.Mul, count, integer(7 if unit == "week" else 1)), exp.DataType.build("INT")),
        )
    else:
        by = function("to_microseconds", binary(exp.Mul, count, integer(FIXED_UNITS_US[unit])))
    return binary(exp.Add, time, by)


def _date_trunc(call: Call, args: list[exp.Expr]) -> exp.Expr:
    unit = canonical_unit(str(constant(call, 0)))
    floored = function("date_trunc", text(unit), args[1])
    width = FIXED_UNITS_US.get(unit, FIXED_UNITS_US["day"])
    # What has passed of an hour, a minute or a second goes from the instant: in an hour that comes twice,
    # DuckDB would begin the second one.
    if isinstance(call.type, TimestampLtz) and width < FIXED_UNITS_US["day"]:
        local = function("epoch_us", cast(args[1].copy(), _kind(TIMESTAMP)))
        passed = binary(exp.Mod, local, integer(width))
        return binary(exp.Sub, args[1], function("to_microseconds", passed))
    return cast(floored, _kind(call.type))


def _date_format(call: Call, args: list[exp.Expr]) -> exp.Expr:
    time = cast(args[0], _kind(TIMESTAMP)) if not isinstance(call.args[0].type, Timestamp) else args[0]
    pattern = strftime_pattern(call, constant(call, 1))
    # DuckDB takes no empty format
    if not pattern:
        return function("left", cast(time, exp.DataType.build("TEXT")), integer(0))
    return function("strftime", time, text(pattern))


def _read(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """Parse text by a pattern as TIMESTAMP; without a pattern, like a CAST."""
    if len(args) == 1:
        instants = isinstance(call.type, TimestampLtz)
        kind = _kind(call.type)
        return instant_of_text(args[0], kind, safe=False) if instants else cast(args[0], kind)
    read = function("strptime", args[0], text(_strptime_pattern(call, constant(call, 1))))
    # no pattern has a zone
    if isinstance(call.type, TimestampLtz):
        return function("penstock_instant", read)
    return cast(read, _kind(call.type))


def _to_timestamp_ltz(call: Call, args: list[exp.Expr]) -> exp.Expr:
    if call.args[0].type == BIGINT:
        return _instant(binary(exp.Mul, args[0], integer(1_000_000 if constant(call, 1) == 0 else 1_000)))
    return _read(call, args)


def _unix_timestamp(call: Call, args: list[exp.Expr]) -> exp.Expr:
    time = args[0]
    if len(args) > 1:
        time = function("strptime", time, text(_strptime_pattern(call, constant(call, 1))))
    # A time without a zone is one of the session's zone.
    if not isinstance(call.args[0].type, TimestampLtz):
        time = function("penstock_instant", time)
    return binary(exp.IntDiv, function("epoch_us", time), integer(1_000_000))


def _from_unixtime(call: Call, args: list[exp.Expr]) -> exp.Expr:
    # from_unixtime(n) without a pattern is yyyy-MM-dd HH:mm:ss.
    pattern = strftime_pattern(call, constant(call, 1)) if len(args) > 1 else "%Y-%m-%d %H:%M:%S"
    local = cast(_instant(binary(exp.Mul, args[0], integer(1_000_000))), _kind(TIMESTAMP))
    return function("strftime", local, text(pattern))


def _make_timestamp(call: Call, args: list[exp.Expr]) -> exp.Expr:
    """Second 60 is the next minute in Spark, so the seconds are added as an interval."""
    minute = function("make_timestamp", *(cast(arg, _kind(BIGINT)) for arg in args[:5]), integer(0))
    micros = cast(binary(exp.Mul, args[5], integer(1_000_000)), _kind(BIGINT))
    return binary(exp.Add, minute, function("to_microseconds", micros))


def _months_moved(call: Call, args: list[exp.Expr]) -> exp.Expr:
    return binary(exp.Add, args[0], function("to_months", args[1]))


_EPOCH_DAY = "1970-01-01"
_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second", "dayofyear")

TIME_FUNCTIONS: dict[str, Spelling] = {
    **{name: _part(name) for name in _PARTS},
    "weekofyear": _part("week"),
    # Sunday is 1 in Spark, 0 in DuckDB.
    "dayofweek": _part("dow", 1),
    # Monday is 0 in Spark, 1 in DuckDB.
    "weekday": _part("isodow", -1),
    "date_trunc": _date_trunc,
    "trunc": _typed(
        lambda call, args: function("date_trunc", text(canonical_unit(str(constant(call, 1)))), args[0])
    ),
    "date_format": _date_format,
    "to_timestamp": _read,
    "to_date": _read,
    "to_timestamp_ltz": _to_timestamp_ltz,
    "make_timestamp": _make_timestamp,
    "make_date": lambda call, args: function("make_date", *(cast(arg, _kind(BIGINT)) for arg in args)),
    "timestampdiff": _timestampdiff,
    "timestampadd": _timestampadd,
    "datediff": _typed(lambda call, args: binary(exp.Sub, *args)),
    "date_add": _typed(lambda call, args: binary(exp.Add, *args)),
    "date_sub": _typed(lambda call, args: binary(exp.Sub, *args)),
    "add_months": _typed(_months_moved),
    "last_day": named("last_day"),
    "unix_timestamp": _unix_timestamp,
    "from_unixtime": _from_unixtime,
    "timestamp_seconds": _scaled(1_000_000),
    "timestamp_millis": _scaled(1_000),
    "timestamp_micros": _scaled(1),
    "unix_seconds": _counted(1_000_000),
    "unix_millis": _counted(1_000),
    "unix_micros": _counted(1),
    "unix_date": lambda call, args: cast(
        binary(exp.Sub, args[0], cast(text(_EPOCH_DAY), _kind(Date()))), _kind(call.type)
    ),
    "date_from_unix_date": lambda call, args: binary(exp.Add, cast(text(_EPOCH_DAY), _kind(Date())), args[0]),
    "current_timestamp": lambda call, args: function("now"),
    "proctime": lambda call, args: function("now"),
    "localtimestamp": lambda call, args: cast(function("now"), _kind(TIMESTAMP)),
    "current_date": lambda call, args: cast(cast(function("now"), _kind(TIMESTAMP)), _kind(Date())),
}
