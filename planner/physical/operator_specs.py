"""The physical plan as pure data: operator specs, chains of them, edges between chains. Nothing here runs.

A spec holds the logical node that its operator runs, over only the schemas of its inputs, and the facts
derived from the plan below. A few nodes exist in the physical plan only; they are declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.distribution import Edge
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.plan import LogicalPlan, ParallelNode
from penstock.planner.logical.scan import BoundedInput, Scan, Values
from penstock.planner.physical.state_compatibility import PlanCompatibility

# key groups: the most subtasks that state can be spread over, fixed at a job's first start
DEFAULT_MAX_PARALLELISM = 128

NodeT_co = TypeVar("NodeT_co", bound=LogicalPlan, covariant=True)
FactsT_co = TypeVar("FactsT_co", bound=OperatorFacts, covariant=True)


@dataclass(frozen=True)
class OperatorSpec(Generic[NodeT_co, FactsT_co]):
    """The description of one operator.

    ``operator_id`` is a digest of the subplan, stable over changes of the rest of the plan. ``name`` is for
    display; ``schema`` are the output columns. ``node``: see ``over_schemas``. Only ``facts`` depends on the
    plan below its inputs.
    """

    operator_id: str
    name: str
    schema: Schema
    node: NodeT_co
    facts: FactsT_co = OperatorFacts()  # type: ignore[assignment]  # those of a node that needs no more


AnyOperatorSpec = OperatorSpec[Any, Any]


@dataclass(frozen=True)
class InputSchema(LogicalPlan):
    """The input of a spec's node: a leaf that only has columns."""

    columns: Schema

    @property
    def schema(self) -> Schema:
        return self.columns


def over_schemas(node: LogicalPlan) -> LogicalPlan:
    """Return a node with each input replaced by its schema, and without the hint for its subtasks."""
    # a source has no inputs: the node as it is
    if not node.inputs:
        return node
    # the number is the chain's
    if isinstance(node, ParallelNode) and node.subtasks is not None:
        node = replace(node, subtasks=None)
    return node.with_inputs(tuple(InputSchema(child.schema) for child in node.inputs))


@dataclass(frozen=True)
class Calc(LogicalPlan):
    """Filter and projection fused: keep rows whose ``predicate`` is TRUE, then compute ``projections`` (None:
    all input columns).
    """

    predicate: Expression | None
    projections: tuple[Expression, ...] | None

    @property
    def keeps_state(self) -> bool:
        return False

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        predicate = None if self.predicate is None else rewrite(self.predicate)
        projections = None if self.projections is None else tuple(map(rewrite, self.projections))
        return self._changed(predicate=predicate, projections=projections)


@dataclass(frozen=True)
class TermOperator:
    """An operator of a recursive term. ``sources`` are what its ports read: a port of the recursion, below
    ``Recursion.ports``, or that number plus the position of an operator before it.
    """

    spec: AnyOperatorSpec
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Recursion(LogicalPlan):
    """A recursive query with the operators of its term, inputs first; the last has the rows of the term.

    Port 0 are the anchor's rows; read by the term, it is the work table. ``distinct``: the work table and the
    term have the iteration as their last column.
    """

    distinct: bool
    max_iterations: int
    ports: int
    operators: tuple[TermOperator, ...]


@dataclass(frozen=True)
class HistorySource(LogicalPlan):
    """Replace ``operators`` (a source and its followers, first to last) and emit the rows they would emit for
    ``splits``.

    ``plan``, over one table, is computed by ``backend`` (None: ``operators`` read it). It may have fewer rows
    when the operator above keeps the first only.

    ``timing`` is a source and a watermark assigner over only the columns that event time needs. It is empty
    when no operator above needs event time.
    """

    plan: LogicalPlan
    backend: str | None
    splits: tuple[str, ...]
    operators: tuple[AnyOperatorSpec, ...]
    timing: tuple[AnyOperatorSpec, ...] = ()


@dataclass(frozen=True)
class FinishedSplits(LogicalPlan):
    """Emit nothing; record that these splits of the source with this operator's id have been read to their
    end.
    """

    splits: tuple[str, ...]


@dataclass(frozen=True)
class Chain:
    """Operators that share a task, first to last. The first may have several ports; each other reads the one
    before.
    """

    chain_id: int
    operators: tuple[AnyOperatorSpec, ...]
    parallelism: int

    @property
    def is_source(self) -> bool:
        """Whether the chain begins with a source."""
        return isinstance(
            self.operators[0].node, Scan | Values | BoundedInput | HistorySource | FinishedSplits
        )

    @property
    def name(self) -> str:
        """The chain's name for display."""
        # source t -> filter, project -> sink u
        return " -> ".join(operator.name for operator in self.operators)


@dataclass(frozen=True)
class ChainEdge:
    """An edge from the last operator of chain ``source`` into ``port`` of the first operator of chain
    ``target``.
    """

    source: int
    target: int
    port: int
    edge: Edge


@dataclass(frozen=True)
class JobGraph:
    """A whole job: chains in topological order, edges, the number of key groups, and what checkpoints store
    for state compatibility.
    """

    chains: tuple[Chain, ...]
    edges: tuple[ChainEdge, ...]
    max_parallelism: int = DEFAULT_MAX_PARALLELISM
    compatibility: PlanCompatibility = PlanCompatibility()

    def inputs_of(self, chain_id: int) -> tuple[ChainEdge, ...]:
        """Return the edges into a chain, by port."""
        return tuple(
            sorted((e for e in self.edges if e.target == chain_id), key=lambda e: (e.port, e.source))
        )

    def outputs_of(self, chain_id: int) -> tuple[ChainEdge, ...]:
        """Return the edges out of a chain."""
        return tuple(e for e in self.edges if e.source == chain_id)

    def overtakable(self, edge: ChainEdge) -> bool:
        """Return whether a checkpoint barrier may overtake the rows of an edge (unaligned checkpoint).

        Not so before windows that correct their results. Their watermark state is one value for all subtasks
        only when barriers are aligned.
        """
        # the operators that read the edge
        target = next(chain for chain in self.chains if chain.chain_id == edge.target)
        return edge.edge.overtakable and not any(
            isinstance(o.node, WindowAggregate) and o.node.emission.corrects for o in target.operators
        )
