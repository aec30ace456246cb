"""Chaining: how many subtasks operators have, and which share a task."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.frozen_dataclass import dataclass
from penstock.planner.logical.distribution import Edge, Forward, Partition
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput, Scan, Values
from penstock.planner.physical.operator_specs import AnyOperatorSpec


@dataclass(frozen=True, eq=False)
class OperatorVertex:
    """One operator of a job before it is chained: its spec, its number of subtasks, and by port the vertex
    and edge its rows come from.
    """

    spec: AnyOperatorSpec
    parallelism: int
    inputs: tuple[tuple[OperatorVertex, Edge], ...] = ()


def chains_of(vertices: Sequence[OperatorVertex]) -> list[list[OperatorVertex]]:
    """Return the vertices (given inputs first) grouped into chains, inputs first.

    A vertex joins the chain of its input when that is its only input, the edge between is forward, both have
    as many subtasks, and it alone reads it.
    """
    readers: dict[int, int] = {}
    for vertex in vertices:
        for source, _ in vertex.inputs:
            readers[id(source)] = readers.get(id(source), 0) + 1
    chains: list[list[OperatorVertex]] = []
    chain_of: dict[int, list[OperatorVertex]] = {}
    for vertex in vertices:
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
    """Whether a vertex takes rows from one place; sources begin chains, and operators with several ports
    head them.
    """
    return len(vertex.inputs) == 1


def is_forward(vertex: OperatorVertex) -> bool:
    """Whether the rows of a vertex's only input stay in their subtask."""
    return isinstance(vertex.inputs[0][1], Forward)


def is_as_parallel(vertex: OperatorVertex) -> bool:
    """Whether a vertex has as many subtasks as its only input."""
    return vertex.parallelism == vertex.inputs[0][0].parallelism


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
