"""What FROM gives while its joins are bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.planner.binder.scope import Scope
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.plan import LogicalPlan


@dataclass(frozen=True)
class FromClause:
    """What FROM gives: a plan and the columns in reach. ``halves``: the sides of an inner join that
    further conditions may settle by time.
    """

    plan: LogicalPlan
    scope: Scope
    halves: Halves | None = None


@dataclass(frozen=True)
class Halves:
    """The sides of an inner join, its conditions over left ++ right, and what hints say of it."""

    left: FromClause
    right: FromClause
    parts: tuple[Expression, ...]
    hinted: Hinted


Combine = Callable[[tuple[Expression, ...]], FromClause]
"""Joins the sides it knows on conditions over left ++ right."""


JoinSides = Callable[[FromClause, FromClause, tuple[Expression, ...]], FromClause]
"""Joins two sides on conditions over left ++ right."""


Hinted = Callable[[LogicalPlan], LogicalPlan]
"""Writes into a join what hints say of its sides."""
