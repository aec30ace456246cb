"""The temporal join as SQL: each version gets the time of the next one; the join is on the key and the time
between.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.catalog.types import INT
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.sql_generator.dialect import Flavour, function
from penstock.planner.sql_generator.expressions import sort_key_sql
from penstock.planner.sql_generator.windows import aliased, column


def first_of_times(plan: TemporalJoin, source: str, flavour: Flavour) -> exp.Select:
    """Return the versions that have a time. The column appended numbers those of one key and time."""
    width = len(plan.right.schema)
    ties = [(i, plan.right.schema[i]) for i in plan.ties if is_orderable(plan.right.schema[i].type)]
    keys = [SortKey(Column(f.type, f.nullable, index=i)) for i, f in ties]
    ordered = exp.Order(expressions=[sort_key_sql(key, column, flavour) for key in keys])
    partition = [column(key) for key in (*plan.right_keys, plan.right_time)]
    number = exp.Cast(
        this=exp.Window(this=function("row_number"), partition_by=partition, order=ordered),
        to=flavour.kind(INT),
    )
    select = exp.select(*_columns(width), exp.alias_(number, f"c{width}")).from_(aliased(source))
    return select.where(exp.Not(this=exp.Is(this=column(plan.right_time), expression=exp.null())))


def with_ends(plan: TemporalJoin, source: str, flavour: Flavour) -> exp.Select:
    """Return the first version of each key and time. The column appended is the time of the key's next
    version.
    """
    width, field = len(plan.right.schema), plan.right.schema[plan.right_time]
    key = SortKey(Column(field.type, field.nullable, index=plan.right_time))
    ordered = exp.Order(expressions=[sort_key_sql(key, column, flavour)])
    partition = [column(key) for key in plan.right_keys]
    following = exp.Window(
        this=function("lead", column(plan.right_time)), partition_by=partition, order=ordered
    )
    select = exp.select(*_columns(width), exp.alias_(following, f"c{width}")).from_(aliased(source))
    return select.where(exp.EQ(this=column(width), expression=exp.Literal.number("1")))


def in_force(at: exp.Expr, begins: exp.Expr, ends: exp.Expr) -> list[exp.Expr]:
    """Return the conditions under which a version is valid at a time."""
    # begins <= at AND (ends IS NULL OR at < ends)
    endless = exp.Is(this=ends, expression=exp.null())
    return [
        exp.GTE(this=at, expression=begins),
        exp.Paren(this=exp.Or(this=endless, expression=exp.LT(this=at.copy(), expression=ends.copy()))),
    ]


def _columns(width: int) -> list[exp.Expr]:
    return [exp.alias_(column(i), f"c{i}") for i in range(width)]
