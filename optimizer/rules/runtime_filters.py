"""The keys of the side of a join that is loaded first prune the other side before its rows travel."""

from __future__ import annotations

from dataclasses import replace

from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.joins.join import BinaryJoin, JoinKind
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import BoundedInput, Scan
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign
from penstock.planner.logical.window_table import WindowTable

# The sides whose rows without a match are never seen.
PRUNABLE = {
    0: frozenset({JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI}),
    1: frozenset({JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI}),
}


def runtime_filters(plan: LogicalPlan) -> LogicalPlan:
    """Have the loaded side of each equi-join tell its keys, where rows of the other side that have none of
    them would come to nothing.

    Only where rows come as they were read: those of aggregates are few.
    """
    facts = PlanFacts()

    def rewrite(node: LogicalPlan) -> LogicalPlan:
        # Without an equality there is no key. A snapshot join's right side changes after it was loaded.
        if not isinstance(node, BinaryJoin) or isinstance(node, SnapshotJoin) or not node.left_keys:
            return node
        loaded = facts.bounded_ports(node)
        port = 1 - loaded[0] if loaded else None
        return (
            replace(node, pruned=port)
            if port is not None and node.kind in PRUNABLE[port] and _as_read(node.inputs[port], facts)
            else node
        )

    return plan.transform(rewrite)


def _as_read(node: LogicalPlan, facts: PlanFacts) -> bool:
    """Whether rows come from a scan, perhaps through joins with sides that are loaded first."""
    while not isinstance(node, Scan | BoundedInput):
        match node:
            case (
                Project(input=inner)
                | Filter(input=inner)
                | WatermarkAssign(input=inner)
                | ProcessingTime(input=inner)
                | WindowTable(input=inner)
            ):
                node = inner
            # The side that streams through the join.
            case BinaryJoin() if facts.bounded_ports(node):
                node = node.inputs[1 - facts.bounded_ports(node)[0]]
            case _:
                return False
    return True
