"""The job graph of a first deployment with history: chains that begin at a source are replaced by chains that
load its rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from penstock.catalog.connectors.spark import SPARK
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.planner.logical.operator_facts import DerivedFacts, SettingReader
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.scan import Scan, scan_of
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import TopN
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.physical.operator_specs import (
    AnyOperatorSpec,
    Chain,
    ChainEdge,
    FinishedSplits,
    HistorySource,
    JobGraph,
    OperatorSpec,
)
from penstock.planner.physical.physical_planner import plan_job

Positions = Callable[[Scan], tuple[str, ...]]


@dataclass(frozen=True)
class Loaded:
    """A part of a plan to load: its operators in the job, the plan ``rows`` for a backend,
    and the operators of event time.

    ``few`` is a plan of fewer rows. It suffices when the only reader keeps the first rows of a partition or
    of an order.
    """

    operators: tuple[AnyOperatorSpec, ...]
    rows: LogicalPlan
    few: LogicalPlan
    timing: tuple[AnyOperatorSpec, ...]


def loaded(
    live: LogicalPlan,
    few: LogicalPlan,
    timing: LogicalPlan | None,
    facts: DerivedFacts,
    settings: SettingReader,
) -> Loaded:
    """Return how a part of a plan is loaded."""
    timed = () if timing is None else _specs(timing, facts, settings)
    # timing ends with its watermark assigner; without one there is none
    last = next(
        (position for position, spec in enumerate(timed) if isinstance(spec.node, WatermarkAssign)), -1
    )
    return Loaded(_specs(live, facts, settings), live, few, timed[: last + 1])


def _specs(plan: LogicalPlan, facts: DerivedFacts, settings: SettingReader) -> tuple[AnyOperatorSpec, ...]:
    # a part is row-wise, so its operators are one chain; the sink at its end is only a stand-in
    (chain,) = plan_job(Sink(plan, None), facts, parallelism=1, settings=settings).chains
    return chain.operators[:-1]


def history_graph(graph: JobGraph, parts: Sequence[Loaded], backend: str, positions: Positions) -> JobGraph:
    """Return the job graph of the first deployment. Operators with state keep their ids of ``graph``, so that
    ``graph`` resumes from its checkpoint.

    ``positions`` returns the existing splits of a source, all of which are read.
    """
    # ask for the splits of each source once: several parts may read it
    known: dict[str, tuple[str, ...]] = {}
    for part in parts:
        source = part.operators[0]
        assert isinstance(source.node, Scan)
        if source.operator_id not in known:
            known[source.operator_id] = positions(source.node)
    by_last = {part.operators[-1].operator_id: part for part in parts}
    chains, edges = [], list(graph.edges)
    for chain in graph.chains:
        # the last operator of a chain that ends a loaded part; what follows it stays
        position = next(
            (i for i in reversed(range(len(chain.operators))) if chain.operators[i].operator_id in by_last),
            None,
        )
        if position is None:
            chains.append(chain)
            continue
        part = by_last[chain.operators[position].operator_id]
        # operators behind the loaded part keep their ids, and so their state
        spec = _spec(part, _readers(graph, chain, position), backend, known)
        chains.append(replace(chain, operators=(spec, *chain.operators[position + 1 :])))
        # the new source has no inputs
        edges = [edge for edge in edges if edge.target != chain.chain_id]
    return _numbered(*_needed(chains, edges), known, graph)


def _spec(
    part: Loaded, readers: Sequence[AnyOperatorSpec], backend: str, known: Mapping[str, tuple[str, ...]]
) -> AnyOperatorSpec:
    last, table = part.operators[-1], scan_of(part.rows).table
    # with a second reader the other one needs all rows
    first_only = len(readers) == 1 and isinstance(readers[0].node, PartitionTop | TopN)
    plan = part.few if first_only else part.rows
    splits = known[part.operators[0].operator_id]
    # None: read by our own operators
    reader = None if backend == SPARK and _hands_over(plan) else backend
    history = HistorySource(plan, reader, splits, part.operators, part.timing)
    # h-: the job that follows has no such operator, so its state is not restored
    return OperatorSpec(f"h-{last.operator_id}", f"history of {table.name}", last.schema, history)


def _hands_over(plan: LogicalPlan) -> bool:
    """Whether a backend would only pass rows through. Our own readers of files are several times faster than
    rows from Spark.
    """
    while isinstance(plan, Project | Filter | WatermarkAssign):
        plan = plan.input
    return isinstance(plan, Scan)


def _readers(graph: JobGraph, chain: Chain, position: int) -> list[AnyOperatorSpec]:
    if position + 1 < len(chain.operators):
        return [chain.operators[position + 1]]
    by_id = {other.chain_id: other for other in graph.chains}
    return [by_id[edge.target].operators[0] for edge in graph.outputs_of(chain.chain_id)]


def _needed(chains: list[Chain], edges: list[ChainEdge]) -> tuple[list[Chain], list[ChainEdge]]:
    """Drop chains whose rows have no reader any more."""
    # dropping a chain may leave its inputs without readers
    while True:
        read = {edge.source for edge in edges}
        idle = {
            chain.chain_id
            for chain in chains
            if chain.chain_id not in read and not isinstance(chain.operators[-1].node, Sink)
        }
        if not idle:
            return chains, edges
        chains = [chain for chain in chains if chain.chain_id not in idle]
        edges = [edge for edge in edges if edge.target not in idle]


def _numbered(
    chains: list[Chain], edges: list[ChainEdge], known: Mapping[str, tuple[str, ...]], graph: JobGraph
) -> JobGraph:
    """Renumber the chains. Chains that only hold the positions of sources come last."""
    number_of = {chain.chain_id: number for number, chain in enumerate(chains)}
    made = [replace(chain, chain_id=number_of[chain.chain_id]) for chain in chains]
    sources: list[AnyOperatorSpec] = [
        OperatorSpec(source, "position behind the history", Schema(()), FinishedSplits(splits))
        for source, splits in known.items()
    ]
    # they have the ids of the sources, so the job continues behind these splits
    made += [Chain(len(made) + i, (spec,), 1) for i, spec in enumerate(sources)]
    moved = tuple(
        replace(edge, source=number_of[edge.source], target=number_of[edge.target]) for edge in edges
    )
    return JobGraph(tuple(made), moved, graph.max_parallelism)
