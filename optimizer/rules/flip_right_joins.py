"""RIGHT joins become LEFT joins, which is all the streaming engine needs to know."""

from __future__ import annotations

from optimizer.substitution import select_columns
from planner.logical import Join, JoinKind, LogicalPlan


def flip_right_joins(plan: LogicalPlan) -> LogicalPlan:
    """Swap the sides of each RIGHT join and put the columns back in order above it."""
    return plan.transform(_rewrite)


def _rewrite(node: LogicalPlan) -> LogicalPlan:
    if not isinstance(node, Join) or node.kind is not JoinKind.RIGHT:
        return node
    left, right = len(node.left.schema), len(node.right.schema)
    positions = {i: i + right for i in range(left)} | {left + i: i for i in range(right)}
    residual = None if node.residual is None else node.residual.remap(positions)
    flipped = Join(node.right, node.left, JoinKind.LEFT, node.right_keys, node.left_keys, residual)
    return select_columns(flipped, [positions[i] for i in range(left + right)])
