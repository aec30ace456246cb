"""Conditions on the rows of a result, as EXPLAIN WHY ROW (conditions) has them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.planner.binder.binder import Binder
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.statements.nodes import SqlExpression


def bind_row_conditions(
    binder: Binder, plan: LogicalPlan, conditions: Sequence[SqlExpression]
) -> tuple[Expression, ...]:
    """Return conditions over the output columns of a plan. Raises SQL-10xx for names that are no columns of
    it, SQL-1103 for what is no condition.
    """
    scope = Scope.of(Relation(plan, plan.schema.fields), None)
    of_rows = ExpressionBinder(scope, binder.context(), "ROW")
    return tuple(of_rows.condition(condition.tree) for condition in conditions)
