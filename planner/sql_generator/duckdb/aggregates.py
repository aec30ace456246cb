"""DuckDB's spellings of aggregates, with Spark's types and values."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.types import Decimal, to_spark
from penstock.planner.expressions.nodes import AggregateCall, Direction
from penstock.planner.sql_generator.dialect import (
    AggregateSpelling,
    Filtered,
    binary,
    cast,
    function,
    integer,
    not_null,
    when,
)
from penstock.planner.sql_generator.duckdb.numeric import decimal_quotient
from penstock.planner.sql_generator.spark.aggregates import aggregate, named_aggregates

# A count is a BIGINT: at most 9,223,372,036,854,775,807.
_DIGITS_OF_A_COUNT = 19


def _typed(spelling: AggregateSpelling) -> AggregateSpelling:
    """Cast an aggregate to the plan's type: DuckDB sums are HUGEINT or wider decimals."""
    return lambda call, args, filtered: cast(spelling(call, args, filtered), _kind(call))


def _kind(call: AggregateCall) -> exp.DataType:
    return exp.DataType.build(to_spark(call.type), dialect="spark")


def _sum0(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    return function("coalesce", aggregate("sum")(call, args, filtered), integer(0))


def _avg(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    """Exact for decimals: the sum divided by the count."""
    kind = call.args[0].type
    if not isinstance(kind, Decimal) or not isinstance(call.type, Decimal):
        return aggregate("avg")(call, args, filtered)
    # the sum of up to 10 ** 19 values
    total = Decimal(min(38, kind.precision + _DIGITS_OF_A_COUNT), kind.scale)
    dividend = cast(
        aggregate("sum")(call, args, filtered),
        exp.DataType.build(f"DECIMAL({total.precision}, {total.scale})"),
    )
    count = aggregate("count")(call, [arg.copy() for arg in args], filtered)
    # AVG of no value is NULL and not a division by zero.
    divisor = function("nullif", count, integer(0))
    return decimal_quotient(dividend, total, divisor, Decimal(_DIGITS_OF_A_COUNT, 0), call.type)


def _varying(name: str, *sides: str) -> AggregateSpelling:
    """The spelling of an aggregate that is NULL when a side is constant; the aggregates ``sides`` are 0 for a
    constant side.
    """

    def spelling(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
        def of(function: str) -> exp.Expr:
            return aggregate(function)(call, [arg.copy() for arg in args], filtered)

        flat = [exp.EQ(this=of(side), expression=integer(0)) for side in sides]
        return when(exp.or_(*flat), exp.null(), of(name))

    return spelling


def _skewness(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    """Population skewness. DuckDB has the sample skewness, which needs more than two values."""

    def of(function: str) -> exp.Expr:
        return aggregate(function)(call, [arg.copy() for arg in args], filtered)

    # sample = population * sqrt(n * (n - 1)) / (n - 2), solved for the population's.
    count = of("count")
    below = function(
        "sqrt",
        cast(
            binary(exp.Mul, count.copy(), binary(exp.Sub, count.copy(), integer(1))),
            exp.DataType.build("DOUBLE"),
        ),
    )
    scaled = binary(
        exp.Div, binary(exp.Mul, of("skewness"), binary(exp.Sub, count.copy(), integer(2))), below
    )
    # Two values are symmetric: their skewness is 0, where the sample's is NULL.
    pair = when(
        exp.EQ(this=count, expression=integer(2)), cast(integer(0), exp.DataType.build("DOUBLE")), scaled
    )
    return when(exp.GT(this=of("var_pop"), expression=integer(0)), pair, exp.null())


def _restrict(call: exp.Expr, condition: exp.Expr, filtered: Filtered) -> exp.Expr:
    """Return an aggregate over only the rows that meet a condition, combined with its FILTER."""
    inner = exp.Filter(this=call, expression=exp.Where(this=condition))
    # filtered() may add the call's own FILTER around ours: the two conditions become one
    whole = filtered(inner)
    outer = inner.parent
    if not isinstance(outer, exp.Filter):
        return whole
    inner.replace(call)
    outer.set(
        "expression",
        exp.Where(
            this=exp.And(this=exp.Paren(this=condition), expression=exp.Paren(this=outer.expression.this))
        ),
    )
    return whole


def _ordered(
    name: str, args: Sequence[exp.Expr], keys: Sequence[tuple[exp.Expr, Direction]], distinct: bool
) -> exp.Expr:
    """An aggregate with an ORDER BY inside; its first argument breaks ties."""
    ways = [*keys, *([] if distinct and keys else [(args[0].copy(), Direction())])]
    items = [exp.Ordered(this=key, desc=way.descending, nulls_first=way.nulls_first) for key, way in ways]
    values = [exp.Distinct(expressions=[args[0]]) if distinct else args[0], *args[1:]]
    return function(name, *values[:-1], exp.Order(this=values[-1], expressions=items))


def _keys(call: AggregateCall, args: list[exp.Expr]) -> list[tuple[exp.Expr, Direction]]:
    return list(zip(args[len(call.values) :], call.order, strict=True))


def _list(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    # COLLECT_LIST drops NULLs and is an empty array for a group of NULLs.
    values = _restrict(
        _ordered("list", args[:1], _keys(call, args), call.distinct), not_null(args[0].copy()), filtered
    )
    return function("coalesce", values, cast(exp.Array(expressions=[]), _kind(call)))


def _listagg(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    return filtered(_ordered("string_agg", args[:2], _keys(call, args), call.distinct))


def _position(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    return filtered(
        _ordered("first" if call.function == "first_value" else "last", args[:1], _keys(call, args), False)
    )


def _extreme_by(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    value, by = args
    # Ordered by (by, value): MAX_BY is the value of the last row, so ties have the largest value.
    found = _ordered("last" if call.function == "max_by" else "first", [value], [(by, Direction())], False)
    return _restrict(found, not_null(by.copy()), filtered)


def _histogram(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    # NULL for a group without values, whatever DuckDB's histogram is.
    some = exp.GT(this=filtered(function("count", args[0].copy())), expression=integer(0))
    return when(some, cast(filtered(function("histogram", args[0])), _kind(call)), exp.null())


def _mode(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    """The most frequent value; of equally frequent ones the first key of the histogram, which is sorted."""
    # Each value occurs once, so all are equally frequent: the smallest.
    if call.distinct:
        return filtered(function("min", args[0]))
    # the key at the position of the greatest count
    counts = function("map_values", filtered(function("histogram", args[0])))
    keys = function("map_keys", filtered(function("histogram", args[0].copy())))
    return function(
        "list_extract", keys, function("list_position", counts, function("list_max", counts.copy()))
    )


AGGREGATES: dict[str, AggregateSpelling] = {
    **named_aggregates(
        "count min max stddev_samp stddev_pop var_samp var_pop bool_and bool_or bit_and bit_or "
        "bit_xor covar_pop covar_samp "
        "regr_avgx regr_avgy regr_sxx regr_syy regr_sxy regr_r2"
    ),
    "any_value": aggregate("min"),
    "sum": _typed(aggregate("sum")),
    "sum0": _typed(_sum0),
    "avg": _avg,
    "corr": _varying("corr", "regr_sxx", "regr_syy"),
    "regr_slope": _varying("regr_slope", "regr_sxx"),
    "regr_intercept": _varying("regr_intercept", "regr_sxx"),
    "skewness": _skewness,
    "kurtosis": _varying("kurtosis_pop", "var_pop"),
    "percentile": aggregate("quantile_cont"),
    "percentile_approx": aggregate("quantile_disc"),
    "first_value": _position,
    "last_value": _position,
    "max_by": _extreme_by,
    "min_by": _extreme_by,
    "collect_list": _list,
    "listagg": _listagg,
    "mode": _mode,
    "histogram": _histogram,
}
