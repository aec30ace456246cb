"""The details beside the road: what the settings say to the planner, and how a plan becomes a result."""

from __future__ import annotations

import itertools
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Schema
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.client.result import Result, Shape, note_result
from penstock.client.result_stream import BackendFeed, JobFeed, TableFeed
from penstock.optimizer.exchange_placement import lay_edges
from penstock.optimizer.properties.distribution import is_gathered_by
from penstock.optimizer.properties.plan_properties import PlanFacts
from penstock.planner.expressions.nodes import SortKey
from penstock.planner.logical.plan import Limit, LogicalPlan, Project, Sink, Sort, TopN
from penstock.planner.physical.late_rows_table import late_tables
from penstock.planner.physical.operator_specs import JobGraph, SinkSpec
from penstock.planner.physical.physical_planner import plan_job

if TYPE_CHECKING:
    from penstock.client.history_planning import History
    from penstock.client.session import Session
    from penstock.engine.api.job_options import JobOptions
    from penstock.engine.bounded.backend import BoundedBackends
    from penstock.engine.job.job import Job

FOREIGN_STATE = "STA-3007"


@dataclass(frozen=True)
class Switches:
    """What the settings say to the planner."""

    disabled_rules: tuple[str, ...]
    mode: str
    parallelism: int
    max_parallelism: int
    backend: str
    time_zone: str

    @classmethod
    def of(cls, settings: Settings, mode: str | None = None, backend: str | None = None) -> Switches:
        """Read them from a session's settings; ``mode`` and ``backend`` overrule those of that name."""
        names = str(settings.get("optimizer.disabled-rules")).split(",")
        disabled = [name.strip() for name in names if name.strip()]
        if not settings.get("optimizer.split-aggregates"):
            disabled.append("split_aggregates")
        if not settings.get("optimizer.runtime-filters"):
            disabled.append("runtime_filters")
        return cls(
            tuple(disabled),
            mode or str(settings.get("execution.runtime-mode")),
            int(settings.get("parallelism.default")),
            int(settings.get("pipeline.max-parallelism")),
            backend or str(settings.get("bounded.backend")),
            str(settings.get("table.local-time-zone")),
        )


@dataclass(frozen=True)
class Road:
    """A planned query, stage by stage. Without a graph the bounded backend runs ``plan`` whole; else ``laid``
    has edges and ``graph`` chains.

    ``history``: what is loaded before ``graph`` runs.
    """

    bound: LogicalPlan
    plan: LogicalPlan
    switches: Switches
    facts: PlanFacts = field(default_factory=PlanFacts)
    laid: LogicalPlan | None = None
    graph: JobGraph | None = None
    history: History | None = None


@dataclass(frozen=True)
class Started:
    """What a job was made of. ``sink_number``: that of the collect sink of a query; ``durable``: it keeps
    its state beyond this process.
    """

    road: Road
    sink_number: int | None = None
    durable: bool = False

    @property
    def ends(self) -> bool:
        """Whether all its sources end by themselves."""
        return self.road.facts.finite(self.road.plan)


def order_of(plan: LogicalPlan) -> tuple[SortKey, ...]:
    """Return the order asked of a whole result: the keys of the Sort or TopN under its sink."""
    top = plan.inputs[0] if isinstance(plan, Sink) else plan
    return top.keys if isinstance(top, Sort | TopN) else ()


def backend_result(road: Road, backends: BoundedBackends) -> Result:
    """Return the result of a query that the bounded backend runs whole; its rows come in the asked order."""
    query, sink = road.plan.inputs[0], road.plan
    if isinstance(sink, Sink) and sink.table is not None:
        return _written(sink, road, backends)
    rows = backends.for_plan(query, road.switches.backend).run(query, time_zone=road.switches.time_zone)
    return Result(Shape(query.schema, order=order_of(road.plan)), BackendFeed(rows))


def _written(sink: Sink, road: Road, backends: BoundedBackends) -> Result:
    """Have Spark write the rows of a query to a table of its own, and wait for it; whatever interrupts the
    wait cancels it.
    """
    assert sink.table is not None
    writing = backends.for_plan(road.plan).run(road.plan, time_zone=road.switches.time_zone)
    try:
        for _ in writing:
            raise AssertionError("an INSERT gives no rows")
    finally:
        writing.close()
    return note_result(f"Spark wrote the rows to {sink.table.options['table-name']}")


def submit(road: Road, session: Session) -> Result:
    """Submit a job and return its result: the rows of a query as they come, or just the job of an INSERT."""
    from penstock.engine.api.job_options import JobOptions

    assert road.graph is not None
    session.backends.default = road.switches.backend
    name = str(session.settings.get("pipeline.name")) or name_of(road.plan)
    options = JobOptions.from_settings(session.settings, name=name, state_dir=session.state_dir)
    if isinstance(road.plan, Sink) and road.plan.table is None:
        number = session.next_result_number()
        graph, sink_id = with_sink_of_its_own(road.graph, number)
        job = session.job_manager.submit(graph, replace(options, state_dir=None, savepoint=None))
        session.started[job.job_id] = Started(road, number)
        _keep_late_rows(session, graph, job)
        shape = shape_of(road)
        return Result(shape, JobFeed(job, session.channels, sink_id, shape.limit), job)
    job_id = session.job_id_for(name, options.state_dir) if options.state_dir else None
    options = replace(
        options,
        take_over=session.take_over,
        record=session.spoken.record(session, name) if options.state_dir else None,
    )
    told = _told_at_start(road, options, job_id)
    try:
        job = submit_over_state(session, road, options, job_id)
    except PenstockError:
        if job_id is not None:
            session.give_back_id(name, job_id)
        raise
    job.told_at_start = told
    session.started[job.job_id] = Started(road, durable=options.state_dir is not None)
    _keep_late_rows(session, road.graph, job)
    return Result(Shape(Schema(())), TableFeed(), job)


