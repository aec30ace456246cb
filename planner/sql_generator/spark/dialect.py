"""A bounded plan as Spark SQL text."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal as PyDecimal
from functools import cache

from sqlglot import exp

from penstock.catalog.types import (
    INT,
    STRING,
    Array,
    DataType,
    DayTimeInterval,
    Decimal,
    Foreign,
    Map,
    Null,
    Row,
    Time,
    TimestampLtz,
    Variant,
    YearMonthInterval,
    holds,
    to_spark,
)
from penstock.planner.expressions.nodes import AggregateCall, Call, Expression, Literal
from penstock.planner.expressions.python_calls import PythonAggregateCall
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.sql_generator.dialect import (
    Filtered,
    Flavour,
    binary,
    cast,
    function,
    integer,
    python_name,
    text,
)
from penstock.planner.sql_generator.query import BoundedQuery, bounded_query
from penstock.planner.sql_generator.spark.aggregates import AGGREGATES, rows_of_group, takes_rows
from penstock.planner.sql_generator.spark.functions import FUNCTIONS
from penstock.planner.sql_generator.spark.intervals import interval_us, us_interval

_EPOCH = "1970-01-01 00:00:00"
_MONTHS = Foreign("INTERVAL MONTH")
"""The interval type that Spark casts to INT and back."""


@cache
def _parsed(kind: str) -> exp.DataType:
    """A type, parsed once: sqlglot takes longer for that than for a copy."""
    return exp.DataType.build(kind, dialect="spark")


def spark_sql(plan: LogicalPlan) -> BoundedQuery:
    """Return the Spark SQL of a bounded plan. Raise BND-5101 for an expression without a spelling."""
    return bounded_query(plan, SparkFlavour())


class SparkFlavour(Flavour):
    """Spark SQL in ANSI mode. penstock has its semantics, so most functions have the same name."""

    name = "spark"
    dialect = "spark"
    # UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE
    recursive_union = False
    raising = "raise_error"
    narrows_windows = False
    full_frames = False
    nests_selects = True
    functions = FUNCTIONS
    aggregates = AGGREGATES

    def kind(self, kind: DataType) -> exp.DataType:
        if holds(kind, Variant):
            raise self.refusal(str(kind))
        # sqlglot would write ARRAY<TIME> as ARRAY<TIMESTAMP>
        if isinstance(kind, Null | Time | Array | Map | Row | Foreign):
            return _as_written(to_spark(kind))
        return _parsed(to_spark(kind)).copy()

    def literal(self, literal: Literal) -> exp.Expr:
        value, kind = literal.value, literal.type
        # A NULL of the type of its expression.
        if value is None:
            return exp.null() if isinstance(kind, Null) else cast(exp.null(), self.kind(kind))
        match value:
            case bool():
                return exp.true() if value else exp.false()
            case str():
                return text(value)
            case bytes():
                return exp.HexString(this=value.hex().upper())
            # INTERVAL '1 02:03:04.000005' DAY TO SECOND
            case timedelta():
                return _day_time_literal(value)
            # INTERVAL '1-2' YEAR TO MONTH, as a CAST of its text.
            case int() if isinstance(kind, YearMonthInterval):
                return cast(text(_year_month_text(value)), self.kind(kind))
            case datetime() | date() | time() | PyDecimal():
                return cast(text(literal_text(value)), self.kind(kind))
            # By way of text, as 1.5 would be a DECIMAL in Spark.
            case float() if not isinstance(kind, Decimal):
                return cast(text(literal_text(value)), self.kind(kind))
            # Integers of other widths need their CAST.
            case int() if str(kind) == "INT":
                return integer(value)
        return cast(text(literal_text(value)), self.kind(kind))

    def spell(self, call: Call, args: list[exp.Expr]) -> exp.Expr:
        """get_json_object by anything but names is refused: of an element that is null Spark makes the text
        'null', where a field that is null is NULL.
        """
        if call.function == "get_json_object" and not _has_names_only(call.args[1]):
            raise self.refusal("get_json_object of an element", call.span)
        return super().spell(call, args)

    def spell_aggregate(self, call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
        """A Python aggregate is an Arrow function of the sorted array of a group's rows; the others are
        spelled as in any dialect.
        """
        if not isinstance(call, PythonAggregateCall):
            return super().spell_aggregate(call, args, filtered)
        if not takes_rows(call):
            raise self.refusal(f"aggregate {call.function} of values without an order", call.span)
        name = python_name(call.body)
        self.python_functions[name] = call.body
        return function(name, rows_of_group(call, args, filtered))

    def cast(self, arg: exp.Expr, source: DataType, target: DataType, safe: bool) -> exp.Expr:
        return cast(arg, self.kind(target), safe)

    def epoch_us(self, time: exp.Expr, kind: DataType) -> exp.Expr:
        if isinstance(kind, TimestampLtz):
            # an instant is microseconds since 1970 already
            return function("unix_micros", time)
        # a TIMESTAMP without zone: its distance from 1970, so that the session's zone plays no part
        since = binary(exp.Sub, time, cast(text(_EPOCH), self.kind(kind)))
        return interval_us(since)

    def from_epoch_us(self, micros: exp.Expr, kind: DataType) -> exp.Expr:
        if isinstance(kind, TimestampLtz):
            return function("timestamp_micros", micros)
        # 1970 plus an interval, without a time zone.
        return binary(exp.Add, cast(text(_EPOCH), self.kind(kind)), us_interval(micros))

    def explode_series(self, first: exp.Expr, last: exp.Expr, step: int) -> exp.Expr:
        return function(
            "explode", function("sequence", first, last, cast(integer(step), exp.DataType.build("BIGINT")))
        )

    def explode_array(self, array: exp.Expr, outer: bool) -> list[exp.Expr]:
        names = [exp.to_identifier("p"), exp.to_identifier("v")]
        return [
            exp.Aliases(
                this=function("posexplode_outer" if outer else "posexplode", array), expressions=names
            )
        ]

    def wire(self, column: exp.Expr, kind: DataType) -> exp.Expr:
        match kind:
            # Arrow from Spark has no TIME: it travels as text.
            case Time():
                return cast(column, self.kind(STRING))
        # by way of INTERVAL MONTH, which Spark casts to INT
        if has_months(kind):
            return cast(cast(column, _with_months(kind, _MONTHS)), _with_months(kind, INT))
        return cast(column, self.kind(kind))

    def from_wire(self, column: exp.Expr, kind: DataType) -> exp.Expr:
        match kind:
            case Time():
                return cast(column, self.kind(kind))
            case DayTimeInterval():
                return us_interval(column)
        return (
            cast(cast(column, _with_months(kind, _MONTHS)), self.kind(kind)) if has_months(kind) else column
        )


def has_months(kind: DataType) -> bool:
    """Return whether a type is an interval of months or contains one. Spark cannot return those as Arrow, so
    the wire type has counts of months.
    """
    match kind:
        case Array(element):
            return has_months(element)
        case Map(key, value):
            return has_months(key) or has_months(value)
        case Row(fields):
            return any(has_months(field) for _, field in fields)
    return isinstance(kind, YearMonthInterval)


def _with_months(kind: DataType, months: DataType) -> exp.DataType:
    """Return a type with its intervals of months replaced by another type."""

    def replaced(kind: DataType) -> DataType:
        match kind:
            case YearMonthInterval():
                return months
            case Array(element):
                return Array(replaced(element))
            case Map(key, value):
                return Map(replaced(key), replaced(value))
            case Row(fields):
                return Row(tuple((name, replaced(field)) for name, field in fields))
        return kind

    return _as_written(to_spark(replaced(kind)))


def _has_names_only(path: Expression) -> bool:
    return isinstance(path, Literal) and "[" not in str(path.value)


def _as_written(name: str) -> exp.DataType:
    """A type whose name sqlglot passes through unparsed."""
    return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=name)


def literal_text(value: object) -> str:
    """Return a constant as text that a CAST reads back exactly."""
    match value:
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        # The shortest text that reads back as the same double.
        case float():
            return repr(value)
        case datetime():
            return value.isoformat(" ")
    return str(value)


def _day_time_literal(value: timedelta) -> exp.Expr:
    micros = value // timedelta(microseconds=1)
    # One sign in front of all parts.
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    days, rest = divmod(micros, 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    written = f"{sign}{days} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
    span = exp.IntervalSpan(this=exp.var("DAY"), expression=exp.var("SECOND"))
    return exp.Interval(this=text(written), unit=span)


def _year_month_text(months: int) -> str:
    sign, months = ("-", -months) if months < 0 else ("", months)
    return f"{sign}{months // 12}-{months % 12}"
