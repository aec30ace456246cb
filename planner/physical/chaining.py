"""Chaining: the number of subtasks of operators, and which of them share a task."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.connectors.registry import scan_parallelism, sink_parallelism
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.planner.logical.distribution import Edge, Forward, Partition
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.plan import LogicalPlan, ParallelNode
from penstock.planner.logical.scan import BoundedInput, Scan, Values
from penstock.planner.logical.sink import Sink
from penstock.planner.physical.operator_specs import AnyOperatorSpec


@dataclass(frozen=True, eq=False)
class OperatorVertex:
    """One operator of a job before chaining: its spec, its number of subtasks, and by port the input vertex
    and edge.
    """

    spec: AnyOperatorSpec
    parallelism: int
    inputs: tuple[tuple[OperatorVertex, Edge], ...] = ()


def chains_of(vertices: Sequence[OperatorVertex]) -> list[list[OperatorVertex]]:
    """Return the vertices grouped into chains. Vertices must come inputs first; chains are returned inputs
    first.

    A vertex joins the chain of its only input when the edge is forward and both have equally many subtasks.
    It must be the only reader of that input.
    """
    # how many vertices read each vertex
    readers: dict[int, int] = {}
    for vertex in vertices:
        for source, _ in vertex.inputs:
            readers[id(source)] = readers.get(id(source), 0) + 1
    chains: list[list[OperatorVertex]] = []
    chain_of: dict[int, list[OperatorVertex]] = {}
    for vertex in vertices:
        # a second reader would need the rows on an edge of its own
        if (
            has_one_input(vertex)
            and is_forward(vertex)
            and is_as_parallel(vertex)
            and readers[id(vertex.inputs[0][0])] == 1
        ):
            chain = chain_of[id(vertex.inputs[0][0])]
        else:
            chain = []
            chains.append(chain)
        chain.append(vertex)
        chain_of[id(vertex)] = chain
    return chains


def has_one_input(vertex: OperatorVertex) -> bool:
    """Whether a vertex has exactly one input. Sources begin chains, and operators with several ports begin
    theirs.
    """
    return len(vertex.inputs) == 1


def is_forward(vertex: OperatorVertex) -> bool:
    """Whether the edge of a vertex's only input is forward."""
    return isinstance(vertex.inputs[0][1], Forward)


def is_as_parallel(vertex: OperatorVertex) -> bool:
    """Whether a vertex has as many subtasks as its only input."""
    return vertex.parallelism == vertex.inputs[0][0].parallelism


def subtasks(node: LogicalPlan, parallelism: int) -> int:
    """Return the number of subtasks of a node: sources have all, literal rows and bounded results one. Below
    an exchange to one subtask it is one. A table may declare its own number, and a hint that of an operator:
    its exchanges have it.
    """
    match node:
        case Scan():
            return scan_parallelism(node.table) or parallelism
        case Sink(table=CatalogTable() as table) if (declared := sink_parallelism(table)) is not None:
            return declared
        # their rows are in the plan, or come from one stream of a backend
        case Values() | BoundedInput():
            return 1
        case Exchange(edge=Forward()):
            return subtasks(node.input, parallelism)
        # to a single subtask
        case Exchange(edge=Partition(keys=())):
            return 1
        case Exchange(targets=int() as targets):
            return targets
        case Exchange():
            return parallelism
    # a forward edge keeps the number; a join of unlike sides has exchanges on both
    return max(subtasks(child, parallelism) for child in node.inputs)


def lies_as_declared(node: LogicalPlan) -> bool:
    """Whether a node's rows lie over as many subtasks as a table declares for reading it, or a hint for an
    operator: no exchange has moved them since.
    """
    if isinstance(node, Scan):
        return scan_parallelism(node.table) is not None
    if isinstance(node, ParallelNode) and node.subtasks is not None:
        return True
    return not isinstance(node, Exchange) and any(map(lies_as_declared, node.inputs))
