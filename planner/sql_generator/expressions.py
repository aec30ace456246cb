"""Typed expressions as sqlglot trees of a flavour."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from penstock.planner.expressions.nodes import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Lambda,
    LambdaVariable,
    Literal,
    SortKey,
)
from penstock.planner.sql_generator.dialect import Flavour

Columns = Callable[[int], exp.Expr]


def expression_sql(expression: Expression, columns: Columns, flavour: Flavour) -> exp.Expr:
    """Return an expression as a sqlglot tree of the flavour; ``columns`` returns a fresh node for an input
    position.
    """
    match expression:
        case Column(index=index):
            return columns(index)
        case Literal():
            return flavour.literal(expression)
        case Call(args=args):
            return flavour.spell(expression, [expression_sql(arg, columns, flavour) for arg in args])
        case Cast(type=target, arg=arg, safe=safe):
            return flavour.cast(expression_sql(arg, columns, flavour), arg.type, target, safe)
        case Lambda(parameters=parameters, body=body):
            names = [exp.to_identifier(_parameter(one)) for one in parameters]
            return exp.Lambda(this=expression_sql(body, columns, flavour), expressions=names)
        case LambdaVariable():
            return exp.column(_parameter(expression))
        case Case(whens=whens, default=default):
            ifs = [
                exp.If(this=expression_sql(c, columns, flavour), true=expression_sql(v, columns, flavour))
                for c, v in whens
            ]
            return exp.Case(ifs=ifs, default=expression_sql(default, columns, flavour))
    raise flavour.refusal(f"{type(expression).__name__} {expression}", expression.span)


def _parameter(variable: LambdaVariable) -> str:
    return f"parameter_{variable.number}"


def aggregate_sql(
    call: AggregateCall,
    columns: Columns,
    flavour: Flavour,
    over: Callable[[exp.Expr], exp.Expr] | None = None,
) -> exp.Expr:
    """Return an aggregate call with its DISTINCT and FILTER; ``over`` adds OVER to each aggregate function in
    it.
    """

    if over is not None and not flavour.narrows_windows and (call.distinct or call.filter is not None):
        raise flavour.refusal("DISTINCT or FILTER with OVER", call.span)

    # f(..) FILTER (WHERE ..) OVER (..)
    def filtered(function: exp.Expr) -> exp.Expr:
        kept = function
        if call.filter is not None:
            kept = exp.Filter(
                this=function, expression=exp.Where(this=expression_sql(call.filter, columns, flavour))
            )
        return kept if over is None else over(kept)

    return flavour.spell_aggregate(
        call, [expression_sql(arg, columns, flavour) for arg in call.args], filtered
    )


def sort_key_sql(key: SortKey, columns: Columns, flavour: Flavour) -> exp.Expr:
    """Return one ORDER BY item with NULLS FIRST or LAST."""
    return exp.Ordered(
        this=flavour.sort_value(expression_sql(key.expression, columns, flavour), key.expression.type),
        desc=key.descending,
        nulls_first=key.nulls_first,
    )
