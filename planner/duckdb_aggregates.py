"""How DuckDB spells aggregates, so that they give Spark's types and values."""

from __future__ import annotations

from sqlglot import exp

from catalog.types import Decimal, to_spark
from planner.duckdb_numbers import decimal_quotient
from planner.expressions import AggregateCall
from planner.spark_functions import aggregate
from planner.sql_flavour import AggregateSpelling, Filtered, cast, function, integer


def _typed(spelling: AggregateSpelling) -> AggregateSpelling:
    """The spelling cast to the type the plan gives it: sums are HUGEINT or wider decimals here."""
    return lambda call, args, filtered: cast(spelling(call, args, filtered), exp.DataType.build(to_spark(call.type), dialect="spark"))


def _sum0(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    return function("coalesce", aggregate("sum")(call, args, filtered), integer(0))


def _avg(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    """Exact for decimals: the sum divided by the count."""
    kind = call.args[0].type
    if not isinstance(kind, Decimal) or not isinstance(call.type, Decimal):
        return aggregate("avg")(call, args, filtered)
    total = cast(aggregate("sum")(call, args, filtered), exp.DataType.build(f"DECIMAL(38, {kind.scale})"))
    count = aggregate("count")(call, [arg.copy() for arg in args], filtered)
    return decimal_quotient(total, kind.scale, function("nullif", count, integer(0)), 0, call.type)


AGGREGATES: dict[str, AggregateSpelling] = {
    **{
        name: aggregate(name)
        for name in ["count", "min", "max", "stddev_samp", "stddev_pop", "var_samp", "var_pop", "bool_and", "bool_or", "any_value"]
    },
    "sum": _typed(aggregate("sum")),
    "sum0": _typed(_sum0),
    "avg": _avg,
}
