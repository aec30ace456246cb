"""ASOF joins: each left row with the one right row that is nearest by a comparison, of those of equal keys.

It is a Top-1 per different value of the left columns in the condition, so it follows corrections of both
sides.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.relations.join_conditions import key_pair, with_keys
from penstock.planner.binder.relations.joins import join_on, shown_scope
from penstock.planner.binder.scope import FromClause, Scope
from penstock.planner.binder.subqueries.correlation import InnerRows
from penstock.planner.binder.subqueries.dependent_join import by_outer_values, with_domain
from penstock.planner.expressions.nodes import Call, Expression, SortKey, conjuncts
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.projection import select_columns
from penstock.planner.parser.syntax_nodes import span_of

# Each comparison of left and right: whether the greatest right value is the nearest.
_LATEST = {"greater": True, "greater_equal": True, "less": False, "less_equal": False}


def bind_asof(
    left: FromClause,
    right: FromClause,
    kind: JoinKind,
    join: exp.Expr,
    context: BindContext,
    parts: Sequence[Expression],
) -> FromClause:
    """Return the join of each left row with its nearest right row. Of right rows that are equally near, the
    first in the order of all columns is joined.

    Raises SQL-1601 unless the condition is equalities and one comparison of the two sides.
    """
    width, added = len(left.plan.schema), len(right.plan.schema)
    span, match = span_of(join), join.args.get("match_condition")
    if match is not None:
        scope = left.scope.beside(right.scope, width)
        bound = ExpressionBinder(scope, context, "MATCH_CONDITION").condition(match)
        parts = (*parts, *conjuncts(bound))
    ordered = [(part, side) for part in parts if (side := _compared(part, width)) is not None]
    others = [part for part in parts if all(part is not found for found, _ in ordered)]
    if len(ordered) != 1 or any(key_pair(part, width) is None for part in others):
        hint = "write ASOF JOIN t ON a.key = t.key AND a.ts >= t.ts, and filter in WHERE or in a subquery"
        message = "ASOF JOIN takes equalities and one comparison of both sides by >=, >, <= or <"
        raise PenstockError("SQL-1601", message, span=span, hint=hint, sqlstate="0A000")
    (_, (nearest, latest)) = ordered[0]
    rows = InnerRows(right.plan, width, Scope((), left.scope), context.level, tuple(parts))
    domain = by_outer_values(rows, span=span)
    pairs = [pair for part in domain.shared if (pair := key_pair(part, width)) is not None]
    wide, partition = with_keys(domain.plan, [theirs for _, theirs in pairs])
    key = SortKey(domain.own(nearest), descending=latest, nulls_first=not latest)
    first = PartitionTop(wide, partition, (key,), "row_number", 1)
    top = select_columns(first, range(len(domain.plan.schema)))
    joined = join_on(left.plan, with_domain(top, left.plan, domain.domain), kind, domain.shared)
    plan = select_columns(joined, range(width + added))
    return FromClause(plan, shown_scope(left, right, kind, width).without_roles())


def _compared(part: Expression, width: int) -> tuple[Expression, bool] | None:
    """Return the right operand of a comparison of both sides, over left ++ right, and whether its greatest
    value is the nearest.
    """
    if not isinstance(part, Call) or part.function not in _LATEST:
        return None
    first, second = part.args
    if _sided(first, second, width):
        return second, _LATEST[part.function]
    # t.ts <= a.ts
    return (first, not _LATEST[part.function]) if _sided(second, first, width) else None


def _sided(left: Expression, right: Expression, width: int) -> bool:
    mine, theirs = left.columns(), right.columns()
    return bool(mine) and bool(theirs) and max(mine) < width <= min(theirs)
