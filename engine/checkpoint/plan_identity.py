"""The identity of a plan in a checkpoint: its operators, the tables they read or write, and the operators
below each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.checkpoint.manifest import OperatorEntry, OperatorRole
from penstock.planner.logical.node_digest import table_text
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.time_attributes import WatermarkAssign
from penstock.planner.physical.operator_specs import AnyOperatorSpec, JobGraph
from penstock.planner.physical.state_compatibility import PlanCompatibility


@dataclass(frozen=True)
class PlanIdentity:
    """The plan as a manifest records it. ``below``: by operator id, all operators whose rows reach it.

    ``compatibility``: per operator with state its digest that ignores the width of types, and the declared
    tables.
    """

    operators: tuple[OperatorEntry, ...]
    fingerprint: str
    max_parallelism: int
    below: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    compatibility: PlanCompatibility = field(default=PlanCompatibility(), compare=False)


def plan_identity(graph: JobGraph) -> PlanIdentity:
    """Return a plan's identity. The fingerprint depends on the operators with state only, not on parallelism
    or chaining.
    """
    below = _below(graph)
    # The tables of sources: watermark generators are matched by them too.
    tables = {
        spec.operator_id: table_text(spec.node.table)
        for chain in graph.chains
        for spec in chain.operators
        if isinstance(spec.node, Scan)
    }
    operators = tuple(
        _entry(spec, chain.parallelism, below, tables) for chain in graph.chains for spec in chain.operators
    )
    stateful = {operator.operator_id for operator in operators if operator.keeps_state}
    # Compatibility matters only where there is state.
    digests = {
        known: described for known, described in graph.compatibility.operators.items() if known in stateful
    }
    return PlanIdentity(
        operators,
        fingerprint_of(operators),
        graph.max_parallelism,
        below,
        PlanCompatibility(digests, graph.compatibility.tables),
    )


def fingerprint_of(operators: Iterable[OperatorEntry]) -> str:
    """Return the fingerprint of the operators with state."""
    # sorted: chaining and the order of chains do not matter
    stateful = sorted(operator.operator_id for operator in operators if operator.keeps_state)
    return hashlib.sha256("\n".join(stateful).encode()).hexdigest()


def _entry(
    spec: AnyOperatorSpec, parallelism: int, below: Mapping[str, frozenset[str]], tables: Mapping[str, str]
) -> OperatorEntry:
    role, place = OperatorRole.INNER, ""
    # A source is its table; what it reads of it may change.
    if isinstance(spec.node, Scan):
        role, place = OperatorRole.SOURCE, tables[spec.operator_id]
    # A sink without a table returns rows to a client and cannot resume.
    elif isinstance(spec.node, Sink) and spec.node.table is not None:
        role, place = OperatorRole.SINK, spec.node.table.name.lower()
    # A watermark generator: its column, its expression, and the tables below.
    elif isinstance(spec.node, WatermarkAssign):
        column = spec.schema[spec.node.time_column].name
        read = sorted(tables[operator] for operator in below[spec.operator_id] if operator in tables)
        role, place = OperatorRole.WATERMARK, " ".join([column, str(spec.node.watermark), *read])
    columns = ", ".join(f"{column.name} {column.type}" for column in spec.schema)
    return OperatorEntry(
        spec.operator_id, spec.name, spec.node.keeps_state, parallelism, role, place, columns
    )


def _below(graph: JobGraph) -> dict[str, frozenset[str]]:
    # Edges lead from the last operator of a chain.
    last = {chain.chain_id: chain.operators[-1].operator_id for chain in graph.chains}
    below: dict[str, frozenset[str]] = {}
    for chain in graph.chains:  # topological order
        feeding = {last[edge.source] for edge in graph.inputs_of(chain.chain_id)}
        for spec in chain.operators:
            below[spec.operator_id] = frozenset(feeding).union(*(below[operator] for operator in feeding))
            # Within a chain each operator feeds the next.
            feeding = {spec.operator_id}
    return below
