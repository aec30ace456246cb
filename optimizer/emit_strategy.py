"""EMIT clauses: refused where a query cannot obey them, gone where it does so by itself."""

from __future__ import annotations

from penstock.catalog.errors import PenstockError
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.optimizer.sink_validation import culprit
from penstock.planner.logical.emit import Emit, EmitKind, has_windows, with_emission
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.windows import ON_CLOSE


def settle_emission(plan: LogicalPlan, streaming: bool, facts: PlanFacts) -> LogicalPlan:
    """Return a plan with the EMIT clauses that an operator of ours obeys; a backend gives final rows only.

    Raises SQL-1711 for ON WINDOW CLOSE, or FINAL over rows that never end, of a query whose rows no window or
    time makes final.
    """
    return plan.transform(lambda node: _settled(node, streaming, facts) if isinstance(node, Emit) else node)


def _settled(node: Emit, streaming: bool, facts: PlanFacts) -> LogicalPlan:
    # Windows emit at their end without the clause: it is a check.
    if node.kind is EmitKind.CLOSE:
        _check_final(
            node,
            "EMIT ON WINDOW CLOSE",
            "leave EMIT out to get updates as they come, or EMIT FINAL for the last ones of finite input",
        )
        return node.input
    # A backend sees all rows and emits final ones.
    if not streaming:
        return node.input
    # EMIT CHANGES EVERY .. of a query without windows buffers changes; windows emit by themselves.
    if node.kind is EmitKind.CHANGES:
        return node if node.emission.waits and not has_windows(node.input) else node.input
    # EMIT FINAL over rows that end: the node buffers updates until then.
    if facts.finite(node.input):
        return node.input if facts.insert_only(node.input) else node
    _check_final(node, "EMIT FINAL over rows that never end", "leave EMIT out to get updates as they come")
    return node.input


def _check_final(node: Emit, words: str, way_out: str) -> None:
    """What lateness corrects was final without it."""
    facts = PlanFacts()
    # Without lateness windows emit once; it may correct final rows and is no reason to refuse.
    plain = with_emission(node.input, ON_CLOSE)
    if not facts.insert_only(plain):
        message = f"{words} emits final rows only, and this query updates its rows"
        hint = f"group or partition by window_start, window_end of a window function; or {way_out}"
        raise PenstockError("SQL-1711", message, detail=culprit(plain, facts), hint=hint, sqlstate="0A000")
    # Insert-only, but no operator waits for time: there is nothing to wait for.
    if not any(part.goes_by_time for part in plain.walk()):
        message = f"{words} waits for windows to close, and this query has none"
        raise PenstockError(
            "SQL-1711",
            message,
            hint="leave EMIT out: each row is emitted once, as it arrives",
            sqlstate="0A000",
        )
