"""Equalities between the two sides of a join: which columns of each are compared, computed where they are
no columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.planner.expressions.nodes import Call, Column, Expression
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project


def key_pair(part: Expression, width: int) -> tuple[Expression, Expression] | None:
    """Return the (left, right) sides of an equality between the two inputs, the right one over its own
    columns, or ``None``.
    """
    if not isinstance(part, Call) or part.function != "equal":
        return None
    first, second = part.args
    for left, right in ((first, second), (second, first)):
        mine, theirs = left.columns(), right.columns()
        if mine and theirs and max(mine) < width <= min(theirs):
            return left, right.remap({i: i - width for i in theirs})
    return None


def with_keys(plan: LogicalPlan, keys: Sequence[Expression]) -> tuple[LogicalPlan, tuple[int, ...]]:
    """Return the plan with keys that are no columns computed at its end, and the keys' positions."""
    fields = plan.schema.fields
    expressions: list[Expression] = [
        Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)
    ]
    names = [f.name for f in fields]
    positions = []
    for key in keys:
        if isinstance(key, Column):
            positions.append(key.index)
            continue
        positions.append(len(expressions))
        expressions.append(key)
        names.append(f"key{len(positions)}")
    if len(expressions) == len(fields):
        return plan, tuple(positions)
    return Project(plan, tuple(expressions), tuple(names)), tuple(positions)
