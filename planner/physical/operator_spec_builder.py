"""Operator specs of logical nodes: a filter and a projection become one Calc, a recursive query has specs of
its term inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from penstock.planner.expressions.nodes import conjunction, conjuncts
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.joins.join import Join
from penstock.planner.logical.operator_facts import DerivedFacts, SettingReader
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project
from penstock.planner.physical.operator_specs import (
    AnyOperatorSpec,
    Calc,
    OperatorSpec,
    over_schemas,
)


def spec_of(
    node: LogicalPlan, operator_id: str, facts: DerivedFacts, settings: SettingReader
) -> AnyOperatorSpec:
    """Return the spec of a node that is not a Filter or Project (``calc_of``)."""
    derived = node.operator_facts(facts, settings)
    return OperatorSpec(operator_id, node.operator_name(), node.schema, over_schemas(node), derived)


def calc_of(node: Filter | Project, predicate: Filter | None, operator_id: str) -> AnyOperatorSpec:
    """Return the spec of a projection over the filter below it, or of a filter alone."""
    projections = node.expressions if isinstance(node, Project) else None
    # names are shown by EXPLAIN and metrics; ids do not depend on them
    name = "filter" if projections is None else "project" if predicate is None else "filter, project"
    calc = Calc(None if predicate is None else predicate.predicate, projections)
    return OperatorSpec(operator_id, name, node.schema, calc)


def fused_filter(node: LogicalPlan) -> tuple[Filter | None, LogicalPlan]:
    """Return the filter of a Calc, with consecutive filters merged, and the lowest node of the Calc."""
    base = node
    # SELECT a + 1 FROM t WHERE b: one operator
    if isinstance(node, Project) and isinstance(node.input, Filter):
        base = node.input
    if not isinstance(base, Filter):
        return None, base
    # filters directly below each other are one condition, the lowest first
    lowest = base
    parts = conjuncts(base.predicate)
    while isinstance(lowest.input, Filter):
        lowest = lowest.input
        parts = conjuncts(lowest.predicate) + parts
    return Filter(lowest.input, conjunction(parts)), lowest


def with_columns_read(chain: Sequence[AnyOperatorSpec]) -> tuple[AnyOperatorSpec, ...]:
    """Return the operators of a chain, where a join below a projection has the columns that are read of it.

    Of its pairs it copies only these. No schema changes, so state and operator ids stay what they are.
    """
    specs = list(chain)
    for place, (spec, above) in enumerate(pairwise(chain)):
        calc = above.node
        if isinstance(spec.node, Join | IntervalJoin) and isinstance(calc, Calc) and calc.projections:
            read = {index for expression in calc.projections for index in expression.columns()}
            read |= set() if calc.predicate is None else calc.predicate.columns()
            specs[place] = replace(spec, facts=replace(spec.facts, read=tuple(sorted(read))))
    return tuple(specs)
