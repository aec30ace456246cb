"""Subqueries in WHERE: IN and EXISTS among its AND-ed conditions become semi-joins and anti-joins. Any other
subquery is a value joined to the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.relations.join_conditions import Roles, key_pair, time_roles, with_keys
from penstock.planner.binder.relations.joins import join_on, push_time_conditions
from penstock.planner.binder.scope import FromClause, Scope
from penstock.planner.binder.subqueries.correlation import (
    InnerRows,
    conjunct_trees,
    has_subquery,
    inner_rows,
    tested_values,
)
from penstock.planner.binder.subqueries.dependent_join import self_contained
from penstock.planner.binder.subqueries.scalar_subqueries import (
    SubqueryValues,
    any_row,
    attach,
    column,
    logical,
    not_false,
    null_facts,
)
from penstock.planner.expressions.nodes import Call, Expression, conjunction, conjuncts
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.joins.join import BinaryJoin, Join, JoinKind
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter
from penstock.planner.logical.scan import bounded
from penstock.planner.parser.syntax_nodes import span_of


def filtered(source: FromClause, where: Sequence[exp.Expr], context: BindContext) -> FromClause:
    """Filter by every condition: plain conditions first, then those with subqueries in the order
    of the text.
    """
    trees = [part for tree in where for part in conjunct_trees(tree)]
    plain = tuple(
        ExpressionBinder(source.scope, context, "WHERE").condition(tree)
        for tree in trees
        if not has_subquery(tree)
    )
    # Plain conditions first: they shrink the input of the joins.
    source, remaining = push_time_conditions(
        source, tuple(part for condition in plain for part in conjuncts(condition))
    )
    rows = FromClause(Filter(source.plan, conjunction(remaining)) if remaining else source.plan, source.scope)
    # each condition is one join above the rows that passed the ones before
    for tree in trees:
        if has_subquery(tree):
            plan = _tested(rows.plan, rows.scope, tree, context)
            rows = FromClause(plan, roles_above(rows.scope, plan, rows.plan))
    return rows


def roles_above(scope: Scope, plan: LogicalPlan, bottom: LogicalPlan) -> Scope:
    """Return a scope over ``bottom`` as it is above the joins of subqueries. Columns keep their time roles
    while no join delays the rows.
    """
    while plan is not bottom:
        # It emits each row in time: its schema says which roles survive.
        if isinstance(plan, IntervalJoin):
            scope = scope.with_roles_of(plan.schema)
        elif isinstance(plan, BinaryJoin) and not bounded(plan.right):
            return scope.without_roles()
        plan = plan.inputs[0]
    return scope


def joins_bounded(plan: LogicalPlan, bottom: LogicalPlan) -> bool:
    """Return whether every subquery joined above ``bottom`` is bounded, so that no join delays the rows."""
    while plan is not bottom:
        if isinstance(plan, BinaryJoin) and not bounded(plan.right):
            return False
        plan = plan.inputs[0]
    return True


def _tested(plan: LogicalPlan, scope: Scope, tree: exp.Expr, context: BindContext) -> LogicalPlan:
    """Filter a plan by one condition that has a subquery."""
    negated, core = False, tree
    # NOT EXISTS, NOT (x IN ..): count the negations
    while isinstance(core, exp.Not | exp.Paren):
        negated ^= isinstance(core, exp.Not)
        core = core.this
    binder = ExpressionBinder(scope, context, "WHERE", subqueries=SubqueryValues(filtered))
    # [NOT] EXISTS (SELECT ..)
    if isinstance(core, exp.Exists):
        rows = inner_rows(core.this, scope, len(plan.schema), context, filtered, list_matters=False)
        rows = self_contained(rows, plan, span_of(core))
        return _whether_any(plan, scope, rows, negated)
    # x [NOT] IN (SELECT ..)
    if isinstance(core, exp.In) and core.args.get("query") is not None:
        return _whether_in(plan, core, negated, binder)
    # Under OR, in CASE or in a comparison the subquery is a value.
    wide, (condition,) = attach(plan, [binder.condition(tree)])
    return Filter(wide, condition)


def _whether_any(plan: LogicalPlan, scope: Scope, rows: InnerRows, negated: bool) -> LogicalPlan:
    kind = JoinKind.ANTI if negated else JoinKind.SEMI
    # Uncorrelated: one row decides for all outer rows.
    if not rows.shared:
        return Join(plan, any_row(rows.plan), kind, (), ())
    return join_on(plan, rows.plan, kind, rows.shared, _times(scope, rows, plan))


def _times(scope: Scope, rows: InnerRows, plan: LogicalPlan) -> tuple[Roles, Roles] | None:
    return None if bounded(plan) or bounded(rows.plan) else (time_roles(scope), rows.times)


def _whether_in(plan: LogicalPlan, tree: exp.Expr, negated: bool, binder: ExpressionBinder) -> LogicalPlan:
    # x may contain a subquery itself: (SELECT MAX(a) ..) IN (SELECT ..)
    plan, values = attach(plan, [binder.bind(part) for part in tested_values(tree)])
    rows = inner_rows(tree.args["query"], binder.scope, len(plan.schema), binder.context, filtered)
    rows = self_contained(rows, plan, span_of(tree))
    pairs = rows.pairs(values, tree, binder)
    times = _times(binder.scope, rows, plan)
    if not negated:
        return join_on(
            plan, rows.plan, JoinKind.SEMI, (*rows.shared, *(_equal(pair) for pair in pairs)), times
        )
    return _not_in(plan, rows, pairs, times)


def _equal(pair: tuple[Expression, Expression]) -> Call:
    return logical("equal", *pair)


def _not_in(
    plan: LogicalPlan,
    rows: InnerRows,
    pairs: Sequence[tuple[Expression, Expression]],
    times: tuple[Roles, Roles] | None,
) -> LogicalPlan:
    """Return NOT IN as an anti-join: a row passes when no comparison is TRUE or NULL. A NULL on either side
    rejects the row, unless no row correlates with it.
    """
    width = rows.width
    keyed = [key_pair(part, width) for part in rows.shared]
    may_be_null = any(value.nullable for pair in pairs for value in pair)
    # Without NULLs NOT IN is a plain anti-join.
    if not may_be_null:
        return join_on(
            plan, rows.plan, JoinKind.ANTI, (*rows.shared, *(_equal(pair) for pair in pairs)), times
        )
    # Several values or other conditions: the residual says "equal, or NULL on either side".
    if len(pairs) > 1 or None in keyed:
        return join_on(
            plan, rows.plan, JoinKind.ANTI, (*rows.shared, *(not_false(pair) for pair in pairs)), times
        )
    left, right = pairs[0]
    # One value: an anti-join by key, then a second one against one fact per key, whether it has a NULL.
    plan = join_on(plan, rows.plan, JoinKind.ANTI, (*rows.shared, _equal(pairs[0])))
    keys = [pair for pair in keyed if pair is not None]
    facts = null_facts(rows.plan, [key for _, key in keys], rows.own(right))
    wide, left_keys = with_keys(plan, [key for key, _ in keys])
    # the last column of facts, behind the outer columns
    holds_null = column(facts, len(facts.schema) - 1).remap(
        {len(facts.schema) - 1: len(wide.schema) + len(facts.schema) - 1}
    )
    residual = logical("or", holds_null, logical("is_null", left)) if left.nullable else holds_null
    return Join(wide, facts, JoinKind.ANTI, left_keys, tuple(range(len(facts.schema) - 1)), residual)
