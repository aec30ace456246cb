"""Limits on the size of a plan and its types. A name can expand to a whole query, so a short text can expand
beyond what the planner or engine can handle.
"""

from __future__ import annotations

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.settings import Settings
from penstock.catalog.types import Array, DataType, Map, Row
from penstock.planner.binder.scope import Relation
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.parser.scanner import MAX_DEPTH, too_deep_a_type

MAX_TYPE_PARTS = 10_000
PLAN_NODES = "table.optimizer.max-plan-nodes"


def check_size(relation: Relation, settings: Settings, span: Span | None) -> None:
    """Refuse a relation over the limits once all names are expanded: SQL-1016 for its plan, SQL-1017 for its
    columns' types.
    """
    check_plan(relation.plan, settings, span)
    sizes: dict[int, tuple[int, int]] = {}
    for field in relation.fields:
        parts, depth = _parts_and_depth(field.type, sizes)
        if parts > MAX_TYPE_PARTS:
            message = f'the type of column "{field.name}" has more than {MAX_TYPE_PARTS:,} parts'
            raise PenstockError(
                "SQL-1017",
                message,
                span=span,
                hint="select the fields that are needed, one column each",
                sqlstate="54001",
            )
        if depth > MAX_DEPTH:
            raise too_deep_a_type(span)


def check_plan(plan: LogicalPlan, settings: Settings, span: Span | None = None) -> None:
    """Refuse a plan with more nodes than the setting allows: SQL-1016."""
    most = int(str(settings.get(PLAN_NODES)))
    # v1 reads t twice, v2 reads v1 twice, ..: v20 has a million scans
    if _nodes(plan, {}) > most:
        message = f"the query is a plan of more than {most:,} nodes when its views and names are opened"
        hint = (
            f"write what is read many times into a table and read that, or SET '{PLAN_NODES}' = '{10 * most}'"
        )
        raise PenstockError("SQL-1016", message, span=span, hint=hint, sqlstate="54001")


def _nodes(plan: LogicalPlan, known: dict[int, int]) -> int:
    """Count the nodes of a plan as a tree. A shared node is visited once but counted at each use."""
    if id(plan) not in known:
        # remembered by identity: without it the count would take as long as the plan is large
        known[id(plan)] = 1 + sum(_nodes(node, known) for node in plan.inputs)
    return known[id(plan)]


def _parts_and_depth(kind: DataType, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    # Types share parts, as plans do: memoized by identity, or the count itself would be exponential.
    if id(kind) not in known:
        inner = _inner(kind)
        sizes = [_parts_and_depth(part, known) for part in inner]
        known[id(kind)] = (
            1 + sum(parts for parts, _ in sizes),
            max((depth + 1 for _, depth in sizes), default=0),
        )
    return known[id(kind)]


def _inner(kind: DataType) -> list[DataType]:
    if isinstance(kind, Array):
        return [kind.element]
    if isinstance(kind, Map):
        return [kind.key, kind.value]
    return [part for _, part in kind.fields] if isinstance(kind, Row) else []
