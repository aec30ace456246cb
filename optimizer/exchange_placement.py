"""Edges: what each node requires of its inputs, and the cheapest exchange that satisfies it."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.connectors.common_options import SCAN_PARALLELISM
from penstock.catalog.connectors.registry import scan_parallelism, sink_parallelism
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
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
from penstock.planner.logical.plan import LogicalPlan, ParallelNode
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.logical.recursive_query import RecursiveQuery
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Sort
from penstock.planner.physical.chaining import lies_as_declared, subtasks


def lay_edges(plan: LogicalPlan, parallelism: int, *, facts: PlanFacts | None = None) -> LogicalPlan:
    """Return the plan with an Exchange wherever rows must leave their subtask; where there is none, the edge
    is forward. Raise SQL-1407 when one table is read by two numbers of subtasks.

    With one subtask nothing moves. The side of a join that a hint wants copied goes to every subtask, so that
    the other side stays where it is. Where a table declares its own number of subtasks, or a hint that of an
    operator, what is row by row above it has that number, too. An exchange then spreads the rows over the
    subtasks of the job. A hint for an operator that needs all rows in one subtask is removed.
    """
    _refuse_unlike_scans(plan)
    if parallelism <= 1 and not any(map(_declares, plan.walk())):
        return plan
    known = facts or PlanFacts()
    return plan.transform(lambda node: _lay(node, parallelism, known))


def _declares(node: LogicalPlan) -> bool:
    if isinstance(node, Sink):
        return node.table is not None and sink_parallelism(node.table) is not None
    if isinstance(node, ParallelNode):
        return node.subtasks is not None
    return isinstance(node, Scan) and scan_parallelism(node.table) is not None


def _refuse_unlike_scans(plan: LogicalPlan) -> None:
    # scans of one table with the same options share one source, which has one number of subtasks
    wanted: dict[str, int | None] = {}
    for node in plan.walk():
        if isinstance(node, Scan):
            number = scan_parallelism(node.table)
            if wanted.setdefault(node.table.name, number) != number:
                raise PenstockError(
                    "SQL-1407",
                    f"table {node.table.name} is read with two values of '{SCAN_PARALLELISM}' in one job",
                    hint="give all its readers the same OPTIONS hint, or set the option of the table",
                )


def requirements(node: LogicalPlan, facts: PlanFacts) -> tuple[Requirement, ...]:
    """Return what a node requires of each input."""
    inputs = tuple(InputFacts(facts.insert_only(child), facts.upsert_key(child)) for child in node.inputs)
    return node.requires(inputs, facts.copied(node) if isinstance(node, BinaryJoin) else None)


@dataclass(frozen=True)
class _Subtasks:
    """The numbers of subtasks around one node: those of the job, and those that a hint asks of its operator,
    if any.
    """

    job: int
    hinted: int | None

    @property
    def own(self) -> int:
        """The subtasks of the operator."""
        return self.hinted or self.job

    def must_move(self, child: LogicalPlan) -> bool:
        """Whether rows lie over another number of subtasks than the operator has: because a table or a hint
        declares theirs, or a hint the operator's.
        """
        return (self.hinted is not None or lies_as_declared(child)) and subtasks(child, self.job) != self.own

    def exchange(self, child: LogicalPlan, edge: Edge) -> Exchange:
        """Return the exchange into the operator."""
        return Exchange(child, edge, self.hinted)


def _lay(node: LogicalPlan, parallelism: int, facts: PlanFacts) -> LogicalPlan:
    # Sources need nothing, and an Exchange is what would be added.
    if not node.inputs or isinstance(node, Exchange):
        return node
    wants = requirements(node, facts)
    hint = node.subtasks if isinstance(node, ParallelNode) else None
    # One subtask for all rows: the hint has no effect, of which a note tells.
    if hint is not None and SINGLE in wants:
        assert isinstance(node, ParallelNode)
        node, hint = replace(node, subtasks=None), None
    numbers = _Subtasks(parallelism, None if hint is None else hint.subtasks)
    # Several inputs: their subtasks must be the same number.
    several = isinstance(node, ProcessTable) and len(node.inputs) > 1
    if several or isinstance(node, BinaryJoin | TemporalJoin | Union | RecursiveQuery):
        return node.with_inputs(_lay_ports(node, wants, numbers, facts))
    if isinstance(node, Sink):
        edge = _sink_edge(node, wants[0], parallelism, facts)
    else:
        edge = _edge(node, wants[0], numbers, facts)
    return (
        node if edge is None else node.with_inputs((numbers.exchange(node.inputs[0], edge), *node.inputs[1:]))
    )


def _edge(node: LogicalPlan, want: Requirement, numbers: _Subtasks, facts: PlanFacts) -> Edge | None:
    """Return the edge that gives the one input of a node what it wants; None when rows may stay where they
    are.
    """
    child = node.inputs[0]
    alone = subtasks(child, numbers.job) == 1
    moves = numbers.must_move(child)
    if want == ANY:
        # what is row by row stays with its source, and a Sort has no operator
        stays = numbers.hinted is None and (node.is_row_wise or isinstance(node, Sort))
        return _spread(child, facts) if moves and not stays else None
    # One subtask has all keys already; that of a source that declares one is left for the job's subtasks.
    if alone and not (moves and want != SINGLE):
        return None
    # A partition by no column has one value: all rows go to one subtask.
    if want == SINGLE:
        return Partition(())
    # State moves by the hash of exactly its keys.
    return None if not moves and is_partitioned_by(child, want.keys) else Partition(want.keys)


def _sink_edge(sink: Sink, want: Requirement, parallelism: int, facts: PlanFacts) -> Edge | None:
    """Return the edge into a sink, to as many subtasks as its table declares."""
    child = sink.input
    have = subtasks(child, parallelism)
    declared = None if sink.table is None else sink_parallelism(sink.table)
    # rows of a source with its own number go to as many as the job has, unless one must write them all
    moves = _Subtasks(parallelism, None).must_move(child)
    wanted = declared or (parallelism if moves and want != SINGLE else have)
    if want == SINGLE:
        return None if have == 1 else Partition(())
    if wanted == 1:
        return None if have == 1 else Partition(())
    if want == ANY:
        return None if have == wanted else _spread(child, facts)
    # A sink has no keyed state: rows of a key need only meet.
    stays = have == wanted and (have == 1 or is_gathered_by(child, want.keys))
    return None if stays else Partition(want.keys)


def _spread(child: LogicalPlan, facts: PlanFacts) -> Edge:
    """Return the edge that spreads rows over other subtasks: new rows in turn, changes by the key that
    identifies their row, for their order counts. Changes without a key go to one subtask.
    """
    if facts.insert_only(child):
        return Shuffle()
    return Partition(facts.upsert_key(child) or ())


def _lay_ports(
    node: LogicalPlan, wants: tuple[Requirement, ...], numbers: _Subtasks, facts: PlanFacts
) -> tuple[LogicalPlan, ...]:
    """Lay the edges of a node with several inputs, which all end in the same number of subtasks."""
    alone = [subtasks(child, numbers.job) == 1 for child in node.inputs]
    # those of sources that declare one subtask are spread, unless the job has one
    if all(alone) and not any(map(numbers.must_move, node.inputs)):
        return node.inputs
    # One port needs all rows in one subtask, so the others go there, too.
    if SINGLE in wants:
        return tuple(
            child if one else Exchange(child, Partition(()))
            for child, one in zip(node.inputs, alone, strict=True)
        )
    return tuple(_port(child, want, numbers, facts) for child, want in zip(node.inputs, wants, strict=True))


def _port(child: LogicalPlan, want: Requirement, numbers: _Subtasks, facts: PlanFacts) -> LogicalPlan:
    """Lay the edge of one port. Changes of one task stay in one, for their order counts; new rows may be
    spread.
    """
    stays = subtasks(child, numbers.job) == numbers.own
    # The side that a hint wants copied.
    if want == ALL:
        return numbers.exchange(child, Broadcast())
    if want == ANY and not stays:
        # literal rows and results of a backend were in one task
        spreads = lies_as_declared(child) or facts.insert_only(child)
        return numbers.exchange(child, _spread(child, facts) if spreads else Partition(()))
    if want == ANY:
        return child
    if stays and is_partitioned_by(child, want.keys):
        return child
    return numbers.exchange(child, Partition(want.keys))
