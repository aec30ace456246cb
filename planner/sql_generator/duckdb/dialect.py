"""A bounded plan as DuckDB SQL text, rewritten wherever DuckDB's semantics differ from Spark's."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal as PyDecimal
from types import MappingProxyType

from sqlglot import exp

from penstock.catalog.types import (
    INT,
    Array,
    DataType,
    DayTimeInterval,
    Decimal,
    Map,
    Null,
    Row,
    TimestampLtz,
    Variant,
    YearMonthInterval,
    holds,
    to_spark,
)
from penstock.planner.expressions.nodes import AggregateCall, Call, Literal
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.sql_generator.dialect import (
    Filtered,
    Flavour,
    Spelling,
    binary,
    cast,
    function,
    integer,
    text,
    when,
)
from penstock.planner.sql_generator.duckdb.aggregates import AGGREGATES
from penstock.planner.sql_generator.duckdb.casts import cast_like_spark
from penstock.planner.sql_generator.duckdb.datetime import TIME_FUNCTIONS
from penstock.planner.sql_generator.duckdb.nested import DUCKDB_NESTED, sort_value
from penstock.planner.sql_generator.duckdb.numeric import NUMBERS
from penstock.planner.sql_generator.duckdb.strings import STRING_FUNCTIONS
from penstock.planner.sql_generator.query import BoundedQuery, bounded_query
from penstock.planner.sql_generator.spark.dialect import literal_text


def duckdb_sql(plan: LogicalPlan) -> BoundedQuery:
    """Return the DuckDB SQL of a bounded plan. Raise BND-5101 for an expression that DuckDB cannot compute
    with Spark's semantics.
    """
    return bounded_query(plan, DuckDbFlavour())


_ORDERED = frozenset({"less", "less_equal", "greater", "greater_equal", "greatest", "least"})


class DuckDbFlavour(Flavour):
    """DuckDB. Division by zero, rounding casts, calendar arithmetic and some texts are spelled out for
    Spark's semantics.
    """

    name = "duckdb"
    dialect = "duckdb"
    functions: Mapping[str, Spelling] = MappingProxyType(
        {**NUMBERS, **STRING_FUNCTIONS, **TIME_FUNCTIONS, **DUCKDB_NESTED}
    )
    aggregates = AGGREGATES
    raising = "error"
    asof_join = True
    join_words = MappingProxyType(
        {**Flavour.join_words, JoinKind.SEMI: ("", "SEMI"), JoinKind.ANTI: ("", "ANTI")}
    )

    def kind(self, kind: DataType) -> exp.DataType:
        # an untyped NULL is an INT
        if isinstance(kind, Null):
            return self.kind(INT)
        if isinstance(kind, DayTimeInterval | YearMonthInterval):
            return exp.DataType.build("INTERVAL")
        if holds(kind, Variant):
            raise self.refusal(str(kind))
        return exp.DataType.build(to_spark(kind), dialect="spark")

    def literal(self, literal: Literal) -> exp.Expr:
        value, kind = literal.value, literal.type
        if value is None:
            return exp.null() if isinstance(kind, Null) else cast(exp.null(), self.kind(kind))
        match value:
            case bool():
                return exp.true() if value else exp.false()
            case str():
                return text(value)
            case bytes():
                # X'..' as text of hex digits
                return function("unhex", text(value.hex()))
            case timedelta():
                return function("to_microseconds", integer(value // timedelta(microseconds=1)))
            case int() if isinstance(kind, YearMonthInterval):
                return function("to_months", integer(value))
            case datetime() | date() | time() | PyDecimal():
                return cast(text(literal_text(value)), self.kind(kind))
            case float() if not isinstance(kind, Decimal):
                return cast(text(literal_text(value)), self.kind(kind))
            case int() if kind == INT:
                return integer(value)
        return cast(text(literal_text(value)), self.kind(kind))

    def cast(self, arg: exp.Expr, source: DataType, target: DataType, safe: bool) -> exp.Expr:
        return cast_like_spark(self, arg, source, target, safe)

    def sort_value(self, arg: exp.Expr, kind: DataType) -> exp.Expr:
        return sort_value(arg, kind)

    def spell(self, call: Call, args: list[exp.Expr]) -> exp.Expr:
        """Comparisons of arrays and rows are refused where DuckDB orders an inner NULL last."""
        if call.function in _ORDERED and any(isinstance(arg.type, Array | Row) for arg in call.args):
            raise self.refusal(f"{call.function} of {call.args[0].type}", call.span)
        return super().spell(call, args)

    def spell_aggregate(self, call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
        """The same order of inner NULLs decides all aggregates but COUNT."""
        if call.function != "count" and any(isinstance(arg.type, Array | Map | Row) for arg in call.args):
            raise self.refusal(f"{call.function} of {call.args[0].type}", call.span)
        return super().spell_aggregate(call, args, filtered)

    def epoch_us(self, time: exp.Expr, kind: DataType) -> exp.Expr:
        return function("epoch_us", time)

    def from_epoch_us(self, micros: exp.Expr, kind: DataType) -> exp.Expr:
        if isinstance(kind, TimestampLtz):
            epoch = cast(text("1970-01-01 00:00:00+00"), self.kind(kind))
            return binary(exp.Add, epoch, function("to_microseconds", micros))
        return function("make_timestamp", micros)

    def explode_series(self, first: exp.Expr, last: exp.Expr, step: int) -> exp.Expr:
        return function("unnest", function("generate_series", first, last, integer(step)))

    def explode_array(self, array: exp.Expr, outer: bool) -> list[exp.Expr]:
        places = function(
            "generate_series", integer(0), binary(exp.Sub, function("len", array.copy()), integer(1))
        )
        # an empty or NULL array becomes a list of one NULL
        if outer:
            filled = exp.GT(this=function("len", array.copy()), expression=integer(0))
            array, places = (
                when(filled.copy(), values, function("list_value", exp.null())) for values in (array, places)
            )
        return [exp.alias_(function("unnest", places), "p"), exp.alias_(function("unnest", array), "v")]

    def wire(self, column: exp.Expr, kind: DataType) -> exp.Expr:
        match kind:
            case DayTimeInterval():
                return function("epoch_us", column)
            case YearMonthInterval():
                years = binary(exp.Mul, function("datepart", text("year"), column), integer(12))
                return cast(
                    binary(exp.Add, years, function("datepart", text("month"), column.copy())), self.kind(INT)
                )
        return cast(column, self.kind(kind))

    def from_wire(self, column: exp.Expr, kind: DataType) -> exp.Expr:
        return function("to_months", column) if isinstance(kind, YearMonthInterval) else column
