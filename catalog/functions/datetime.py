"""Functions of dates and times, declared."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.functions.type_rules import (
    Function,
    Mismatch,
    Operand,
    Typing,
    fixed,
    moment,
    of_moment,
    wanted,
)
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    DataType,
    Date,
    Decimal,
    String,
    TimestampLtz,
    is_integer,
    is_numeric,
    is_timestamp,
)

TRUNCATION_UNITS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
)
DIFFERENCE_UNITS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
)
# 59.999999: two digits of seconds, six of microseconds.
_SECONDS = Decimal(8, 6)


# Constant, so that a wrong unit is an error of the statement and not of a row.
def _unit(operand: Operand, units: tuple[str, ...]) -> None:
    if not operand.constant or not isinstance(operand.value, str):
        raise Mismatch("the unit must be a constant text", f"units are {', '.join(units)}")
    if canonical_unit(operand.value) not in units:
        raise Mismatch(
            f"{operand.value!r} is no unit",
            did_you_mean(operand.value, units) or f"units are {', '.join(units)}",
        )


# The short forms of Spark's trunc and date_trunc.
_UNIT_ALIASES = {"yyyy": "year", "yy": "year", "mon": "month", "mm": "month", "dd": "day"}


def canonical_unit(text: str) -> str:
    """Return the name of a unit of time: lower case, singular, ``MM`` as ``month``, ``DD`` as ``day``,
    ``YYYY`` as ``year``.
    """
    # SQL_TSI_DAY is the ODBC spelling, which Flink's TIMESTAMPDIFF accepts; days and DD are Spark's.
    word = text.strip().lower().removeprefix("sql_tsi_")
    word = _UNIT_ALIASES.get(word, word)
    singular = word.removesuffix("s")
    return singular if singular in DIFFERENCE_UNITS else word


def _truncated(operands: Sequence[Operand]) -> Typing:
    _unit(operands[0], TRUNCATION_UNITS)
    kind = moment(operands[1:])
    return (STRING, kind), kind


def _truncated_date(operands: Sequence[Operand]) -> Typing:
    # Only units of more than a day: year, quarter, month, week.
    _unit(operands[1], TRUNCATION_UNITS[:4])
    return (wanted(operands[0], DATE, 1), STRING), DATE


def _difference(operands: Sequence[Operand]) -> Typing:
    _unit(operands[0], DIFFERENCE_UNITS)
    first, second = moment(operands[1:]), moment(operands[2:])
    # An instant beside a wall clock makes both instants: the clock is that of the session's zone.
    kind = first if first == second else TIMESTAMP_LTZ if TIMESTAMP_LTZ in (first, second) else TIMESTAMP
    return (STRING, kind, kind), BIGINT


def _moved(operands: Sequence[Operand]) -> Typing:
    _unit(operands[0], DIFFERENCE_UNITS)
    kind = moment(operands[2:])
    return (STRING, wanted(operands[1], BIGINT, 2), kind), kind


def _days_moved(operands: Sequence[Operand]) -> Typing:
    return (wanted(operands[0], DATE, 1), wanted(operands[1], INT, 2)), DATE


def _formatted(operands: Sequence[Operand]) -> Typing:
    return (moment(operands), wanted(operands[1], STRING, 2)), STRING


def _read_timestamp(operands: Sequence[Operand]) -> Typing:
    """A string (with a pattern), or a date or timestamp as it is."""
    # to_timestamp(ts) is ts as a TIMESTAMP: Spark allows it, too.
    if len(operands) == 1 and (is_timestamp(operands[0].type) or isinstance(operands[0].type, Date)):
        return (TIMESTAMP,), TIMESTAMP
    return tuple(wanted(o, STRING, i) for i, o in enumerate(operands, 1)), TIMESTAMP


def _read_date(operands: Sequence[Operand]) -> Typing:
    if len(operands) == 1:
        return (wanted(operands[0], DATE, 1),), DATE
    return tuple(wanted(o, STRING, i) for i, o in enumerate(operands, 1)), DATE


def _read_instant(operands: Sequence[Operand]) -> Typing:
    """Flink's ``TO_TIMESTAMP_LTZ(number, precision)``: seconds (0) or milliseconds (3)."""
    # TO_TIMESTAMP_LTZ('2024-01-01 00:00:00'), or a moment as it is.
    if len(operands) == 1 and not is_numeric(operands[0].type):
        return (
            STRING if isinstance(operands[0].type, String) else wanted(operands[0], TIMESTAMP_LTZ, 1),
        ), TIMESTAMP_LTZ
    # TO_TIMESTAMP_LTZ(text, pattern)
    if len(operands) == 2 and not is_integer(operands[0].type):
        return (wanted(operands[0], STRING, 1), wanted(operands[1], STRING, 2)), TIMESTAMP_LTZ
    # TO_TIMESTAMP_LTZ(number, precision); without one the number is in milliseconds, as in Flink.
    if len(operands) == 2 and operands[1].value not in (0, 3):
        raise Mismatch("the precision must be the constant 0 (seconds) or 3 (milliseconds)")
    return (BIGINT, *(INT for _ in operands[1:])), TIMESTAMP_LTZ


