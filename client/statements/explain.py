"""EXPLAIN: the plan at each stage of its road, without running it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.result import Result, verbatim_result
from penstock.optimizer.properties.explain_annotations import all_notes, changelog_notes, facts_of
from penstock.planner.explain import explain
from penstock.planner.logical.plan import BoundedInput, LogicalPlan, Sink
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import ExplainStage

if TYPE_CHECKING:
    from penstock.client.history_planning import History
    from penstock.client.job_submission import Road
    from penstock.client.session import Session
    from penstock.planner.physical.operator_specs import JobGraph

Trace = list[tuple[str, LogicalPlan, LogicalPlan]]
_DEFAULT = (ExplainStage.LOGICAL, ExplainStage.OPTIMIZED, ExplainStage.PHYSICAL)


def explain_statement(session: Session, node: nodes.Explain, params: Sequence[Any] = ()) -> Result:
    """Return the asked stages of a statement's plan, one line a row."""
    stages = node.stages or _DEFAULT
    trace: Trace = []
    road = session.plan(
        session.bind(node.statement, params), lambda rule, before, after: trace.append((rule, before, after))
    )
    lines: list[str] = []
    for stage in stages:
        if len(stages) > 1:
            lines += [*([""] if lines else []), f"== {stage.value.replace('_', ' ')} =="]
        lines.append(stage_text(session, road, trace, stage))
    return verbatim_result("plan", "\n".join(lines).split("\n"))


def stage_text(session: Session, road: Road, trace: Trace, stage: ExplainStage) -> str:
    """Return one stage of a planned statement as text. Without a job the physical stages are the text the
    bounded backend would run.
    """
    match stage:
        case ExplainStage.LOGICAL:
            return explain.explain(road.bound)
        case ExplainStage.OPTIMIZED:
            return explain.explain(road.laid or road.plan, all_notes(road.facts))
        case ExplainStage.RULES:
            return explain.explain_rules(trace)
        case ExplainStage.CHANGELOG_MODE:
            return explain.explain(road.plan, changelog_notes(road.facts))
        case ExplainStage.JSON:
            job = None if road.graph is None else explain.job_json(road.graph)
            return json.dumps(
                {"plan": explain.explain_json(road.plan, facts_of(road.facts)), "job": job}, indent=2
            )
    if road.graph is None:
        return _on_backend(
            session,
            road,
            road.plan if isinstance(road.plan, Sink) and road.plan.table is not None else road.plan.inputs[0],
        )
    if stage is ExplainStage.MERMAID:
        return explain.mermaid(road.graph)
    parts = {id(node): node for node in road.plan.walk() if isinstance(node, BoundedInput)}
    texts = {
        _on_backend(session, road, part.plan, f"{part.operator_name()} "): None for part in parts.values()
    }
    history = [] if road.history is None else [_of_history(session, road.history)]
    return "\n\n".join([physical_text(session, road.graph), *history, *texts])


def _of_history(session: Session, history: History) -> str:
    from penstock.client.history_planning import history_text  # it lists files: only where there is a history

    return history_text(history, lambda: session.backends)


def _on_backend(session: Session, road: Road, plan: LogicalPlan, what: str = "") -> str:
    backend = session.backends.for_plan(plan, road.switches.backend)
    return f"{what}on {backend.name}:\n{backend.explain(plan)}"


def physical_text(session: Session, graph: JobGraph) -> str:
    """Return a job's chains, with the edges where barriers wait their turn if elsewhere they need not."""
    return explain.explain_job(
        graph, unaligned=bool(session.settings.get("execution.checkpointing.unaligned.enabled"))
    )
