"""Subqueries that stand for a value: held as a node while an expression is bound, then joined to the rows the expression reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.binder_joins import with_keys
from planner.expressions import Column, Expression
from planner.logical import Join, JoinKind, LogicalPlan


@dataclass(frozen=True)
class ScalarSubquery(Expression):
    """The ``value`` over the one row of ``plan`` whose ``keys`` equal ``outer``, NULLs where there is none; never leaves the binder.

    ``certain``: there always is such a row.
    """

    outer: tuple[Expression, ...] = ()
    plan: LogicalPlan = None  # type: ignore[assignment]  # dataclass order: every node is built with it
    keys: tuple[int, ...] = ()
    value: Expression = None  # type: ignore[assignment]  # dataclass order: every node is built with it
    certain: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.outer

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, outer=children)

    def __str__(self) -> str:
        return "(subquery)"


def attach(plan: LogicalPlan, expressions: Sequence[Expression]) -> tuple[LogicalPlan, tuple[Expression, ...]]:
    """Return the plan with the subqueries of its expressions joined to it, columns added at its end only, and the expressions reading these."""
    known: list[tuple[ScalarSubquery, int]] = []

    def placed(node: Expression) -> Expression:
        nonlocal plan
        if not isinstance(node, ScalarSubquery):
            return node
        for other, offset in known:
            if replace(other, type=node.type, nullable=node.nullable, value=node.value) == node:
                return _moved(node, offset)
        wide, left_keys = with_keys(plan, node.outer)
        plan = Join(wide, node.plan, JoinKind.INNER if node.certain else JoinKind.LEFT, left_keys, node.keys)
        known.append((node, len(wide.schema)))
        return _moved(node, len(wide.schema))

    changed = tuple(expression.transform(placed) for expression in expressions)
    return plan, changed


def _moved(node: ScalarSubquery, offset: int) -> Expression:
    return node.value.remap({i: i + offset for i in range(len(node.plan.schema))})


def column(plan: LogicalPlan, index: int, *, padded: bool = False) -> Column:
    """Return the column of a plan's rows; ``padded``: as it is behind a join that may pad it with NULLs."""
    field = plan.schema[index]
    return Column(field.type, field.nullable or padded, index=index, name=field.name)