def _unix_time(operands: Sequence[Operand]) -> Typing:
    # unix_timestamp(text, pattern)
    if len(operands) == 2:
        return (wanted(operands[0], STRING, 1), wanted(operands[1], STRING, 2)), BIGINT
    return (moment(operands),), BIGINT


def _of_seconds(operands: Sequence[Operand]) -> Typing:
    # A fraction of a second is read from a DOUBLE; whole seconds stay exact.
    return (BIGINT if is_integer(operands[0].type) else wanted(operands[0], DOUBLE, 1),), TIMESTAMP_LTZ


def _of_day(operands: Sequence[Operand]) -> Typing:
    # A DATE is not cast to a TIMESTAMP first: its parts are the same.
    return (DATE if operands[0].type == DATE else moment(operands),), INT


def _day_part(name: str, text: str, *aliases: str) -> Function:
    return Function(name, f"{name}(t)", text, _of_day, (1, 1), aliases)


def _part(name: str, text: str, *aliases: str) -> Function:
    return Function(name, f"{name}(t)", text, of_moment(INT), (1, 1), aliases)


def _now(name: str, text: str, kind: DataType, *aliases: str) -> Function:
    typing = fixed(STRING, result=kind)
    # Not deterministic: the optimizer neither folds nor moves such a call.
    return Function(name, f"{name}()", text, typing, (0, 0), aliases, nullable=False, deterministic=False)


_MAKE_TIMESTAMP = fixed(INT, INT, INT, INT, INT, _SECONDS, result=TIMESTAMP)
_INSTANT = fixed(BIGINT, result=TIMESTAMP_LTZ)
_COUNTED = fixed(TIMESTAMP_LTZ, result=BIGINT)

