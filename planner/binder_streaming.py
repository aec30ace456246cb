"""What a stream cannot do, said while names and places are still known."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.errors import PenstockError, Span
from catalog.schema import Field, Role
from planner.expressions import Column, Expression
from planner.logical import LogicalPlan, WindowTable
from planner.windowing import WindowKind

_SESSION_HINT = "write SELECT k, window_start, window_end, count(*) FROM SESSION(TABLE t PARTITION BY k, ..) GROUP BY k, window_start, window_end"


def _holds_session(plan: LogicalPlan) -> bool:
    return isinstance(plan, WindowTable) and plan.window.kind is WindowKind.SESSION


def check_session(plan: LogicalPlan, clause: str, span: Span | None, keys: Sequence[Expression] | None = None, fields: Sequence[Field] = ()) -> None:
    """Refuse sessions that are not aggregated right away: a session's end is known only to the aggregate that merges it (SQL-1706)."""
    held = [node for node in _above_aggregates(plan) if _holds_session(node)]
    if not held:
        return
    if keys is None or held[0] is not plan:
        raise PenstockError("SQL-1706", f"SESSION stands under GROUP BY alone, not under {clause}", span=span, hint=_SESSION_HINT, sqlstate="0A000")
    positions = [key.index if isinstance(key, Column) else -1 for key in keys]
    roles = {fields[i].role for i in positions if i >= 0}
    if not {Role.WINDOW_START, Role.WINDOW_END} <= roles:
        message = "GROUP BY over SESSION needs window_start and window_end"
        raise PenstockError("SQL-1706", message, span=span, hint=_SESSION_HINT, sqlstate="0A000")
    window_roles = (Role.WINDOW_START, Role.WINDOW_END, Role.WINDOW_TIME)
    others = {i for i in positions if i < 0 or fields[i].role not in window_roles}
    assert isinstance(plan, WindowTable)
    partition = set(plan.window.partition_keys)
    if others != partition:
        names = ", ".join(fields[i].name for i in sorted(partition)) or "none"
        message = f"GROUP BY over SESSION groups by its PARTITION BY columns ({names}) and the window"
        raise PenstockError("SQL-1706", message, span=span, hint="name the same columns in PARTITION BY and in GROUP BY", sqlstate="0A000")


def _above_aggregates(plan: LogicalPlan) -> list[LogicalPlan]:
    """Return the nodes reached without passing an aggregate."""
    found, open_nodes = [], [plan]
    while open_nodes:
        node = open_nodes.pop()
        found.append(node)
        if type(node).__name__ not in ("WindowAggregate", "Aggregate"):
            open_nodes += node.inputs
    return found


def check_order(endless: bool, limited: bool, nested: bool, span: Span | None) -> None:
    """Refuse an order that no result can have: of an endless stream (SQL-1703), or of a subquery that keeps all its rows (SQL-1064)."""
    if limited:
        return
    if nested:
        hint = "order the outer query, or add LIMIT"
        raise PenstockError("SQL-1064", "ORDER BY in a subquery orders nothing without LIMIT", span=span, hint=hint, sqlstate="42601")
    if endless:
        hint = "add LIMIT n to keep the first n rows up to date, or leave the order out"
        raise PenstockError("SQL-1703", "an endless stream has no last row, so it cannot be ordered", span=span, hint=hint, sqlstate="0A000")
