"""The dataflow graph of a job as facts: its chains of operators, and the edges between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.frozen_dataclass import dataclass
from penstock.client.monitoring.job_facts import JobFacts, OperatorStatus
from penstock.planner.logical.distribution import Broadcast, Edge, Forward, Partition

if TYPE_CHECKING:
    from penstock.engine.job.job import Job
    from penstock.planner.physical.operator_specs import Chain, JobGraph


@dataclass(frozen=True)
class ChainFacts:
    """One chain: operators that share a task. Before the first deployment its operators have no figures."""

    chain: int
    name: str
    parallelism: int
    is_source: bool
    operators: tuple[OperatorStatus, ...]


@dataclass(frozen=True)
class EdgeFacts:
    """An edge between two chains. ``kind``: forward, partition, broadcast or shuffle; ``columns``: the keys
    of a partition, none where all rows go to one subtask.
    """

    source: int
    target: int
    port: int
    kind: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class GraphFacts:
    """The graph of the current deployment."""

    chains: tuple[ChainFacts, ...]
    edges: tuple[EdgeFacts, ...]


def graph_facts(job: Job, facts: JobFacts) -> GraphFacts:
    """Return the graph of a job, each operator with the figures of ``facts``."""
    graph = job.graph
    if graph is None:
        return GraphFacts((), ())
    by_id = {operator.operator_id: operator for operator in facts.operators}
    return GraphFacts(
        tuple(_chain(chain, by_id) for chain in graph.chains),
        tuple(
            EdgeFacts(
                edge.source, edge.target, edge.port, _kind(edge.edge), _columns(graph, edge.source, edge.edge)
            )
            for edge in graph.edges
        ),
    )


def _chain(chain: Chain, figures: dict[str, OperatorStatus]) -> ChainFacts:
    operators = tuple(
        figures.get(spec.operator_id)
        or _without_figures(spec.operator_id, spec.name, chain, first=index == 0)
        for index, spec in enumerate(chain.operators)
    )
    return ChainFacts(chain.chain_id, chain.name, chain.parallelism, chain.is_source, operators)


def _without_figures(operator_id: str, name: str, chain: Chain, *, first: bool) -> OperatorStatus:
    """Return an operator whose tasks are not deployed."""
    nothing = (0, 0, 0, 0, 0.0, 0.0, 0.0, None, None, 0, 0, 0, 0, 0, 0, None, None)
    return OperatorStatus(
        operator_id, name, chain.chain_id, first and chain.is_source, chain.parallelism, *nothing
    )


def _kind(edge: Edge) -> str:
    match edge:
        case Forward():
            return "forward"
        case Partition():
            return "partition"
        case Broadcast():
            return "broadcast"
    return "shuffle"


def _columns(graph: JobGraph, source: int, edge: Edge) -> tuple[str, ...]:
    if not isinstance(edge, Partition):
        return ()
    chain = next(chain for chain in graph.chains if chain.chain_id == source)
    names = chain.operators[-1].schema.names
    return tuple(names[key] for key in edge.keys)
