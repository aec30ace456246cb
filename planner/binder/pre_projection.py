"""What a SELECT reads under its list may hold subqueries: keys of groups, arguments of aggregates and of
calls with OVER.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.schema import Field, without_event_time
from penstock.planner.binder.subqueries.scalar_placeholder import Attached
from penstock.planner.binder.subqueries.semi_joins import joins_bounded
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.plan import LogicalPlan


class Beneath:
    """The rows of a SELECT, joined to the subqueries that what it reads under its list holds."""

    def __init__(self, plan: LogicalPlan, fields: Sequence[Field]) -> None:
        self._bottom = plan
        self._fields = fields
        self._attached = Attached(plan)

    def over(self, expression: Expression) -> Expression:
        """Return an expression with its subqueries read from columns joined at the rows' end."""
        return self._attached.over(expression)

    def rows(self) -> tuple[LogicalPlan, Sequence[Field]]:
        """Return the rows and their fields as they are now."""
        plan = self._attached.plan
        if plan is self._bottom:
            return plan, self._fields
        known = self._fields if joins_bounded(plan, self._bottom) else without_event_time(tuple(self._fields))
        added = (Field(f.name, f.type, f.nullable) for f in plan.schema.fields[len(known) :])
        return plan, [*known, *added]
