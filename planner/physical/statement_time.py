"""One current time for all rows of a bounded statement: its job reads a constant in place of the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from penstock.planner.expressions.expression_properties import CLOCK_FUNCTIONS
from penstock.planner.expressions.nodes import Call, Expression, Literal
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.logical.time_attributes import ProcessingTime
from penstock.planner.physical.operator_specs import AnyOperatorSpec, JobGraph

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def goes_by_clock(plan: LogicalPlan) -> bool:
    """Return whether rows of a plan have a processing time, which moves on while they pass."""
    return any(isinstance(node, ProcessingTime) for node in plan.walk())


def at_statement_time(graph: JobGraph, now_ms: int, zone: str) -> JobGraph:
    """Return the graph of a bounded statement with the calls of the clock as constants, also in subplans that
    a backend computes. ``now_ms`` counts from 1970.

    Operator ids stay, so the job may be restored and rescaled like that of any other statement.
    """
    fixed = _at(_EPOCH + timedelta(milliseconds=now_ms), zone)

    def settled(spec: AnyOperatorSpec) -> AnyOperatorSpec:
        node = _settled(spec.node, fixed)
        return spec if node is spec.node else replace(spec, node=node)

    chains = tuple(
        replace(chain, operators=tuple(settled(spec) for spec in chain.operators)) for chain in graph.chains
    )
    return replace(graph, chains=chains)


def _settled(node: LogicalPlan, fixed: Callable[[Expression], Expression]) -> LogicalPlan:
    if isinstance(node, BoundedInput):
        return replace(node, plan=node.plan.transform(lambda inner: _settled(inner, fixed)))
    return node.map_expressions(lambda whole: whole.transform(fixed))


def _at(now: datetime, zone: str) -> Callable[[Expression], Expression]:
    wall = now.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    values = {
        "proctime": now,
        "current_timestamp": now,
        "localtimestamp": wall,
        "current_date": wall.date(),
    }
    assert values.keys() == CLOCK_FUNCTIONS

    def fixed(part: Expression) -> Expression:
        if isinstance(part, Call) and part.function in CLOCK_FUNCTIONS:
            return Literal(part.type, False, value=values[part.function], span=part.span)
        return part

    return fixed
