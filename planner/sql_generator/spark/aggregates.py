"""Spark's spellings of aggregates, with the engine's values: ties and orders are always deterministic."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.types import BIGINT, Map, YearMonthInterval, to_spark
from penstock.planner.expressions.nodes import AggregateCall, Direction
from penstock.planner.sql_generator.dialect import (
    AggregateSpelling,
    Filtered,
    cast,
    function,
    integer,
    is_null,
    not_null,
    when,
)

# Spark's percentile_approx is exact up to so many values.
_ACCURACY = 1_000_000


def aggregate(name: str) -> AggregateSpelling:
    """Return the spelling of an aggregate with this name, with DISTINCT where written."""

    def spelling(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
        # COUNT(*).
        if not args:
            return filtered(function(name, exp.Star()))
        return filtered(function(name, *(_apart(args) if call.distinct else args)))

    return spelling


def _apart(args: list[exp.Expr]) -> list[exp.Expr]:
    """``DISTINCT a, b``: sqlglot would make it a tuple."""
    return [exp.Distinct(expressions=args[:1]), *args[1:]]


def named_aggregates(names: str) -> dict[str, AggregateSpelling]:
    """Return the spellings of aggregates that have the same name in Spark; ``names`` are
    separated by blanks.
    """
    return {name: aggregate(name) for name in names.split()}


def _sum0(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    return function("coalesce", filtered(function("sum", *args)), integer(0))


def _any_value(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    """The smallest value; of maps, which Spark cannot order, any value."""
    # Spark cannot compare maps
    if isinstance(call.type, Map):
        return filtered(function("any_value", *args, exp.true()))
    return aggregate("min")(call, args, filtered)


def _extreme_by(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    """MAX_BY and MIN_BY; the value breaks ties."""
    value, by = args
    # A NULL key drops the row; a struct (by, value) orders by both.
    key = exp.Case(ifs=[exp.If(this=not_null(by.copy()), true=function("struct", by, value.copy()))])
    return filtered(function(call.function, value, key))


def _rows(call: AggregateCall, args: list[exp.Expr], filtered: Filtered, needed: bool) -> exp.Expr:
    """The sorted array of rows: the keys as k0, k1, .., then the value as x. With ``needed``, rows without a
    value are dropped.
    """
    # The arguments are the values, then the keys of ORDER BY.
    keys = args[len(call.values) :]
    parts = [(f"k{i}", key) for i, key in enumerate(keys)] + [("x", args[0])]
    row: exp.Expr = function(
        "named_struct", *(part for name, value in parts for part in (exp.Literal.string(name), value))
    )
    row = exp.Case(ifs=[exp.If(this=not_null(args[0].copy()), true=row)]) if needed else row
    rows = filtered(function("collect_list", row))
    # array_sort's own order is ascending; other directions need a comparator
    if all(way == Direction() for way in call.order):
        return function("array_sort", rows)
    return function(
        "array_sort",
        rows,
        exp.Lambda(this=_compared(call.order), expressions=[exp.to_identifier("a"), exp.to_identifier("b")]),
    )


def _compared(ways: Sequence[Direction]) -> exp.Expr:
    """The comparator of rows a and b: -1, 0 or 1."""
    ifs = []
    for name, way in [*((f"k{i}", way) for i, way in enumerate(ways)), ("x", Direction())]:
        a, b = (exp.Dot(this=exp.to_identifier(row), expression=exp.to_identifier(name)) for row in "ab")
        # What the comparator returns where a is NULL, and where a is less than b.
        null, less = (-1 if way.nulls_first else 1), (1 if way.descending else -1)
        decided = exp.Case(
            ifs=[
                exp.If(this=is_null(a.copy()), true=integer(null)),
                exp.If(this=is_null(b.copy()), true=integer(-null)),
                exp.If(this=exp.LT(this=a.copy(), expression=b.copy()), true=integer(less)),
            ],
            default=integer(-less),
        )
        ifs.append(
            # Equal keys, NULLs too, leave the decision to the next key.
            exp.If(this=exp.Not(this=exp.Paren(this=exp.NullSafeEQ(this=a, expression=b))), true=decided)
        )
    return exp.Case(ifs=ifs, default=integer(0))


def _position(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    """FIRST_VALUE and LAST_VALUE."""
    first = call.function == "first_value"
    # MIN_BY over (keys, value) needs no array
    if all(way == Direction() for way in call.order):
        key = function("struct", *args[len(call.values) :], args[0].copy())
        return filtered(function("min_by" if first else "max_by", args[0], key))
    rows = _rows(call, args, filtered, needed=False)
    found = function("get", rows if first else function("reverse", rows), integer(0))
    return exp.Dot(this=found, expression=exp.to_identifier("x"))


def _list(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    # collect_set has no order
    if call.distinct:
        values = function("array_sort", filtered(function("collect_set", args[0])))
        return function("reverse", values) if call.order and call.order[0].descending else values
    if not call.order:
        return function("array_sort", filtered(function("collect_list", args[0])))
    row = exp.to_identifier("r")
    return function(
        "transform",
        _rows(call, args, filtered, needed=True),
        exp.Lambda(this=exp.Dot(this=row, expression=exp.to_identifier("x")), expressions=[row]),
    )


def _listagg(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    # NULL for a group without values, where array_join would return an empty text
    some = exp.GT(this=filtered(function("count", args[0].copy())), expression=integer(0))
    return exp.Case(
        ifs=[exp.If(this=some, true=function("array_join", _list(call, args, filtered), args[1]))]
    )


def _percentile_approx(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    every = [*args, integer(_ACCURACY)]
    return filtered(function("percentile_approx", *(_apart(every) if call.distinct else every)))


def _mode(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    return filtered(
        function("min" if call.distinct else "mode", args[0], *([] if call.distinct else [exp.true()]))
    )


def _histogram(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    # the different values, each with the number of equal ones among all values
    keys = function("array_sort", filtered(function("collect_set", args[0])))
    every = filtered(function("collect_list", args[0].copy()))
    v, w = exp.to_identifier("v"), exp.to_identifier("w")
    same = function("filter", every, exp.Lambda(this=exp.EQ(this=w, expression=v), expressions=[w.copy()]))
    counts = function(
        "transform",
        keys.copy(),
        exp.Lambda(
            this=cast(function("size", same), exp.DataType.build(str(BIGINT))), expressions=[v.copy()]
        ),
    )
    # NULL for a group without values, as for other aggregates.
    some = exp.GT(this=filtered(function("count", args[0].copy())), expression=integer(0))
    return when(
        some,
        function("map_from_arrays", keys, counts),
        cast(exp.null(), exp.DataType.build(to_spark(call.type), dialect="spark")),
    )


def takes_rows(call: AggregateCall) -> bool:
    """Return whether Spark can sort rows of an aggregate's arguments and return them as Arrow."""
    return all(is_orderable(arg.type) and not isinstance(arg.type, YearMonthInterval) for arg in call.args)


def rows_of_group(call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
    """Return the rows of a group as an array of structs in ascending order, NULLs first; with DISTINCT
    without duplicates.
    """
    # two arguments may be the same column, and Arrow takes no two fields of one name
    parts = enumerate(args or [integer(0)])
    row = function("named_struct", *(part for i, arg in parts for part in (exp.Literal.string(f"a{i}"), arg)))
    return function("array_sort", filtered(function("collect_set" if call.distinct else "collect_list", row)))


AGGREGATES: dict[str, AggregateSpelling] = {
    **named_aggregates(
        "count sum avg min max stddev_samp stddev_pop var_samp var_pop bool_and bool_or bit_and "
        "bit_or bit_xor skewness kurtosis corr covar_pop "
        "covar_samp regr_avgx regr_avgy regr_sxx regr_syy regr_sxy regr_slope regr_intercept "
        "regr_r2 percentile"
    ),
    "sum0": _sum0,
    "any_value": _any_value,
    "max_by": _extreme_by,
    "min_by": _extreme_by,
    "first_value": _position,
    "last_value": _position,
    "collect_list": _list,
    "listagg": _listagg,
    "percentile_approx": _percentile_approx,
    "mode": _mode,
    "histogram": _histogram,
}
