"""Edges: what each node requires of its inputs, and the cheapest exchange that satisfies it."""

from __future__ import annotations

from penstock.optimizer.properties.distribution import is_gathered_by, is_partitioned_by
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.logical.distribution import (
    ALL,
    ANY,
    SINGLE,
    Broadcast,
    Edge,
    InputFacts,
    Partition,
    Requirement,
    Shuffle,
)
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.chaining import subtasks


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
    inputs = tuple(InputFacts(facts.insert_only(child), facts.upsert_key(child)) for child in node.inputs)
    return node.requires(inputs, facts.copied(node) if isinstance(node, BinaryJoin) else None)


def _lay(node: LogicalPlan, parallelism: int, facts: PlanFacts) -> LogicalPlan:
    # Sources need nothing, and an Exchange is what would be added.
    if not node.inputs or isinstance(node, Exchange):
        return node
    wants = requirements(node, facts)
    # Several inputs: their subtasks must be the same number.
    if isinstance(node, BinaryJoin | TemporalJoin | Union):
        return node.with_inputs(_lay_ports(node, wants, parallelism, facts))
    edge = _edge(node.inputs[0], wants[0], parallelism, isinstance(node, Sink))
    return node if edge is None else node.with_inputs((Exchange(node.inputs[0], edge), *node.inputs[1:]))


def _edge(
    child: LogicalPlan, want: Requirement, parallelism: int, meeting_is_enough: bool = False
) -> Edge | None:
    """Return the edge that gives one input what it wants; None when rows may stay where they are."""
    alone = subtasks(child, parallelism) == 1
    # One subtask has all keys already.
    if want == ANY or alone:
        return None
    # A partition by no column has one value: all rows go to one subtask.
    if want == SINGLE:
        return Partition(())
    # A sink has no keyed state: rows of a key need only meet. State moves by the hash of exactly its keys.
    satisfied = is_gathered_by(child, want.keys) if meeting_is_enough else is_partitioned_by(child, want.keys)
    return None if satisfied else Partition(want.keys)


def _lay_ports(
    node: LogicalPlan, wants: tuple[Requirement, ...], parallelism: int, facts: PlanFacts
) -> tuple[LogicalPlan, ...]:
    """Lay the edges of a node with several inputs, which all end in the same number of subtasks."""
    alone = [subtasks(child, parallelism) == 1 for child in node.inputs]
    if all(alone):
        return node.inputs
    # One port needs all rows in one subtask, so the others go there, too.
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
    # The side that a hint wants copied.
    if want == ALL:
        return Exchange(child, Broadcast())
    if want == ANY:
        return (
            child if not alone else Exchange(child, Shuffle() if facts.insert_only(child) else Partition(()))
        )
    return (
        child if not alone and is_partitioned_by(child, want.keys) else Exchange(child, Partition(want.keys))
    )
