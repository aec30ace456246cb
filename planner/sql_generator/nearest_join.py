"""The nearest join as SQL whose work grows as the rows of both sides do, not as their pairs.

Of right rows of equal keys and value one is left first. Then DuckDB has ASOF JOIN. Other backends sort both
sides together, and each left row reads the last right row before it.
"""

from __future__ import annotations

from sqlglot import exp

from penstock.catalog.coercion import is_orderable
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.joins.nearest_join import NearestJoin
from penstock.planner.sql_generator.dialect import function, integer, is_null, not_null, text
from penstock.planner.sql_generator.expressions import sort_key_sql
from penstock.planner.sql_generator.windows import Ctes, aliased, column, named

# by (latest, strict): the comparison of a left and a right value
_COMPARISONS: dict[tuple[bool, bool], type[exp.Expr]] = {
    (True, False): exp.GTE,
    (True, True): exp.GT,
    (False, False): exp.LTE,
    (False, True): exp.LT,
}
# Where values are equal: a right row is before a left row that it matches.
_BEFORE, _LEFT, _BEHIND = 0, 1, 2


def nearest_select(ctes: Ctes, plan: NearestJoin, left: str, right: str) -> exp.Select:
    """Return the select of a nearest join of two relations."""
    firsts = ctes.add(_one_of_each_value(ctes, plan, right))
    if ctes.flavour.asof_join:
        return _asof_join(plan, left, firsts)
    return _last_before(ctes, plan, left, firsts)


def _one_of_each_value(ctes: Ctes, plan: NearestJoin, right: str) -> exp.Select:
    """SELECT .., row_number() OVER (PARTITION BY keys, value ORDER BY the order, the ties)."""
    schema, width = plan.right.schema, len(plan.right.schema)
    order = [(one, down, nulls_first) for one, down, nulls_first in plan.order]
    order += [(one, False, True) for one in plan.ties if is_orderable(schema[one].type)]
    keys = [
        SortKey(Column(schema[one].type, schema[one].nullable, index=one), down, nulls_first)
        for one, down, nulls_first in order
    ]
    number = exp.Window(
        this=function("row_number"),
        partition_by=[column(one) for one in (*plan.right_keys, plan.values[1])],
        order=exp.Order(expressions=[sort_key_sql(key, column, ctes.flavour) for key in keys]),
    )
    items = [exp.alias_(column(one), f"c{one}") for one in range(width)]
    rows = exp.select(*items, exp.alias_(number, f"c{width}")).from_(aliased(right))
    # NULL is near to nothing
    numbered = ctes.add(rows.where(*_known((*plan.right_keys, plan.values[1]))))
    first = exp.EQ(this=column(width), expression=integer(1))
    return exp.select(*(item.copy() for item in items)).from_(aliased(numbered)).where(first)


def _asof_join(plan: NearestJoin, left: str, right: str) -> exp.Select:
    width, (value, other) = len(plan.left.schema), plan.values
    pairs = zip(plan.left_keys, plan.right_keys, strict=True)
    parts: list[exp.Expr] = [
        exp.EQ(this=_of("l", mine), expression=_of("r", theirs)) for mine, theirs in pairs
    ]
    compare = _COMPARISONS[plan.latest, plan.strict]
    parts.append(compare(this=_of("l", value), expression=_of("r", other)))
    items = [exp.alias_(_of("l", one), f"c{one}") for one in range(width)]
    items += [exp.alias_(_of("r", one), f"c{width + one}") for one in range(len(plan.right.schema))]
    select = exp.select(*items).from_(exp.to_table(left, alias="l"))
    on = exp.and_(*parts, copy=False)
    select.append("joins", exp.Join(this=exp.to_table(right, alias="r"), method="ASOF", on=on))
    return select


def _last_before(ctes: Ctes, plan: NearestJoin, left: str, right: str) -> exp.Select:
    """SELECT .., LAST_VALUE(right row) IGNORE NULLS OVER (PARTITION BY keys ORDER BY value, side) over both
    sides, and of that the left rows.
    """
    width, others, (value, other) = len(plan.left.schema), len(plan.right.schema), plan.values
    lefts, rights = plan.left_keys, plan.right_keys
    mine = [exp.alias_(column(one), f"l{one}") for one in range(width)]
    none = [exp.alias_(exp.null(), f"l{one}") for one in range(width)]
    pair = [part for one in range(others) for part in (text(f"c{one}"), column(one))]
    side = _BEHIND if plan.strict else _BEFORE
    both = exp.union(
        exp.select(*_ordered(lefts, value, _LEFT), *mine, exp.alias_(exp.null(), "r"))
        .from_(aliased(left))
        .where(*_known((*lefts, value))),
        exp.select(
            *_ordered(rights, other, side), *none, exp.alias_(function("named_struct", *pair), "r")
        ).from_(aliased(right)),
        distinct=False,
        copy=False,
    )
    rows = ctes.add(both)
    last = exp.Window(
        this=function("last_value", named("r"), exp.true()),
        partition_by=[named(f"k{number}") for number in range(len(lefts))],
        order=exp.Order(
            expressions=[
                exp.Ordered(this=named("t"), desc=not plan.latest, nulls_first=plan.latest),
                exp.Ordered(this=named("side"), desc=False, nulls_first=True),
            ]
        ),
        spec=exp.WindowSpec(
            kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW", end_side=None
        ),
    )
    shown = [named(f"l{one}") for one in range(width)]
    found = ctes.add(exp.select(named("side"), *shown, exp.alias_(last, "r")).from_(aliased(rows)))
    items = [exp.alias_(named(f"l{one}"), f"c{one}") for one in range(width)]
    items += [
        exp.alias_(exp.Dot(this=named("r"), expression=exp.to_identifier(f"c{one}")), f"c{width + one}")
        for one in range(others)
    ]
    is_left = exp.EQ(this=named("side"), expression=integer(_LEFT))
    return exp.select(*items).from_(aliased(found)).where(is_left, exp.Not(this=is_null(named("r"))))


def _ordered(keys: tuple[int, ...], value: int, side: int) -> list[exp.Expr]:
    """Return the keys, the value and the side of rows: k0, k1, .., t, side."""
    items = [exp.alias_(column(key), f"k{number}") for number, key in enumerate(keys)]
    return [*items, exp.alias_(column(value), "t"), exp.alias_(integer(side), "side")]


def _known(columns: tuple[int, ...]) -> list[exp.Expr]:
    return [not_null(column(one)) for one in columns]


def _of(side: str, index: int) -> exp.Expr:
    return exp.column(f"c{index}", table=side)