def _told_at_start(road: Road, options: JobOptions, job_id: str | None) -> tuple[str, ...]:
    """What whoever starts a job should know when it has no state of its own: of other jobs that keep some."""
    # it reads checkpoints: the engine is not loaded before a job starts
    from penstock.client.recorded_jobs import left_behind

    if (
        options.state_dir is None
        or job_id is None
        or options.savepoint is not None
        or not options.state_dir.is_dir()
    ):
        return ()
    return left_behind(
        options.state_dir, job_id, options.name, [table.name.lower() for table in tables_of(road.plan)]
    )


def _keep_late_rows(session: Session, graph: JobGraph, job: Job) -> None:
    """Let the late rows of a job be read, by its id and by its name (of the last job that has it)."""
    for table in late_tables(graph, job.job_id, job.name):
        session.catalog.keep_late_rows(table)


def graph_at(started: Started, parallelism: int, settings: Settings, span: Span) -> JobGraph:
    """Return a running job's plan laid for another parallelism. SQL-1402 for more subtasks than there are
    key groups.
    """
    road, most = started.road, started.road.switches.max_parallelism
    if parallelism > most:
        hint = (
            "there are as many key groups, fixed for the life of the job's state: 'pipeline.max-parallelism'"
        )
        raise PenstockError("SQL-1402", f"the job's parallelism is at most {most}", span=span, hint=hint)
    laid = lay_edges(road.plan, parallelism, facts=road.facts)
    graph = plan_job(laid, road.facts, parallelism=parallelism, max_parallelism=most, settings=settings)
    return graph if started.sink_number is None else with_sink_of_its_own(graph, started.sink_number)[0]


def submit_over_state(session: Session, road: Road, options: JobOptions, job_id: str | None) -> Job:
    """Submit a job that may have a state; one of another query is set aside when the session may drop it."""
    assert road.graph is not None
    graph, history = road.graph, None if road.history is None else road.history.graph
    try:
        return session.job_manager.submit(graph, options, job_id, history)
    except PenstockError as error:
        if (
            error.code != FOREIGN_STATE
            or not session.drop_foreign_state
            or options.state_dir is None
            or job_id is None
        ):
            raise
    held = options.state_dir / job_id
    number = next(n for n in itertools.count(1) if not held.with_name(f"{job_id}.dropped-{n}").exists())
    held.rename(held.with_name(f"{job_id}.dropped-{number}"))
    return session.job_manager.submit(graph, options, job_id, history)


def shape_of(road: Road) -> Shape:
    """Return what is known of a streamed result before its first row."""
    plan, facts = road.plan, road.facts
    top = plan.inputs[0]
    insert_only = facts.insert_only(top)
    key = None if insert_only else facts.upsert_key(top)
    limit = None if facts.finite(top) or not insert_only else limit_of(top)
    in_order = key is not None and (
        road.switches.parallelism == 1 or (road.laid is not None and is_gathered_by(road.laid.inputs[0], key))
    )
    update_key = key if in_order else None
    return Shape(
        top.schema,
        facts.finite(top),
        insert_only,
        key,
        order_of(plan),
        streamed=True,
        limit=limit,
        update_key=update_key,
    )


def limit_of(query: LogicalPlan) -> int | None:
    """Return how many rows a query gives at most because its last word is LIMIT."""
    while isinstance(query, Project):
        query = query.input
    return query.limit if isinstance(query, Limit) else None


def name_of(plan: LogicalPlan) -> str:
    """Return a job's name when nobody gave one: what it fills."""
    tables = [table.name for table in tables_of(plan)]
    return f"insert-into-{'-'.join(tables)}" if tables else "query"


def tables_of(plan: LogicalPlan) -> list[CatalogTable]:
    """Return the tables a plan writes to."""
    return [sink.table for sink in plan.walk() if isinstance(sink, Sink) and sink.table is not None]


def with_sink_of_its_own(graph: JobGraph, number: int) -> tuple[JobGraph, str]:
    """Give the collect sink of a job an id no other job has (the same query may run twice); return the
    graph and the id.
    """
    found = [
        spec.operator_id
        for chain in graph.chains
        for spec in chain.operators
        if isinstance(spec, SinkSpec) and spec.table is None
    ]
    sink_id = f"{found[0]}-{number}"

    def renamed(spec: Any) -> Any:
        return (
            replace(spec, operator_id=sink_id) if isinstance(spec, SinkSpec) and spec.table is None else spec
        )

    chains = tuple(
        replace(chain, operators=tuple(renamed(spec) for spec in chain.operators)) for chain in graph.chains
    )
    return replace(graph, chains=chains), sink_id
