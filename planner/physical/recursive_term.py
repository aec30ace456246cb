"""The physical plan of a recursive query: the specs of the operators inside it, and what each reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.planner.expressions.nodes import SortKey
from penstock.planner.logical.operator_facts import DerivedFacts, SettingReader
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, column_of
from penstock.planner.logical.recursive_query import (
    RecursiveQuery,
    TermInput,
    WorkTable,
    inserts_only,
    with_iteration,
)
from penstock.planner.physical.operator_spec_builder import calc_of, fused_filter, spec_of
from penstock.planner.physical.operator_specs import AnyOperatorSpec, OperatorSpec, Recursion, TermOperator


def plan_recursion(
    query: RecursiveQuery, operator_id: str, facts: DerivedFacts, settings: SettingReader
) -> AnyOperatorSpec:
    """Return the spec of a recursive query, with the operators of its term."""
    derived = query.operator_facts(facts, settings)
    # a row that is reached in fewer iterations moves there: it is retracted from where it was
    inserts = (query.insert_only(derived.insert_only_inputs) and not query.distinct,)
    planner = _TermPlanner(
        _TermFacts(inserts + derived.insert_only_inputs[1:]), settings, operator_id, len(query.inputs)
    )
    planner.source(_projected(with_iteration(query.term) if query.distinct else query.term))
    node = Recursion(query.distinct, query.max_iterations, len(query.inputs), tuple(planner.operators))
    return OperatorSpec(operator_id, query.operator_name(), query.schema, node, derived)


def _projected(term: LogicalPlan) -> LogicalPlan:
    """Return a term with an operator: SELECT * FROM r has none of its own."""
    if not isinstance(term, WorkTable):
        return term
    return Project(term, tuple(column_of(term, i) for i in range(len(term.schema))), tuple(term.schema.names))


class _TermPlanner:
    """Numbers the operators of a term, inputs first."""

    def __init__(self, facts: _TermFacts, settings: SettingReader, operator_id: str, ports: int) -> None:
        self.operators: list[TermOperator] = []
        self._facts, self._settings = facts, settings
        self._operator_id, self._ports = operator_id, ports

    def source(self, node: LogicalPlan) -> int:
        """Return the number of what has a node's rows; its operators are added."""
        if isinstance(node, WorkTable):
            return 0
        if isinstance(node, TermInput):
            return node.port
        predicate, base = fused_filter(node)
        sources = tuple(map(self.source, base.inputs))
        number = len(self.operators)
        operator_id = f"{self._operator_id}-{number}"
        spec = (
            calc_of(node, predicate, operator_id)
            if isinstance(node, Filter | Project)
            else spec_of(node, operator_id, self._facts, self._settings)
        )
        self.operators.append(TermOperator(spec, sources))
        return self._ports + number


class _TermFacts:
    """Facts of the nodes of a term: no side of a join is loaded first or copied, and no row expires, for the
    work table has no end before all is read.
    """

    def __init__(self, inserts: tuple[bool, ...]) -> None:
        self._inserts = inserts

    def insert_only(self, node: Any) -> bool:
        return inserts_only(node, self._inserts)

    def emits_upserts(self, node: Any) -> bool:
        return False

    def upsert_key(self, node: Any) -> tuple[int, ...] | None:
        return None

    def is_settled_by_time(self, node: Any) -> bool:
        return False

    def arrival_order(self, node: Any, order: Sequence[SortKey]) -> int:
        return 0

    def bounded_ports(self, join: Any) -> tuple[int, ...]:
        return ()

    def copied(self, join: Any) -> int | None:
        return None

    def side_ttl_ms(self, join: Any, port: int) -> int:
        return 0

    def ttl_ms(self, node: Any) -> int:
        return 0
