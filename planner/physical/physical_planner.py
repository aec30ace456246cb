"""The physical planner: a logical plan with exchanges becomes a job graph of operators with stable ids,
fused, shared and chained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.catalog.errors import Kind, PenstockError
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.distribution import Edge, Forward
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.operator_facts import DerivedFacts, SettingReader
from penstock.planner.logical.plan import LogicalPlan, ParallelNode
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.logical.recursive_query import RecursiveQuery
from penstock.planner.logical.sink import Sink, StatementSet
from penstock.planner.logical.sort import Limit, Sort
from penstock.planner.logical.time_attributes import CurrentWatermark, WatermarkAssign
from penstock.planner.physical.chaining import OperatorVertex, chains_of, subtasks
from penstock.planner.physical.operator_spec_builder import calc_of, fused_filter, spec_of, with_columns_read
from penstock.planner.physical.operator_specs import (
    DEFAULT_MAX_PARALLELISM,
    AnyOperatorSpec,
    Chain,
    ChainEdge,
    JobGraph,
)
from penstock.planner.physical.plan_digest import PlanDigests
from penstock.planner.physical.recursive_term import plan_recursion
from penstock.planner.physical.runtime_filter import runtime_filter, skipping
from penstock.planner.physical.state_compatibility import PlanCompatibility, derive_compatibility
from penstock.planner.physical.window_best_filter import window_best_filter


def plan_job(
    plan: LogicalPlan,
    facts: DerivedFacts,
    *,
    parallelism: int,
    settings: SettingReader,
    max_parallelism: int = DEFAULT_MAX_PARALLELISM,
) -> JobGraph:
    """Return the job graph of an optimized plan with exchanges for ``parallelism``.

    Equal subplans run once. A Sort under a Sink has no operator: the client sorts the final rows. Raise
    SQL-1402 when there are more subtasks than key groups.
    """
    if not 1 <= parallelism <= max_parallelism:
        raise PenstockError(
            "SQL-1402",
            f"parallelism {parallelism} is not between 1 and pipeline.max-parallelism ({max_parallelism})",
            hint="SET 'parallelism.default' to less, or 'pipeline.max-parallelism' to more before the "
            "job's first start",
        )
    planner = _Planner(plan, facts, parallelism, settings)
    # sinks share the vertices of equal subplans
    for sink in plan.inputs if isinstance(plan, StatementSet) else (plan,):
        planner.vertex(sink, "")
    most = max((vertex.parallelism for vertex in planner.vertices()), default=1)
    if most > max_parallelism:
        message = f"{most} subtasks are asked for, and pipeline.max-parallelism is {max_parallelism}"
        hint = "lower 'scan.parallelism' or 'sink.parallelism' of a table, or the hint PARALLELISM"
        raise PenstockError("SQL-1402", message, hint=hint)
    return _graph(list(planner.vertices()), max_parallelism, planner.compatibility())


class _Planner:
    """Builds one vertex per operator id, inputs first."""

    def __init__(
        self, plan: LogicalPlan, facts: DerivedFacts, parallelism: int, settings: SettingReader
    ) -> None:
        self.facts = facts
        self.parallelism = parallelism
        self.settings = settings
        self.digests = PlanDigests()
        # the watermarks that are columns: their assigners mark every row
        self._marked = {
            self.digests.of(below).rows
            for node in plan.walk()
            if isinstance(node, CurrentWatermark)
            for below in node.walk()
            if isinstance(below, WatermarkAssign)
        }
        # whether a hint asks for the subtasks of an operator
        self._hinted = any(isinstance(node, ParallelNode) and node.subtasks for node in plan.walk())
        self._vertices: dict[str, OperatorVertex] = {}
        self._nodes: dict[str, LogicalPlan] = {}
        self._details: dict[str, tuple[str, ...]] = {}

    def compatibility(self) -> PlanCompatibility:
        """Return what checkpoints store of the plan, so that state survives wider types."""
        return derive_compatibility(self._nodes, self._details)

    def vertices(self) -> Iterator[OperatorVertex]:
        """Yield all vertices, inputs first."""
        return iter(self._vertices.values())

    def vertex(self, node: LogicalPlan, scope: str) -> OperatorVertex:
        """Return the vertex of a node. Nodes with equal digests share a vertex.

        ``scope`` is the id of the watermark assigner above, if any. The operators between a source and its
        assigner belong to that assigner alone, because split events reach it along their chain.
        """
        # ORDER BY of a result: the client sorts
        if isinstance(node, Sort):
            return self.vertex(node.input, scope)
        # the id is computed before the inputs are planned: it decides whether they are
        operator_id = self._operator_id(node, scope)
        if operator_id in self._vertices:
            if self._hinted:
                _check_shared(self._vertices[operator_id], subtasks(node, self.parallelism))
            return self._vertices[operator_id]
        # base: the node whose inputs are those of the operator, below a fused filter
        predicate, base = fused_filter(node)
        # below a watermark assigner its id is part of operator ids
        inner = operator_id if isinstance(node, WatermarkAssign) else scope
        inputs = tuple(self._resolve_input(child, inner) for child in base.inputs)
        if isinstance(base, BinaryJoin) and base.pruned is not None:
            spec = runtime_filter(base, base.pruned, operator_id)
            inputs = self._add_filter(spec, base.pruned, inputs)
        best = base.best if isinstance(base, IntervalJoin | WindowAggregate) else None
        origin = WindowAggregate if best and best.attached else WatermarkAssign
        if best and _knows_idleness(inputs[best.port][0], origin):
            inputs = self._add_filter(window_best_filter(base, best, operator_id), best.port, inputs)
        # planning the inputs may have made it: a node that only passes rows on has its input's digest
        if operator_id not in self._vertices:
            spec = self._spec(node, predicate, operator_id)
            self._vertices[operator_id] = OperatorVertex(spec, subtasks(node, self.parallelism), inputs)
            self._nodes[operator_id], self._details[operator_id] = node, self._identity_details(node)
            _check_forwards(self._vertices[operator_id])
        return self._vertices[operator_id]

    def _add_filter(
        self, spec: AnyOperatorSpec, port: int, inputs: tuple[tuple[OperatorVertex, Edge], ...]
    ) -> tuple[tuple[OperatorVertex, Edge], ...]:
        """Insert a filter before the edge into a port of a join. No operator id depends on it: it only drops
        rows that would not match.
        """
        vertex, edge = inputs[port]
        filtered = self._vertices.setdefault(
            spec.operator_id, OperatorVertex(spec, vertex.parallelism, ((vertex, Forward()),))
        )
        return tuple(
            (filtered, edge) if number == port else unchanged for number, unchanged in enumerate(inputs)
        )

    def _spec(self, node: LogicalPlan, predicate: Filter | None, operator_id: str) -> AnyOperatorSpec:
        if isinstance(node, Filter | Project):
            return calc_of(node, predicate, operator_id)
        if isinstance(node, RecursiveQuery):
            return plan_recursion(node, operator_id, self.facts, self.settings)
        spec = spec_of(node, operator_id, self.facts, self.settings)
        # no operator id depends on it: a query may begin to read the watermark and keep its state
        if isinstance(node, WatermarkAssign) and self.digests.of(node).rows in self._marked:
            return replace(spec, facts=replace(spec.facts, marks_rows=True))
        return spec

    def _resolve_input(self, child: LogicalPlan, scope: str) -> tuple[OperatorVertex, Edge]:
        # an exchange is no operator: it is the kind of the edge
        if isinstance(child, Exchange):
            return self.vertex(child.input, scope), child.edge
        return self.vertex(child, scope), Forward()

    def _operator_id(self, node: LogicalPlan, scope: str) -> str:
        name, *more = self._identity_details(node)
        # projections with equal digests and other names do not share a vertex: their schemas differ
        details = (name, scope, *(node.names if isinstance(node, Project) else ()), *more)
        digest = self.digests.of(node)
        if not isinstance(node, Sink):
            return digest.identity(*details)
        # two sinks with one digest write twice, so the later ones are numbered
        number = 0
        while (operator_id := digest.identity(*details, str(number))) in self._vertices:
            number += 1
        return operator_id

    def _identity_details(self, node: LogicalPlan) -> tuple[str, ...]:
        """Return what distinguishes a node besides its digest. For LIMIT that is the form of its state: a
        count of inserts, or all rows of a changelog.
        """
        if isinstance(node, Limit):
            return (node.written_name, *(() if self.facts.insert_only(node.input) else ("updates",)))
        return (
            node.written_name,
            *(map(str, self.facts.bounded_ports(node)) if isinstance(node, BinaryJoin) else ()),
        )


def _knows_idleness(vertex: OperatorVertex, origin: type[LogicalPlan]) -> bool:
    """Whether only forward edges are between a vertex and the operator that its rows come from: a watermark
    assigner or windows. A subtask then knows of every idleness of its own rows before it sees the next of
    them.
    """
    while not isinstance(vertex.spec.node, origin):
        if len(vertex.inputs) != 1 or not isinstance(vertex.inputs[0][1], Forward):
            return False
        vertex = vertex.inputs[0][0]
    return True


def _check_shared(vertex: OperatorVertex, wanted: int) -> None:
    """Raise SQL-1407 where equal operators, which run once, are asked for with two numbers of subtasks."""
    if vertex.parallelism != wanted:
        raise PenstockError(
            "SQL-1407",
            f"one job has {vertex.spec.name} with {vertex.parallelism} and with {wanted} subtasks",
            hint="equal parts of a job run once: give all of them the same hint PARALLELISM",
        )


def _check_forwards(vertex: OperatorVertex) -> None:
    for source, edge in vertex.inputs:
        if isinstance(edge, Forward) and source.parallelism != vertex.parallelism:
            message = (
                f"a forward edge from {source.parallelism} to {vertex.parallelism} subtasks "
                f"({source.spec.name} to {vertex.spec.name})"
            )
            raise PenstockError("INT-9004", f"broken plan: {message}", kind=Kind.INTERNAL, sqlstate="XX000")


def _graph(
    vertices: list[OperatorVertex], max_parallelism: int, compatibility: PlanCompatibility
) -> JobGraph:
    # tasks are chains of operators; edges inside a chain are function calls
    groups = chains_of(vertices)
    number_of = {id(vertex): number for number, group in enumerate(groups) for vertex in group}
    chains = tuple(
        Chain(number, with_columns_read(skipping(specs)), group[0].parallelism)
        for number, group in enumerate(groups)
        for specs in (tuple(vertex.spec for vertex in group),)
    )
    edges = tuple(
        ChainEdge(number_of[id(source)], number, port, edge)
        for number, group in enumerate(groups)
        for port, (source, edge) in enumerate(group[0].inputs)
    )
    return JobGraph(chains, edges, max_parallelism, compatibility)
