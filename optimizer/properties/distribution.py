"""How a node's rows lie over its subtasks: by which columns' hash they were sent, if by any."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.planner.logical.distribution import Partitioning
from penstock.planner.logical.plan import LogicalPlan


def partitioning(node: LogicalPlan) -> Partitioning:
    """Return the key lists by whose hash a node's rows lie, derived from the exchanges below it."""
    return node.partitioning(tuple(map(partitioning, node.inputs)))


def is_partitioned_by(node: LogicalPlan, keys: Sequence[int]) -> bool:
    """Return whether rows lie by exactly these keys in this order: what state by key group needs, for it
    moves by the same hash.
    """
    return tuple(keys) in partitioning(node)


def is_gathered_by(node: LogicalPlan, keys: Sequence[int]) -> bool:
    """Return whether rows with equal keys meet in one subtask: rows that lie by some of the keys do."""
    return any(set(known) <= set(keys) for known in partitioning(node))
