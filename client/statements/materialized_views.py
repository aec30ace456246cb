"""Materialized views: a job each, that starts with the view and stops with it; what they hold is read a
whole state at a time.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable, MaterializedView
from penstock.client.job_submission import Road, Started, submit_over_state
from penstock.client.result import Result, note_result
from penstock.engine.api.threads import EngineThread
from penstock.engine.connectors.in_process.materialized_view_source import FIRST_STATE_S
from penstock.engine.connectors.in_process.materialized_views import MaterializedContents, MaterializedTables
from penstock.engine.job.job_state import JobState
from penstock.planner.binder.binder import Binder
from penstock.planner.logical.plan import LogicalPlan, Scan, Sink
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.session import Session
    from penstock.engine.job.job import Job

REFRESH_MS = 200


@dataclass(frozen=True)
class Filling:
    """The job that fills a view, and the views it follows (folded names)."""

    job: Job
    follows: frozenset[str]


@dataclass
class RunningViews:
    """What fills the materialized views of a session."""

    tables: MaterializedTables = field(default_factory=MaterializedTables)
    fillings: dict[str, Filling] = field(default_factory=dict)

    def job(self, name: str) -> Job | None:
        """Return the job that fills a view."""
        filling = self.fillings.get(name.lower())
        return None if filling is None else filling.job

    def pinned(self, plan: LogicalPlan) -> LogicalPlan:
        """Return a bound plan that reads one state of each view, however often it reads it. Waits for the
        first state of a view that just began.
        """
        versions: dict[str, int | None] = {}

        def pin(node: LogicalPlan) -> LogicalPlan:
            if (
                not isinstance(node, Scan)
                or not isinstance(node.table, MaterializedView)
                or "follow" in node.table.options
            ):
                return node
            contents = self.tables.find(node.table.name)
            if contents is None or "snapshot" in node.table.options:
                return node
            name = node.table.name.lower()
            if name not in versions:
                versions[name] = self._state(contents)
            return replace(
                node,
                table=replace(node.table, options={**node.table.options, "snapshot": str(versions[name])}),
            )

        return plan.transform(pin)

    def _state(self, contents: MaterializedContents) -> int:
        version, job = contents.pin(FIRST_STATE_S), self.job(contents.name)
        if version is None:
            message = f"materialized view {contents.name} is still being filled for the first time"
            raise PenstockError("RUN-2920", message, hint="run the query again", sqlstate="55000")
        if job is not None and job.state in (JobState.CANCELED, JobState.FAILED):
            message = f"materialized view {contents.name} is kept no more: its job is {job.state.lower()}"
            raise PenstockError(
                "RUN-2920", message, hint="DROP MATERIALIZED VIEW and create it again", sqlstate="55000"
            )
        return version


def create_view(session: Session, node: nodes.CreateMaterializedView) -> Result:
    """Create a materialized view and start the job that fills it; a query that cannot be planned creates
    nothing.
    """
    if node.if_not_exists and session.catalog.find(node.name.text) is not None:
        return note_result(f"materialized view {node.name} exists already")
    road = declare_view(session, node)
    job = _filled(session, road)
    session.keep_catalogs()
    return note_result(f"materialized view {node.name} created, job {job.job_id} fills it", job)


def declare_view(session: Session, node: nodes.CreateMaterializedView) -> Road:
    """Put a materialized view into the catalog and return the road of its job."""
    mode = str(session.settings.get("execution.runtime-mode"))
    sink = Binder(session.catalog, session.settings).bind_create_materialized_view(node)
    road = session.plan(sink, mode="automatic" if mode == "batch" else mode)
    assert isinstance(road.plan, Sink)
    query, facts = road.plan.input, road.facts
    key, finite, inserts = facts.upsert_key(query), facts.finite(query), facts.insert_only(query)
    table = sink.table
    assert isinstance(table, MaterializedView)
    options = {
        **table.options,
        **({"finite": "true"} if finite else {}),
        **({"insert-only": "true"} if inserts else {}),
    }
    names = tuple(table.schema[index].name for index in key or ())
    session.catalog.create_table(replace(table, options=options, primary_key=names), False, node.name.span)
    return road


def _filled(session: Session, road: Road) -> Job:
    """Start the job of a view; when it does not start there is no view."""
    from penstock.engine.api.job_options import JobOptions
    from penstock.engine.storage.storage import directory_name

    assert road.graph is not None
    assert isinstance(road.plan, Sink)
    table = road.plan.table
    assert table is not None
    name = f"materialized-view-{table.name}"
    options = JobOptions.from_settings(session.settings, name=name, state_dir=session.state_dir)
    # one that ends is computed anew instead
    keeps = options.state_dir is not None and not road.facts.finite(road.plan)
    interval_ms = options.checkpoint_interval_ms or REFRESH_MS
    options = replace(
        options,
        checkpoint_interval_ms=interval_ms,
        state_dir=options.state_dir if keeps else None,
        unaligned=False,
        exactly_once=True,
    )
    contents = session.views.tables.create(table.name, table.schema.to_arrow())
    try:
        session.backends.default = road.switches.backend
        job = submit_over_state(session, road, options, directory_name(name) if keeps else None)
    except PenstockError:
        session.views.tables.forget(table.name)
        session.catalog.drop_materialized_view(table.name)
        raise
    session.started[job.job_id] = Started(road, durable=keeps)
    session.views.fillings[table.name.lower()] = Filling(job, _followed(road.bound))
    EngineThread(target=_await_end, args=(job, contents), name=f"penstock-view-{table.name}").start()
    return job


def _await_end(job: Job, contents: MaterializedContents) -> None:
    job.wait(None)
    contents.finish(job.error)


def _followed(plan: LogicalPlan) -> frozenset[str]:
    tables: list[CatalogTable] = [node.table for node in plan.walk() if isinstance(node, Scan)]
    return frozenset(table.name.lower() for table in tables if isinstance(table, MaterializedView))


def drop_view(session: Session, node: nodes.DropMaterializedView) -> Result:
    """Stop the job of a view and forget its rows; SQL-1343 while another view follows it."""
    if node.if_exists and session.catalog.find(node.name.text) is None:
        return note_result(f"there is no materialized view {node.name}")
    view = session.catalog.materialized_view(node.name.text, node.name.span)
    _refuse_if_followed(session, view.name, node.name.span)
    filling = session.views.fillings.pop(view.name.lower(), None)
    if filling is not None:
        filling.job.cancel()
        filling.job.wait(None)
        if session.state_dir is not None:
            shutil.rmtree(session.state_dir / filling.job.job_id, ignore_errors=True)
    session.views.tables.forget(view.name)
    session.catalog.drop_materialized_view(view.name)
    session.keep_catalogs()
    return note_result(f"materialized view {node.name} dropped")


def _refuse_if_followed(session: Session, name: str, span: Span) -> None:
    followers = [
        other
        for other, filling in session.views.fillings.items()
        if name.lower() in filling.follows and other != name.lower()
    ]
    if followers:
        message = f"materialized view {name} cannot be dropped: {followers[0]} follows it"
        raise PenstockError(
            "SQL-1343", message, span=span, hint=f"drop {followers[0]} first", sqlstate="2BP01"
        )
