"""The keys of the side of a join that is loaded first prune the other side before its rows travel."""

from __future__ import annotations

from dataclasses import replace

from optimizer.properties import PlanFacts
from planner.logical import BoundedInput, Join, JoinKind, LogicalPlan, Scan
from planner.snapshot_join import SnapshotJoin

# The sides whose rows without a match are never seen.
_PRUNABLE = {
    0: frozenset({JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI}),
    1: frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI}),
}


def runtime_filters(plan: LogicalPlan) -> LogicalPlan:
    """Have the loaded side of each equi-join tell its keys, where rows of the other side that have none of them would come to nothing."""
    facts = PlanFacts()

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Join) or isinstance(node, SnapshotJoin) or not node.left_keys:
            return node
        loaded = facts.bounded_ports(node)
        if not loaded:
            return node
        port = 1 - loaded[0]
        reads = any(isinstance(below, Scan | BoundedInput) for below in node.inputs[port].walk())
        return replace(node, pruned=port) if reads and node.kind in _PRUNABLE[port] else node

    return plan.transform(rewrite)
