"""Edges: what each node requires of its inputs, and the cheapest exchange that satisfies it."""

from __future__ import annotations

from penstock.optimizer.properties.distribution import is_gathered_by, is_partitioned_by
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.aggregate import Aggregate, Phase, WindowAggregate
from penstock.planner.logical.distribution import (
    ALL,
    ANY,
    SINGLE,
    Broadcast,
    Edge,
    Partition,
    Requirement,
    Shuffle,
    by_keys,
)
from penstock.planner.logical.emit import Emit, EmitKind, final_keys
from penstock.planner.logical.join import Join
from penstock.planner.logical.late_rows import LateMark
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import Exchange, Limit, LogicalPlan, TopN, Union, WindowTable
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.temporal_join import TemporalJoin
from penstock.planner.logical.temporal_sort import TemporalSort
from penstock.planner.physical.parallelism import subtasks


def lay_edges(plan: LogicalPlan, parallelism: int, *, facts: PlanFacts | None = None) -> LogicalPlan:
    """Return the plan with an Exchange wherever rows must leave their subtask; where there is none, the edge
    is forward.

    With one subtask nothing moves. The side of a join that a hint wants copied goes to every subtask, so that
    the other side stays where it is.
    """
    if parallelism <= 1:
        return plan
    known = facts or PlanFacts()
    return plan.transform(lambda node: _lay(node, parallelism, known))


def requirements(node: LogicalPlan, facts: PlanFacts) -> tuple[Requirement, ...]:
    """Return what a node requires of each input."""
    match node:
        case Aggregate(phase=Phase.LOCAL) | WindowAggregate(phase=Phase.LOCAL):
            return (ANY,)
        case Aggregate(keys=keys) | WindowAggregate(keys=keys):
            return (by_keys(keys),)
        case Over(partition=keys) | PartitionTop(partition=keys) | MatchRecognize(partition=keys):
            return (by_keys(keys),)
        case Emit(kind=EmitKind.FINAL, input=inner):
            return (by_keys(final_keys(facts.upsert_key(inner), len(inner.schema))),)
        case Join():
            return _of_join(node, facts)
        case TemporalJoin(left_keys=left, right_keys=right):
            return by_keys(left), by_keys(right)
        case WindowTable(window=window) | LateMark(window=window) if window.merging:
            return (by_keys(window.partition_keys),)
        case Limit() | TopN() | TemporalSort():
            return (SINGLE,)
        case Sink():
            return (_of_sink(node, facts),)
    return (ANY,) * len(node.inputs)


def _of_join(node: Join, facts: PlanFacts) -> tuple[Requirement, ...]:
    copied = facts.copied(node)
    if copied is not None:
        return (ALL, ANY) if copied == 0 else (ANY, ALL)
    return by_keys(node.left_keys), by_keys(node.right_keys)


def _of_sink(node: Sink, facts: PlanFacts) -> Requirement:
    """Changes of one row must arrive in the order they were made, so they must meet; the client folds
    weights and needs no order.
    """
    if node.table is None or facts.insert_only(node.input) or not node.table.primary_key:
        return ANY
    names = {name.lower() for name in node.table.primary_key}
    return by_keys(
        tuple(i for i, field in enumerate(node.table.physical_fields) if field.name.lower() in names)
    )


def _lay(node: LogicalPlan, parallelism: int, facts: PlanFacts) -> LogicalPlan:
    if not node.inputs or isinstance(node, Exchange):
        return node
    wants = requirements(node, facts)
    if isinstance(node, Join | TemporalJoin | Union):
        return node.with_inputs(_lay_ports(node, wants, parallelism, facts))
    edge = _edge(node.inputs[0], wants[0], parallelism, isinstance(node, Sink))
    return node if edge is None else node.with_inputs((Exchange(node.inputs[0], edge), *node.inputs[1:]))


def _edge(
    child: LogicalPlan, want: Requirement, parallelism: int, meeting_is_enough: bool = False
) -> Edge | None:
    """Return the edge that gives one input what it wants; None when rows may stay where they are."""
    alone = subtasks(child, parallelism) == 1
    if want == ANY or alone:
        return None
    if want == SINGLE:
        return Partition(())
    satisfied = is_gathered_by(child, want.keys) if meeting_is_enough else is_partitioned_by(child, want.keys)
    return None if satisfied else Partition(want.keys)


def _lay_ports(
    node: LogicalPlan, wants: tuple[Requirement, ...], parallelism: int, facts: PlanFacts
) -> tuple[LogicalPlan, ...]:
    """Lay the edges of a node with several inputs, which all end in the same number of subtasks."""
    alone = [subtasks(child, parallelism) == 1 for child in node.inputs]
    if all(alone):
        return node.inputs
    if SINGLE in wants:
        return tuple(
            child if one else Exchange(child, Partition(()))
            for child, one in zip(node.inputs, alone, strict=True)
        )
    return tuple(
        _port(child, want, one, facts) for child, want, one in zip(node.inputs, wants, alone, strict=True)
    )


def _port(child: LogicalPlan, want: Requirement, alone: bool, facts: PlanFacts) -> LogicalPlan:
    """Lay the edge of one port. Changes of one task stay in one, for their order counts; new rows may be
    spread.
    """
    if want == ALL:
        return Exchange(child, Broadcast())
    if want == ANY:
        return (
            child if not alone else Exchange(child, Shuffle() if facts.insert_only(child) else Partition(()))
        )
    return (
        child if not alone and is_partitioned_by(child, want.keys) else Exchange(child, Partition(want.keys))
    )
