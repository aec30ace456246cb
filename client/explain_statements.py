"""EXPLAIN: the plan at each stage of its road, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from client.results import Result, text_rows
from planner import explain
from planner import statement_nodes as nodes
from planner.logical import LogicalPlan
from planner.statement_nodes import ExplainStage

if TYPE_CHECKING:
    from client.running import Road
    from client.session import Session

_DEFAULT = (ExplainStage.LOGICAL, ExplainStage.OPTIMIZED, ExplainStage.PHYSICAL)


def explain_statement(session: Session, node: nodes.Explain, params: Sequence[Any] = ()) -> Result:
    """Return the asked stages of a statement's plan, one line a row."""
    stages = node.stages or _DEFAULT
    trace: list[tuple[str, LogicalPlan, LogicalPlan]] = []
    road = session.plan(session.bind(node.statement, params), lambda rule, before, after: trace.append((rule, before, after)))
    lines: list[str] = []
    for stage in stages:
        if len(stages) > 1:
            lines += [*([""] if lines else []), f"== {stage.value.replace('_', ' ')} =="]
        lines += stage_text(session, road, trace, stage).split("\n")
    return text_rows(["plan"], [(line,) for line in lines])


def stage_text(session: Session, road: Road, trace: list[tuple[str, LogicalPlan, LogicalPlan]], stage: ExplainStage) -> str:
    """Return one stage of a planned statement as text."""
    match stage:
        case ExplainStage.LOGICAL:
            return explain.explain(road.bound)
        case ExplainStage.OPTIMIZED:
            return explain.explain(road.plan)
        case ExplainStage.RULES:
            return rules_text(trace)
        case ExplainStage.CHANGELOG_MODE:
            return explain.explain(road.plan, lambda node: f"[{road.facts.changelog(node)}]")
    if road.graph is None:
        return session.backends.backend(road.switches.backend).explain(road.plan.inputs[0])
    return explain.explain_job(road.graph)


def rules_text(trace: list[tuple[str, LogicalPlan, LogicalPlan]]) -> str:
    """Return what each rule that changed the plan made of it."""
    parts = [f"-- {rule}\n{explain.explain(after)}" for rule, before, after in trace if after != before]
    return "\n".join(parts) if parts else "no rule changed the plan"