TIMES: tuple[Function, ...] = (
    _day_part("year", "The year."),
    _day_part("quarter", "The quarter, 1 to 4."),
    _day_part("month", "The month, 1 to 12."),
    _day_part("day", "The day of the month.", "dayofmonth"),
    _part("hour", "The hour, 0 to 23."),
    _part("minute", "The minute."),
    _part("second", "The second, without its fraction."),
    # Spark's two numberings: dayofweek from Sunday = 1, weekday from Monday = 0.
    _day_part("dayofweek", "The day of the week: 1 is Sunday, 7 Saturday."),
    _day_part("weekday", "The day of the week: 0 is Monday, 6 Sunday."),
    _day_part("dayofyear", "The day of the year, from 1."),
    # By ISO the first days of January may be in week 52 or 53 of the year before.
    _day_part("weekofyear", "The ISO week, 1 to 53.", "week"),
    # date_trunc(unit, t) returns a timestamp; trunc(d, unit) has the arguments swapped and returns a DATE.
    Function(
        "date_trunc",
        "date_trunc(unit, t)",
        "The beginning of the year, month, week, day, hour .. of t.",
        _truncated,
        (2, 2),
    ),
    Function(
        "trunc",
        "trunc(d, unit)",
        "The first day of the year, quarter, month or week of d.",
        _truncated_date,
        (2, 2),
    ),
    Function(
        "date_format",
        "date_format(t, pattern)",
        "t as text by a pattern such as 'yyyy-MM-dd HH:mm:ss'.",
        _formatted,
        (2, 2),
        fallible=True,
    ),
    Function(
        "to_timestamp",
        "to_timestamp(s[, pattern])",
        "Text as TIMESTAMP, in ISO form or by a pattern such as 'yyyy-MM-dd HH:mm:ss'.",
        _read_timestamp,
        (1, 2),
        ("to_timestamp_ntz",),
        fallible=True,
    ),
    Function(
        "to_timestamp_ltz",
        "to_timestamp_ltz(n, 0 | 3) or to_timestamp_ltz(s[, pattern])",
        "Seconds or milliseconds since 1970, or text in the session zone, as TIMESTAMP_LTZ.",
        _read_instant,
        (1, 2),
        fallible=True,
    ),
    Function(
        "to_date",
        "to_date(s[, pattern])",
        "Text as DATE, in ISO form or by a pattern.",
        _read_date,
        (1, 2),
        fallible=True,
    ),
    Function(
        "make_timestamp",
        "make_timestamp(y, mo, d, h, mi, s)",
        "The TIMESTAMP of these parts; seconds may have a fraction, 60 is the next minute.",
        _MAKE_TIMESTAMP,
        (6, 6),
        ("make_timestamp_ntz",),
        fallible=True,
    ),
    Function(
        "make_date",
        "make_date(y, m, d)",
        "The DATE of these parts.",
        fixed(INT, result=DATE),
        (3, 3),
        fallible=True,
    ),
    Function(
        "timestampdiff",
        "timestampdiff(unit, a, b)",
        "Whole units from a to b.",
        _difference,
        (3, 3),
        ("date_diff",),
    ),
    Function(
        "timestampadd", "timestampadd(unit, n, t)", "t moved by n units.", _moved, (3, 3), fallible=True
    ),
    Function("datediff", "datediff(end, start)", "Days from start to end.", fixed(DATE, result=INT), (2, 2)),
    Function(
        "date_add", "date_add(d, n)", "d moved n days on.", _days_moved, (2, 2), ("dateadd",), fallible=True
    ),
    Function("date_sub", "date_sub(d, n)", "d moved n days back.", _days_moved, (2, 2), fallible=True),
    Function(
        "add_months",
        "add_months(d, n)",
        "d moved n months forward; a day that the month does not have is its last day.",
        _days_moved,
        (2, 2),
        fallible=True,
    ),
    Function("last_day", "last_day(d)", "The last day of the month.", fixed(DATE, result=DATE), (1, 1)),
    Function(
        "unix_timestamp",
        "unix_timestamp(t) or unix_timestamp(s, pattern)",
        "Seconds since 1970; a TIMESTAMP is read in the session zone.",
        _unix_time,
        (1, 2),
        ("to_unix_timestamp",),
        fallible=True,
    ),
    Function(
        "from_unixtime",
        "from_unixtime(seconds[, pattern])",
        "Seconds since 1970 as text in the session zone.",
        fixed(BIGINT, STRING, result=STRING),
        (1, 2),
        fallible=True,
    ),
    Function(
        "timestamp_seconds",
        "timestamp_seconds(n)",
        "Seconds since 1970 as TIMESTAMP_LTZ.",
        _of_seconds,
        (1, 1),
        fallible=True,
    ),
    Function(
        "timestamp_millis",
        "timestamp_millis(n)",
        "Milliseconds since 1970 as TIMESTAMP_LTZ.",
        _INSTANT,
        (1, 1),
        fallible=True,
    ),
    # Not fallible: a BIGINT of microseconds is the instant itself. Seconds and milliseconds may overflow.
    Function(
        "timestamp_micros",
        "timestamp_micros(n)",
        "Microseconds since 1970 as TIMESTAMP_LTZ.",
        _INSTANT,
        (1, 1),
    ),
    # Rounded down, also before 1970.
    Function("unix_seconds", "unix_seconds(t)", "Whole seconds since 1970.", _COUNTED, (1, 1)),
    Function("unix_millis", "unix_millis(t)", "Whole milliseconds since 1970.", _COUNTED, (1, 1)),
    Function("unix_micros", "unix_micros(t)", "Microseconds since 1970.", _COUNTED, (1, 1)),
    Function("unix_date", "unix_date(d)", "Days since 1970-01-01.", fixed(DATE, result=INT), (1, 1)),
    Function(
        "date_from_unix_date",
        "date_from_unix_date(n)",
        "The DATE n days after 1970-01-01.",
        fixed(INT, result=DATE),
        (1, 1),
    ),
    # The clock is read by the engine, not here: the catalog only declares the types.
    _now("current_timestamp", "The time now, TIMESTAMP_LTZ.", TIMESTAMP_LTZ, "now"),
    _now(
        "proctime",
        "The time a row is processed, TIMESTAMP_LTZ(3); alone in a column a time attribute.",
        TimestampLtz(3),
    ),
    _now("localtimestamp", "The time now in the session zone, TIMESTAMP.", TIMESTAMP),
    _now("current_date", "The date now in the session zone.", DATE, "curdate"),
)
