"""A projection over a projection is one projection."""

from __future__ import annotations

from collections import Counter

from penstock.planner.expressions.expression_properties import is_deterministic
from penstock.planner.expressions.nodes import Column, Literal, inline
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project


def merge_projects(plan: LogicalPlan) -> LogicalPlan:
    """Merge adjacent projections, unless that would compute something twice."""
    return plan.transform(_rewrite)


def _rewrite(node: LogicalPlan) -> LogicalPlan:
    match node:
        # SELECT y + 1 FROM (SELECT x * 2 AS y ..) becomes SELECT x * 2 + 1.
        case Project(input=Project() as below) if _computed_once(node, below):
            return Project(
                below.input, tuple(inline(e, below.expressions) for e in node.expressions), node.names
            )
    return node


def _computed_once(above: Project, below: Project) -> bool:
    """Whether every real computation below is read at most once above, and is deterministic."""
    reads = Counter(
        n.index for expression in above.expressions for n in expression.walk() if isinstance(n, Column)
    )
    for index, expression in enumerate(below.expressions):
        if not isinstance(expression, Column | Literal) and (
            reads[index] > 1 or not is_deterministic(expression)
        ):
            return False
    return True
