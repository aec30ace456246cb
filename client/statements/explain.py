"""EXPLAIN: the plan at each stage of the pipeline, without running it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.client.results.result import Result, verbatim_result
from penstock.optimizer.properties.explain_annotations import all_notes, changelog_notes, facts_of
from penstock.planner.binder.parameters import Parameters
from penstock.planner.explain import explain
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.logical.sink import Sink
from penstock.planner.statements import nodes
from penstock.planner.statements.nodes import ExplainStage

if TYPE_CHECKING:
    from penstock.client.execution.history_planning import History
    from penstock.client.execution.planned_query import PlannedQuery
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState
    from penstock.planner.physical.operator_specs import JobGraph

Trace = list[tuple[str, LogicalPlan, LogicalPlan]]
_DEFAULT = (ExplainStage.LOGICAL, ExplainStage.OPTIMIZED, ExplainStage.PHYSICAL)


def explain_statement(
    state: SessionState, pipeline: QueryPipeline, node: nodes.Explain, params: Parameters = ()
) -> Result:
    """Return the asked stages of a statement's plan, one line a row."""
    stages = node.stages or _DEFAULT
    trace: Trace = []
    planned = pipeline.plan(
        pipeline.bind(node.statement, params), lambda rule, before, after: trace.append((rule, before, after))
    )
    lines: list[str] = []
    for stage in stages:
        # a heading only where there are several stages
        if len(stages) > 1:
            lines += [*([""] if lines else []), f"== {stage.value.replace('_', ' ')} =="]
        lines.append(stage_text(state, planned, trace, stage))
    return verbatim_result("plan", "\n".join(lines).split("\n"))


def stage_text(state: SessionState, planned: PlannedQuery, trace: Trace, stage: ExplainStage) -> str:
    """Return one stage of a planned statement as text. Without a job the physical stages are the text the
    bounded backend would run.
    """
    match stage:
        # as bound, before any rule
        case ExplainStage.LOGICAL:
            return explain.explain(planned.bound)
        # after the rules, with the exchanges between subtasks where there is a job
        case ExplainStage.OPTIMIZED:
            return explain.explain(planned.with_exchanges or planned.plan, all_notes(planned.facts))
        # each rule with the plan before and after, in the order they ran
        case ExplainStage.RULES:
            return explain.explain_rules(trace)
        # which operators emit only insertions, and which retract
        case ExplainStage.CHANGELOG_MODE:
            return explain.explain(planned.plan, changelog_notes(planned.facts))
        case ExplainStage.JSON:
            job = None if planned.graph is None else explain.job_json(planned.graph)
            return json.dumps(
                {"plan": explain.explain_json(planned.plan, facts_of(planned.facts)), "job": job}, indent=2
            )
    # an UPDATE or DELETE that a database carries out: show its statement
    if isinstance(planned.plan, Sink) and planned.plan.changes is not None and planned.graph is None:
        from penstock.engine.connectors.database.row_changes import change_text

        return f"in {planned.plan.changes.table.connector}: {change_text(planned.plan)}"
    # a batch query has no job: show the backend's text
    if planned.graph is None:
        return _on_backend(
            state,
            planned,
            planned.plan
            if isinstance(planned.plan, Sink) and planned.plan.table is not None
            else planned.plan.inputs[0],
        )
    if stage is ExplainStage.MERMAID:
        return explain.mermaid(planned.graph)
    # a shared BoundedInput is one node with several readers: its text is shown once
    parts = {id(node): node for node in planned.plan.walk() if isinstance(node, BoundedInput)}
    texts = {
        _on_backend(state, planned, part.plan, f"{part.operator_name()} "): None for part in parts.values()
    }
    history = [] if planned.history is None else [_history_text(state, planned.history)]
    return "\n\n".join([physical_text(state, planned.graph), *history, *texts])


def _history_text(state: SessionState, history: History) -> str:
    from penstock.client.execution.history_planning import (
        history_text,  # it lists files: only where there is a history
    )

    return history_text(history, lambda: state.backends)


def _on_backend(state: SessionState, planned: PlannedQuery, plan: LogicalPlan, what: str = "") -> str:
    return f"{what}on {state.backends.explain(plan, planned.options.backend)}"


def physical_text(state: SessionState, graph: JobGraph) -> str:
    """Return a job's chains, with the edges where barriers wait their turn if elsewhere they need not."""
    return explain.explain_job(
        graph, unaligned=bool(state.settings.get("execution.checkpointing.unaligned.enabled"))
    )
