"""The query that an EXPLAIN WHY is about, and the bounded queries that answer it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from penstock.catalog.connectors.registry import connector_of
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import MaterializedView, View
from penstock.optimizer.optimizer import rule_names
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.row_conditions import bind_row_conditions
from penstock.planner.expressions.nodes import Expression, conjuncts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink
from penstock.planner.provenance.read_rows import ended, up_to_positions
from penstock.planner.statements import nodes
from penstock.planner.statements.script import parse_view_query

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState

_BOUNDS = {
    "scan.bounded.mode": "end it now: FROM {table} /*+ OPTIONS('scan.bounded.mode' = 'latest-offset') */",
    "number-of-rows": "give it an end: FROM {table} /*+ OPTIONS('number-of-rows' = '1000') */",
    "source.monitor-interval": "read the files that are there: leave out 'source.monitor-interval'",
}
"""How to read a table up to its present end, by an option that its connector has."""
_BACKEND = "duckdb"
MOST_OPTIMIZED = 200
"""Nodes of a plan that the optimizer's rules take apart. They copy a node for each of its readers: a plan of
91 nodes with 1,161 paths to them became 851, whose text DuckDB parsed for half a minute.
"""


@dataclass(frozen=True)
class ExplainedQuery:
    """A bound query without its Sink, and the conditions on its rows, ANDed."""

    plan: LogicalPlan
    conditions: tuple[Expression, ...]


def explained_query(state: SessionState, node: nodes.ExplainWhy) -> ExplainedQuery:
    """Bind the query, or the query of the view, and the conditions. Raises WHY-7103 for a table that does not
    end.
    """
    binder = Binder(state.catalog, state.settings)
    if isinstance(node.subject, nodes.Query):
        query, binder_of_query = node.subject, binder
    else:
        query, binder_of_query = _view_query(state, node.subject, binder)
    plan = state.views.pin(binder_of_query.bind_query(query), state.is_abandoned)
    if isinstance(node.subject, nodes.Name):
        plan = _as_read(state, node.subject, plan)
    _refuse_endless(plan, node.subject.span)
    bound = bind_row_conditions(binder, plan, node.conditions)
    return ExplainedQuery(plan, tuple(part for one in bound for part in conjuncts(one)))


def run_bounded(pipeline: QueryPipeline, plan: LogicalPlan) -> pa.Table:
    """Return the rows of a bounded plan, computed by DuckDB. What it has no word for our own runtime
    computes.
    """
    bound = Sink(plan, None)
    if sum(1 for _ in islice(bound.walk(), MOST_OPTIMIZED + 1)) > MOST_OPTIMIZED:
        # a shared node stays one: DuckDB computes it once, and pushes the filters down itself
        shared = pipeline.optimize(bound, mode="batch", backend=_BACKEND, without=tuple(rule_names()))
        if shared.runtime != "batch":
            raise PenstockError(
                "WHY-7106",
                "DuckDB cannot compute this query, and traced back it is too large for penstock's runtime",
                hint="write a part of the query into a table, and explain a query of that table",
                sqlstate="54001",
            )
        return pipeline.start(pipeline.plan_physical(shared)).final_rows()
    return pipeline.start(pipeline.plan(bound, mode="batch", backend=_BACKEND)).final_rows()


def _view_query(state: SessionState, name: nodes.Name, binder: Binder) -> tuple[nodes.Query, Binder]:
    """Return the query of a view, and the binder of the namespace in which it was written."""
    relation = state.catalog.resolve(name.text, name.span)
    if not isinstance(relation, View | MaterializedView):
        raise PenstockError(
            "SQL-1303",
            f'"{name}" is no view',
            span=name.span,
            hint=f"write FOR SELECT * FROM {name}",
            sqlstate="42809",
        )
    query = parse_view_query(relation.query)
    return query, Binder(binder.catalog.at(relation.path), binder.settings)


def _as_read(state: SessionState, name: nodes.Name, plan: LogicalPlan) -> LogicalPlan:
    """Return the plan of a materialized view over the rows that its job has read at its newest checkpoint.
    Of a table of which the checkpoint does not say it, those that are there now.
    """
    view = state.catalog.find(name.text)
    if not isinstance(view, MaterializedView):
        return plan
    return up_to_positions(ended(plan), state.catalog.states.rows_read(view.name))


def _refuse_endless(plan: LogicalPlan, span: Span) -> None:
    facts = PlanFacts()
    for node in plan.walk():
        if isinstance(node, Scan) and not facts.finite(node):
            table = node.table
            options = {option.key for option in connector_of(table).options}
            hint = next(
                (text for name, text in _BOUNDS.items() if name in options),
                "record it in a table of files, and read that",
            )
            raise PenstockError(
                "WHY-7103",
                f"table {table.name} never ends, so its rows cannot be read again",
                span=span,
                hint=hint.format(table=table.name),
                sqlstate="0A000",
            )


def drops_late_rows(
    state: SessionState, pipeline: QueryPipeline, node: nodes.ExplainWhy, plan: LogicalPlan
) -> bool:
    """Return whether a job computes the rows of the query, and so drops late rows: that of a materialized
    view, or of a session in streaming mode.
    """
    if isinstance(node.subject, nodes.Name):
        return isinstance(state.catalog.find(node.subject.text), MaterializedView)
    return pipeline.plan(Sink(plan, None)).graph is not None
