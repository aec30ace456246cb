"""How many subtasks each node of a plan gets, read off its leaves and edges."""

from __future__ import annotations

from penstock.planner.logical.distribution import Forward, Partition
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput, Scan, Values


def subtasks(node: LogicalPlan, parallelism: int) -> int:
    """Return the number of subtasks of a node: sources have all, literal rows and bounded results one, and
    an exchange to one task makes it one.
    """
    match node:
        case Scan():
            return parallelism
        case Values() | BoundedInput():
            return 1
        case Exchange(edge=Forward()):
            return subtasks(node.input, parallelism)
        case Exchange(edge=Partition(keys=())):
            return 1
        case Exchange():
            return parallelism
    return max(subtasks(child, parallelism) for child in node.inputs)
