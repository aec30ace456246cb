"""LATERAL (query): a query in FROM that reads columns of the relations before it. It becomes a join, an
aggregate per outer row, or a Top-N per outer row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.relations.joins import join_on
from penstock.planner.binder.relations.tables import renamed
from penstock.planner.binder.scope import FromClause, Relation, Scope, ScopeColumn
from penstock.planner.binder.select_list import item_name, star_columns
from penstock.planner.binder.subqueries.correlation import (
    ORDERED,
    InnerRows,
    aggregates,
    bound_rows,
    is_plain,
    unordered,
    whole_rows,
)
from penstock.planner.binder.subqueries.dependent_join import (
    DomainRows,
    first_rows,
    self_contained,
    takes_first,
    with_domain,
)
from penstock.planner.binder.subqueries.scalar_subqueries import (
    SubqueryValues,
    attach,
    column,
    keeps_one_row,
)
from penstock.planner.binder.subqueries.semi_joins import filtered
from penstock.planner.expressions.nodes import Case, Expression, Literal, conjunction, conjuncts
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project, select_columns
from penstock.planner.logical.scan import bounded
from penstock.planner.parser.syntax_nodes import AllColumns, LateralQuery, span_of


@dataclass(frozen=True)
class _Listed:
    """One column of the query's list, over the outer columns ++ the query's own."""

    name: str
    value: Expression


def bind_lateral(
    left: FromClause,
    tree: LateralQuery,
    kind: JoinKind,
    context: BindContext,
    condition: Expression | None = None,
) -> FromClause:
    """Return the input joined with a query that may read it in WHERE. Raises SQL-1601 for a query that reads
    it elsewhere.

    ``condition``: the ON of a LEFT JOIN, over the input ++ the query's columns.
    """
    query = tree.this
    # Unwrap redundant parentheses.
    while isinstance(query, exp.Subquery) and not any(query.args.get(key) for key in (*ORDERED, "with_")):
        query = query.this
    plan, fields = _joined(left, query, kind, context, () if condition is None else conjuncts(condition))
    alias = tree.args.get("alias")
    name = None if alias is None else alias.this.name
    names = alias.args.get("columns") if alias is not None else None
    if names:
        fields = renamed(Relation(plan, fields), names, span_of(alias)).fields
    width = len(left.plan.schema)
    columns = tuple(ScopeColumn(width + i, replace(field, role=None), name) for i, field in enumerate(fields))
    scope = left.scope if _keeps_time(left.plan, plan) else left.scope.without_roles()
    return FromClause(plan, Scope(scope.columns + columns))


def _keeps_time(below: LogicalPlan, plan: LogicalPlan) -> bool:
    """Return whether all joined inputs are bounded, so that the join delays no row."""
    while plan is not below:
        # the left rows are input 0 all the way down
        if len(plan.inputs) > 1 and not all(bounded(other) for other in plan.inputs[1:]):
            return False
        plan = plan.inputs[0]
    return True


def _joined(
    left: FromClause, query: exp.Expr, kind: JoinKind, context: BindContext, on: tuple[Expression, ...]
) -> tuple[LogicalPlan, tuple[Field, ...]]:
    # ORDER BY and LIMIT are per outer row; FROM, WHERE and the list are bound first
    bare, distinct = unordered(query), bool(query.args.get("distinct"))
    # SELECT MAX(x) FROM t WHERE t.k = outer.k: one row per outer row
    if is_plain(bare) and not distinct and aggregates(query, context):
        grouped = _aggregated(left, query, context, on) if keeps_one_row(query, context) else None
        return grouped or _whole(left, query, kind, context, on)
    # GROUP BY, DISTINCT, UNION, OFFSET: the dependent join
    if distinct or not takes_first(query, context):
        return _whole(left, query, kind, context, on)
    rows = bound_rows(bare, left.scope, len(left.plan.schema), context, filtered)
    listed = _list(rows.scope, query, context)
    # Above a LEFT JOIN an item over both sides would not be NULL for a padded row.
    if kind is JoinKind.LEFT and any(i < rows.width for item in listed for i in item.value.columns()):
        return _whole(left, query, kind, context, on)
    # ORDER BY .. LIMIT n: a Top-N per outer row
    if query.args.get("limit") is not None:
        rows = first_rows(rows, query, context)
        if isinstance(rows, DomainRows):
            rows = replace(rows, plan=with_domain(rows.plan, left.plan, rows.domain))
    return _with_list(left, self_contained(rows, left.plan, span_of(query)), listed, kind, on)


def _whole(
    left: FromClause, query: exp.Expr, kind: JoinKind, context: BindContext, on: tuple[Expression, ...]
) -> tuple[LogicalPlan, tuple[Field, ...]]:
    """Join a query that was bound whole and may read the outer rows anywhere."""
    width = len(left.plan.schema)
    relation = context.inside(left.scope).query(query)
    rows = whole_rows(relation, left.scope, width, context)
    rows = self_contained(rows, left.plan, span_of(query))
    plan = join_on(left.plan, rows.plan, kind, (*rows.shared, *on))
    plan = select_columns(plan, range(width + len(relation.plan.schema)))
    fields = plan.schema.fields[width : width + len(relation.fields)]
    # names are the relation's: a WITH or a view may have renamed the plan's columns
    return plan, tuple(field.renamed(name) for field, name in zip(fields, relation.names, strict=True))


def _list(scope: Scope, query: exp.Expr, context: BindContext) -> list[_Listed]:
    binder = ExpressionBinder(scope, context, "SELECT")
    items = []
    for item in query.expressions:
        if isinstance(item, AllColumns):
            items += [_Listed(name, value) for name, value in star_columns(item, binder)]
            continue
        named = item.args["alias"].name if isinstance(item, exp.Alias) else item_name(item, context)
        items.append(_Listed(named, binder.bind(item.this if isinstance(item, exp.Alias) else item)))
    return items


def _aggregated(
    left: FromClause, query: exp.Expr, context: BindContext, on: tuple[Expression, ...]
) -> tuple[LogicalPlan, tuple[Field, ...]] | None:
    """Join an aggregate query: one row per outer row, grouped by the equalities with the outer query. Columns
    are NULL where ``on`` is not TRUE. ``None`` if the query is to be bound whole.
    """
    binder = ExpressionBinder(left.scope, context, "LATERAL")
    values = SubqueryValues(filtered).aggregated(query, binder, span_of(query))
    if values is None:
        return None
    names = [
        item.args["alias"].name if isinstance(item, exp.Alias) else item_name(item, context)
        for item in query.expressions
    ]
    # each aggregate is a value joined to the outer row, as a scalar subquery is
    wide, placed = attach(left.plan, values)
    outer = tuple(column(left.plan, i) for i in range(len(left.plan.schema)))
    plan = Project(wide, outer + placed, (*left.plan.schema.names, *names))
    # LEFT JOIN LATERAL (SELECT MAX(x) ..) ON c: CASE WHEN c THEN max END
    if on:
        width, holds = len(outer), conjunction(on)
        aggregated = tuple(_where(holds, column(plan, width + i)) for i in range(len(placed)))
        plan = Project(
            plan, tuple(column(plan, i) for i in range(width)) + aggregated, tuple(plan.schema.names)
        )
    return plan, plan.schema.fields[len(outer) :]


def _where(condition: Expression, value: Expression) -> Expression:
    return Case(
        value.type,
        True,
        whens=((condition, value),),
        default=Literal(value.type, True, value=None),
        span=value.span,
    )


def _with_list(
    left: FromClause,
    rows: InnerRows,
    listed: Sequence[_Listed],
    kind: JoinKind,
    on: tuple[Expression, ...],
) -> tuple[LogicalPlan, tuple[Field, ...]]:
    """Return the join with its select list. Items over the query's own columns are projected below it, items
    over both sides above it.
    """
    own = len(rows.plan.schema)
    # Items over the query's own columns are computed beneath the join.
    inner = [item.value for item in listed if all(i >= rows.width for i in item.value.columns())]
    below = tuple(column(rows.plan, i) for i in range(own)) + tuple(rows.own(value) for value in inner)
    names = (*rows.plan.schema.names, *(f"item{i + 1}" for i in range(len(inner))))
    projected = {id(value): rows.width + own + i for i, value in enumerate(inner)}
    # ON is over outer ++ list; positions maps the list to what is projected beneath the join
    positions = {i: i for i in range(rows.width)} | {
        rows.width + i: projected.get(id(item.value), 0) for i, item in enumerate(listed)
    }
    joined = join_on(
        left.plan,
        Project(rows.plan, below, names),
        kind,
        (*rows.shared, *(part.remap(positions) for part in on)),
    )
    outer = tuple(column(left.plan, i) for i in range(rows.width))
    # an item over outer columns is computed above the join
    items = tuple(
        column(joined, projected[id(item.value)]) if id(item.value) in projected else item.value
        for item in listed
    )
    plan = Project(joined, outer + items, (*left.plan.schema.names, *(item.name for item in listed)))
    return plan, plan.schema.fields[rows.width :]
