"""CREATE and DROP MATERIALIZED VIEW: each view has a job, which starts and stops with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable, MaterializedView
from penstock.client.execution.binder_notes import log_notes
from penstock.client.execution.job_submission import submit_with_state, submitted_job
from penstock.client.execution.materialized_view_jobs import ViewJob
from penstock.client.execution.planned_query import PlannedQuery
from penstock.client.execution.session_settings import own_settings
from penstock.client.results.result import Result, note_result
from penstock.engine.api.threads import EngineThread
from penstock.engine.connectors.in_process.materialized_views import MaterializedContents
from penstock.planner.binder.binder import Binder
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan
from penstock.planner.logical.sink import Sink
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.query_pipeline import QueryPipeline
    from penstock.client.execution.session_state import SessionState
    from penstock.engine.job.job import Job

REFRESH_MS = 200  # how old the state of a view may be where no checkpoint interval is set


def create_view(state: SessionState, pipeline: QueryPipeline, node: nodes.CreateMaterializedView) -> Result:
    """Create a materialized view and start the job that fills it; a query that cannot be planned creates
    nothing.
    """
    if node.if_not_exists and state.catalog.find(node.name.text) is not None:
        return note_result(f"materialized view {node.name} exists already")
    planned = declare_view(state, pipeline, node)
    # saved only after the start: a view whose job was refused is in no catalog file
    job = _submit_view_job(state, planned)
    state.save_catalogs()
    return note_result(f"materialized view {node.name} created, job {job.job_id} fills it", job)


def declare_view(
    state: SessionState, pipeline: QueryPipeline, node: nodes.CreateMaterializedView
) -> PlannedQuery:
    """Put a materialized view into the catalog and return the planned query of its job."""
    mode = str(state.settings.get("execution.runtime-mode"))
    binder = Binder(state.catalog, state.settings)
    sink = binder.bind_create_materialized_view(node)
    log_notes(binder.notes)
    # a view is filled by a job in every mode, so batch is not obeyed here
    planned = pipeline.plan(sink, mode="automatic" if mode == "batch" else mode)
    assert isinstance(planned.plan, Sink)
    query, facts = planned.plan.input, planned.facts
    # stored with the view: queries over it are planned with these properties of its query
    key, finite, inserts = facts.upsert_key(query), facts.finite(query), facts.insert_only(query)
    table = sink.table
    assert isinstance(table, MaterializedView)
    options = {
        **table.options,
        **({"finite": "true"} if finite else {}),
        **({"insert-only": "true"} if inserts else {}),
    }
    names = tuple(table.schema[index].name for index in key or ())
    state.catalog.create_table(replace(table, options=options, primary_key=names), False, node.name.span)
    return planned


def _submit_view_job(state: SessionState, planned: PlannedQuery) -> Job:
    """Start the job of a view; when it does not start there is no view."""
    from penstock.engine.api.job_options import JobOptions
    from penstock.engine.storage.storage import directory_name

    assert planned.graph is not None
    assert isinstance(planned.plan, Sink)
    table = planned.plan.table
    assert table is not None
    name = f"materialized-view-{table.name}"
    options = JobOptions.from_settings(state.settings, name=name, state_dir=state.state_dir)
    # a view over tables that end is computed anew instead
    durable = options.state_dir is not None and not planned.facts.finite(planned.plan)
    interval_ms = options.checkpoint_interval_ms or REFRESH_MS
    # readers see the state of a checkpoint: without rows in flight, and each input row once
    options = replace(
        options,
        checkpoint_interval_ms=interval_ms,
        state_dir=options.state_dir if durable else None,
        unaligned=False,
        exactly_once=True,
        bounded_backend=planned.options.backend,
    )
    # before the job: its sink looks the contents up by the view's name
    contents = state.views.tables.create(
        table.name, table.schema.to_arrow(), _reads_bounded_tables(state, planned.bound)
    )
    try:
        job, planned = submit_with_state(state, planned, options, directory_name(name) if durable else None)
    except PenstockError:
        # all or nothing: neither rows nor a name remain of a view whose job was refused
        state.views.tables.forget(table.name)
        state.catalog.drop_materialized_view(table.name)
        if state.engine.is_shared:
            # another session may have stored the view meanwhile
            state.save_catalogs()
        raise
    state.jobs.submitted[job.job_id] = submitted_job(planned, state, durable=durable)
    state.views.by_name[table.name.lower()] = ViewJob(
        job, _views_read(planned.bound), own_settings(state.settings)
    )
    EngineThread(target=_await_end, args=(job, contents), name=f"penstock-view-{table.name}").start()
    return job


def _await_end(job: Job, contents: MaterializedContents) -> None:
    job.wait(None)
    # wakes readers that wait for the first state; with an error they raise it
    contents.finish(job.error)


def _reads_bounded_tables(state: SessionState, plan: LogicalPlan) -> bool:
    """Whether all tables of a view end, so that readers wait for its whole answer. A recording that is read
    as a stream does not count: its view is looked at while it grows.
    """
    tables = [node.table for node in plan.walk() if isinstance(node, Scan)]
    views = [state.views.tables.find(table.name) for table in tables if isinstance(table, MaterializedView)]
    return all(view is not None and view.bounded for view in views) and all(
        boundedness(table) is Boundedness.BOUNDED
        for table in tables
        if not isinstance(table, MaterializedView)
    )


def _views_read(plan: LogicalPlan) -> frozenset[str]:
    tables: list[CatalogTable] = [node.table for node in plan.walk() if isinstance(node, Scan)]
    return frozenset(table.name.lower() for table in tables if isinstance(table, MaterializedView))


def drop_view(state: SessionState, node: nodes.DropMaterializedView) -> Result:
    """Stop the job of a view and drop its rows; SQL-1343 while another view follows it."""
    if node.if_exists and state.catalog.find(node.name.text) is None:
        return note_result(f"there is no materialized view {node.name}")
    view = state.catalog.materialized_view(node.name.text, node.name.span)
    # before anything is stopped, and in one step: no view that follows this one comes in between
    with state.catalog.lock:
        _refuse_if_followed(state, view.name, node.name.span)
        if not state.views.begin_drop(view.name):
            raise _is_dropped(view.name, node.name.span)
    try:
        _end_view(state, view)
    finally:
        state.views.end_drop(view.name)
    state.save_catalogs()
    return note_result(f"materialized view {node.name} dropped")


def _end_view(state: SessionState, view: MaterializedView) -> None:
    view_job = state.views.by_name.pop(view.name.lower(), None)
    if view_job is not None:
        view_job.job.cancel()
        # cancel only asks: the directory is removed when no task writes to it
        view_job.job.wait(None)
        if state.state_dir is not None:
            from penstock.engine.storage.locations import remove

            remove(state.state_dir / view_job.job.job_id)
    state.views.tables.forget(view.name)
    state.catalog.drop_materialized_view(view.name)


def _is_dropped(name: str, span: Span) -> PenstockError:
    message = f"materialized view {name} is being dropped by another session"
    return PenstockError("SQL-1344", message, span=span, hint="run the statement again", sqlstate="55006")


def _refuse_if_followed(state: SessionState, name: str, span: Span) -> None:
    followers = [
        other
        for other, view_job in state.views.by_name.items()
        if name.lower() in view_job.follows and other != name.lower()
    ]
    if followers:
        message = f"materialized view {name} cannot be dropped: {followers[0]} follows it"
        raise PenstockError(
            "SQL-1343", message, span=span, hint=f"drop {followers[0]} first", sqlstate="2BP01"
        )
