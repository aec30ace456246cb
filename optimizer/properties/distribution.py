"""How a node's rows lie over its subtasks: by which columns' hash they were sent, if by any."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.planner.expressions.nodes import Column
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.distribution import Forward, Partition
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.join import Join, JoinKind
from penstock.planner.logical.late_rows import LateMark
from penstock.planner.logical.lookup_join import LookupJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import (
    Exchange,
    Filter,
    LogicalPlan,
    Project,
    Sink,
    Union,
    WatermarkAssign,
    WindowTable,
)
from penstock.planner.logical.processing_time import ProcessingTime
from penstock.planner.logical.temporal_join import TemporalJoin
from penstock.planner.logical.unnest import Unnest

Partitioning = frozenset[tuple[int, ...]]
"""Ordered key lists; rows went to the owner of the hash of each of them (several, when a join made columns
equal).
"""

_NONE: Partitioning = frozenset()


def partitioning(node: LogicalPlan) -> Partitioning:
    """Return the key lists by whose hash a node's rows lie, derived from the exchanges below it."""
    match node:
        case Exchange(edge=Partition(keys=keys)):
            return frozenset({keys}) if keys else _NONE
        case (
            Exchange(edge=Forward())
            | Filter()
            | WatermarkAssign()
            | WindowTable()
            | LateMark()
            | Over()
            | PartitionTop()
            | Emit()
            | Sink()
        ):
            return partitioning(node.inputs[0])
        case ProcessingTime(input=inner, time_column=time):
            return frozenset(keys for keys in partitioning(inner) if time not in keys)
        case Unnest(input=inner, keep=keep):
            return _renamed(partitioning(inner), {old: [new] for new, old in enumerate(keep)})
        case Project():
            return _renamed(partitioning(node.input), _places(node))
        case Aggregate(keys=keys) | WindowAggregate(keys=keys):
            return _renamed(partitioning(node.input), {key: [i] for i, key in enumerate(keys)})
        case MatchRecognize(partition=keys, all_rows=all_rows):
            below = partitioning(node.input)
            return below if all_rows else _renamed(below, {key: [i] for i, key in enumerate(keys)})
        case Join():
            return _of_join(node)
        case TemporalJoin(left=left) | LookupJoin(left=left):
            return partitioning(left)
        case Union(branches=branches):
            found = [partitioning(branch) for branch in branches]
            return frozenset.intersection(*found)
    return _NONE


def _places(node: Project) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for index, expression in enumerate(node.expressions):
        if isinstance(expression, Column):
            places.setdefault(expression.index, []).append(index)
    return places


def _renamed(known: Partitioning, places: dict[int, list[int]]) -> Partitioning:
    return frozenset(
        tuple(places[key][0] for key in keys) for keys in known if all(key in places for key in keys)
    )


def _of_join(node: Join) -> Partitioning:
    """Rows of the preserved side keep their place, and where rows only come in pairs the other side's equal
    keys say the same.

    State moves by the join's keys when it is restored, and where a side is copied the other's rows did not
    lie by them before.
    """
    if node.copied is not None:
        return _NONE
    width = len(node.left.schema)
    left = partitioning(node.left)
    right = frozenset(tuple(key + width for key in keys) for keys in partitioning(node.right))
    match node.kind:
        case JoinKind.INNER:
            return left | right
        case JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI:
            return left
        case JoinKind.RIGHT:
            return right
    return _NONE


def is_partitioned_by(node: LogicalPlan, keys: Sequence[int]) -> bool:
    """Return whether rows lie by exactly these keys in this order: what state by key group needs, for it
    moves by the same hash.
    """
    return tuple(keys) in partitioning(node)


def is_gathered_by(node: LogicalPlan, keys: Sequence[int]) -> bool:
    """Return whether rows with equal keys meet in one subtask: rows that lie by some of the keys do."""
    return any(set(known) <= set(keys) for known in partitioning(node))
