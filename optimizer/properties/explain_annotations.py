"""What EXPLAIN says of each node besides what it does."""

from __future__ import annotations

from collections.abc import Callable

from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.explain.explain import Annotate
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.plan import LogicalPlan, ParallelNode
from penstock.planner.logical.sink import StatementSet


def facts_of(facts: PlanFacts) -> Callable[[LogicalPlan], dict[str, str]]:
    """Return what is known of each node: changelog mode, unique key, what it keeps and whether that is
    bounded; for ``explain_json``.
    """

    def known(node: LogicalPlan) -> dict[str, str]:
        if isinstance(node, StatementSet | Exchange):
            return {}
        said = {"changelog": facts.changelog(node)}
        key = facts.upsert_key(node)
        if key is not None:
            said["key"] = f"({', '.join(node.schema[i].name for i in key)})"
        if isinstance(node, ParallelNode) and node.subtasks is not None:
            said["subtasks"] = str(node.subtasks.subtasks)
        state = facts.state(node)
        if state.keeps is not None:
            said["state"] = f"{facts.state_bound(node)} ({state.keeps})"
        if isinstance(node, BinaryJoin) and (why := facts.why_not_copied(node)) is not None:
            said["note"] = f"the hint BROADCAST has no effect: {why}"
        if (unheeded := facts.unheeded_ttl(node)) is not None:
            said["note"] = f"the hint STATE_TTL has no effect: {unheeded}"
        return said

    return known


def all_notes(facts: PlanFacts) -> Annotate:
    """Return the same as text behind each node; for ``explain``."""
    known = facts_of(facts)

    def note(node: LogicalPlan) -> str:
        said = known(node)
        return (
            f"[{'; '.join(text if name == 'changelog' else f'{name} {text}' for name, text in said.items())}]"
            if said
            else ""
        )

    return note


def changelog_notes(facts: PlanFacts) -> Annotate:
    """Return the changelog mode behind each node; for ``EXPLAIN CHANGELOG_MODE``."""
    return lambda node: "" if isinstance(node, StatementSet | Exchange) else f"[{facts.changelog(node)}]"
