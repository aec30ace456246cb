"""Subqueries that stand for a value: held as a node while an expression is bound, then joined to the rows
the expression reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.binder.relations.equi_keys import with_keys
from penstock.planner.binder.subqueries.dependent_join import with_domain
from penstock.planner.expressions.nodes import Column, Expression
from penstock.planner.logical.joins.join import Join, JoinKind
from penstock.planner.logical.plan import LogicalPlan


@dataclass(frozen=True)
class ScalarSubquery(Expression):
    """The ``value`` over the one row of ``plan`` whose ``keys`` equal ``outer``, NULLs where there is none;
    never leaves the binder.

    ``certain``: there always is such a row. ``domain``: the expressions whose different values
    ``OuterValues`` in the plan stand for.
    """

    outer: tuple[Expression, ...] = ()
    plan: LogicalPlan = None  # type: ignore[assignment]  # dataclass order: every node is built with it
    keys: tuple[int, ...] = ()
    value: Expression = None  # type: ignore[assignment]  # dataclass order: every node is built with it
    certain: bool = False
    domain: tuple[Expression, ...] = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.outer + self.domain

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, outer=children[: len(self.outer)], domain=children[len(self.outer) :])

    def __str__(self) -> str:
        return "(subquery)"


class Attached:
    """Rows with the subqueries of expressions joined to them one by one; columns are added at the end
    only.
    """

    def __init__(self, plan: LogicalPlan) -> None:
        self.plan = plan
        self._known: list[tuple[ScalarSubquery, int]] = []

    def over(self, expression: Expression) -> Expression:
        """Return an expression with its subqueries read from the joined columns."""
        return expression.transform(self._placed)

    def _placed(self, node: Expression) -> Expression:
        if not isinstance(node, ScalarSubquery):
            return node
        for other, offset in self._known:
            if replace(other, type=node.type, nullable=node.nullable, value=node.value) == node:
                return _moved(node, offset)
        wide, left_keys = with_keys(self.plan, node.outer)
        found = with_domain(node.plan, self.plan, node.domain)
        self.plan = Join(wide, found, JoinKind.INNER if node.certain else JoinKind.LEFT, left_keys, node.keys)
        self._known.append((node, len(wide.schema)))
        return _moved(node, len(wide.schema))


def attach(
    plan: LogicalPlan, expressions: Sequence[Expression]
) -> tuple[LogicalPlan, tuple[Expression, ...]]:
    """Return the plan with the subqueries of its expressions joined to it, columns added at its end only,
    and the expressions reading these.
    """
    attached = Attached(plan)
    changed = tuple(attached.over(expression) for expression in expressions)
    return attached.plan, changed


def _moved(node: ScalarSubquery, offset: int) -> Expression:
    return node.value.remap({i: i + offset for i in range(len(node.plan.schema))})


def column(plan: LogicalPlan, index: int, *, padded: bool = False) -> Column:
    """Return the column of a plan's rows; ``padded``: as it is behind a join that may pad it with NULLs."""
    field = plan.schema[index]
    return Column(field.type, field.nullable or padded, index=index, name=field.name)
