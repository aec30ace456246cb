"""Start a planned query on the bounded backend, or submit it as a job."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Schema
from penstock.catalog.secrets import masked
from penstock.catalog.settings import Settings
from penstock.catalog.tables import CatalogTable
from penstock.client.execution.insert_overwrite import (
    finish_interrupted_overwrites,
    overwrites,
    submit_overwrite,
)
from penstock.client.execution.planned_query import PlannedQuery, SubmittedJob
from penstock.client.execution.session_state import SessionState
from penstock.client.execution.statement_log import job_record
from penstock.client.results.result import Result, Shape, note_result
from penstock.client.results.result_stream import BackendStream, JobStream, TableStream
from penstock.optimizer.exchange_placement import lay_edges
from penstock.optimizer.properties.distribution import is_gathered_by
from penstock.planner.expressions.nodes import SortKey
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Limit, Sort, TopN
from penstock.planner.physical.chaining import subtasks
from penstock.planner.physical.late_rows_table import late_tables
from penstock.planner.physical.operator_specs import JobGraph
from penstock.planner.physical.physical_planner import plan_job
from penstock.planner.physical.statement_time import at_statement_time, goes_by_clock

if TYPE_CHECKING:
    from penstock.engine.api.job_options import JobOptions
    from penstock.engine.bounded.registry import BoundedBackends
    from penstock.engine.job.job import Job

# the state directory has the state of another query
FOREIGN_STATE = "STA-3007"


def start_on_backend(query: PlannedQuery, state: SessionState) -> Result:
    """Start a query that the bounded backend runs whole and return its result. Its rows come in their
    final order.
    """
    sink, options, backends = query.plan, query.options, state.backends
    if isinstance(sink, Sink) and sink.changes is not None:
        return _change_in_database(sink)
    if isinstance(sink, Sink) and sink.table is not None:
        return _write_to_spark(sink, query, backends)
    rows_plan = sink.inputs[0]
    backend = backends.for_plan(rows_plan, options.backend)
    rows = backend.run(rows_plan, time_zone=options.time_zone, memory_bytes=state.memory.limit_bytes)
    stream = BackendStream(rows, backend.name)
    state.add_stream(stream)
    return Result(Shape(rows_plan.schema, order=final_order(sink)), stream, memory=state.memory)


def _change_in_database(sink: Sink) -> Result:
    """Have a database carry out an UPDATE or DELETE of its table, and wait for it."""
    from penstock.engine.connectors.database.row_changes import changed_rows
    from penstock.engine.connectors.row_replacement.replaced_table import RowCounts

    assert sink.changes is not None
    count = changed_rows(sink)
    counts = RowCounts(deleted=count) if sink.changes.kind == "DELETE" else RowCounts(updated=count)
    return replace(note_result(str(counts)), rowcount=counts.total)


def _write_to_spark(sink: Sink, query: PlannedQuery, backends: BoundedBackends) -> Result:
    """Have Spark write the rows of a query to a table of its own, and wait for it. An interrupt of the
    wait cancels the query.
    """
    assert sink.table is not None
    writing = backends.for_plan(query.plan).run(query.plan, time_zone=query.options.time_zone)
    try:
        # reading to the end is the wait: Spark writes, and no row comes back
        for _ in writing:
            raise AssertionError("an INSERT returns no rows")
    finally:
        writing.close()
    return note_result(f"Spark wrote the rows to {sink.table.options['table-name']}")


def submit_job(query: PlannedQuery, state: SessionState) -> Result:
    """Submit a job and return its result: the rows of a query as they come, or just the job of an INSERT."""
    from penstock.engine.api.job_options import JobOptions

    query = _at_one_time(query, state)
    name = str(state.settings.get("pipeline.name")) or default_job_name(query.plan)
    options = JobOptions.from_settings(state.settings, name=name, state_dir=state.state_dir)
    # VERIFY and EXPLAIN name another backend than the settings
    options = replace(options, bounded_backend=query.options.backend)
    # a sink without a table is the client: the statement is a SELECT
    if isinstance(query.plan, Sink) and query.plan.table is None:
        return _submit_query(query, state, options)
    if overwrites(query):
        result = submit_overwrite(query, state, options)
        assert result.job is not None
        state.engine.forget_ended_jobs()
        state.jobs.submitted[result.job.job_id] = submitted_job(query, state)
        return result
    return _submit_insert(query, state, options)


def _at_one_time(query: PlannedQuery, state: SessionState) -> PlannedQuery:
    """Return a query over bounded tables with the statement's time in place of the clock. One that streams by
    the user's wish, or by the clock, reads it for each batch of rows.
    """
    mode = query.options.mode
    # in batch mode a recording, such as datagen with an end, is a bounded table too
    bounded = mode == "batch" or (mode != "streaming" and query.facts.bounded(query.plan))
    if not bounded or query.graph is None or goes_by_clock(query.plan):
        return query
    now_ms = state.jobs.manager.wall_ms()
    graph = at_statement_time(query.graph, now_ms, query.options.time_zone)
    return replace(query, graph=graph, statement_ms=now_ms)


def _submit_query(query: PlannedQuery, state: SessionState, options: JobOptions) -> Result:
    """Submit a query for its rows. They go to this process only, so its job writes no durable state."""
    assert query.graph is not None
    # two runs of one SELECT have equal operator ids, and their rows must not meet in one channel
    number = state.jobs.next_sink_number()
    graph, sink_id = with_unique_sink(query.graph, number)
    # rows that the client has fetched cannot be taken back, so a restore from a checkpoint would repeat them
    job = state.jobs.manager.submit(graph, replace(options, state_dir=None, savepoint=None))
    state.jobs.submitted[job.job_id] = submitted_job(query, state, sink_number=number)
    _declare_late_rows(state, graph, job)
    shape = result_shape(query)
    state.engine.forget_ended_jobs()
    stream = JobStream(job, state.channels, sink_id, shape.limit)
    state.add_stream(stream)
    result = Result(shape, stream, job, memory=state.memory)
    # bounded by nature, and no stream by the user's wish: its rows are those of a table, without changes
    bounded = query.options.mode != "streaming" and query.facts.bounded(query.plan)
    return result.as_bounded() if bounded and shape.folds else result


def _submit_insert(query: PlannedQuery, state: SessionState, options: JobOptions) -> Result:
    assert query.graph is not None
    job_id, record, is_resumable = None, None, True
    if options.state_dir:
        job_id = state.resume_as or state.jobs.assign_id(options.name, options.state_dir)
        record = job_record(state, options.name)
        is_resumable = record is not None and not record.withheld
    # the record has the statements from which `penstock recover` starts the job again
    options = replace(options, take_over=state.take_over, record=record)
    # before the start: afterwards the job itself would be among those that write to the tables
    notes = _start_notes(query, options, job_id)
    finish_interrupted_overwrites(query)
    if state.engine.is_shared and not is_resumable:
        notes += ("the server does not resume it after a restart: its text has parameters or secrets",)
    try:
        job, query = submit_with_state(state, query, options, job_id)
    except PenstockError:
        if job_id is not None and state.resume_as is None:
            # the id, and with it the state directory, is free for the next job of that name
            state.jobs.release_id(options.name, job_id)
        raise
    job.start_notes = notes
    state.engine.forget_ended_jobs()
    state.jobs.submitted[job.job_id] = submitted_job(query, state, durable=options.state_dir is not None)
    assert query.graph is not None
    _declare_late_rows(state, query.graph, job)
    return Result(Shape(Schema(())), TableStream(), job)


def submitted_job(
    query: PlannedQuery, state: SessionState, *, sink_number: int | None = None, durable: bool = False
) -> SubmittedJob:
    """Return what a session keeps of a job it submits now."""
    settings = state.settings
    return SubmittedJob(
        # the job may outlive the session that could plan it as before
        replace(query, former=None),
        sink_number,
        durable,
        masked(state.statement_log.current.strip()),
        # shown: without secrets; defaults are those of the version, and no choice of the job
        tuple((key, settings.shown(key)) for key, _ in settings.items() if settings.is_set(key)),
        state.number,
    )


def _start_notes(query: PlannedQuery, options: JobOptions, job_id: str | None) -> tuple[str, ...]:
    """Return notes for the start of a job: other jobs that have written to its tables, where it has no state;
    another time zone than before, where it has.
    """
    # a savepoint says which state the job resumes from; without a directory there are no other jobs
    if options.state_dir is None or job_id is None or options.savepoint is not None:
        return ()
    # it reads checkpoints: the engine is not loaded before a job starts
    from penstock.client.execution.recorded_jobs import changed_zone, unfinished_writers
    from penstock.engine.storage.locations import exists

    if not exists(options.state_dir):
        return ()
    tables = [table.name.lower() for table in sink_tables(query.plan)]
    writers = unfinished_writers(options.state_dir, job_id, options.name, tables)
    return writers + changed_zone(options.state_dir, job_id, options.time_zone)


def _declare_late_rows(state: SessionState, graph: JobGraph, job: Job) -> None:
    """Let the late rows of a job be read, by its id and by its name (of the last job that has it)."""
    for table in late_tables(graph, job.job_id, job.name):
        state.catalog.keep_late_rows(table)


def rescaled_graph(submitted: SubmittedJob, parallelism: int, settings: Settings, span: Span) -> JobGraph:
    """Return the graph of a running job at another parallelism. SQL-1402 for more subtasks than there are
    key groups.
    """
    query, most = submitted.query, submitted.query.options.max_parallelism
    # a key group is the smallest part of a keyed state: a subtask without one would have no work
    if parallelism > most:
        hint = (
            "there are as many key groups, fixed for the life of the job's state: 'pipeline.max-parallelism'"
        )
        raise PenstockError("SQL-1402", f"the job's parallelism is at most {most}", span=span, hint=hint)
    # the optimized plan stays, so that operator ids and state fit; only the exchanges are placed anew
    with_exchanges = lay_edges(query.plan, parallelism, facts=query.facts)
    graph = plan_job(
        with_exchanges, query.facts, parallelism=parallelism, max_parallelism=most, settings=settings
    )
    if query.statement_ms is not None:
        graph = at_statement_time(graph, query.statement_ms, query.options.time_zone)
    # the same number: the client reads the channel of the first graph
    return graph if submitted.sink_number is None else with_unique_sink(graph, submitted.sink_number)[0]


def submit_with_state(
    state: SessionState, query: PlannedQuery, options: JobOptions, job_id: str | None
) -> tuple[Job, PlannedQuery]:
    """Submit a job that may have a state; a foreign state is renamed where the session may drop it. Return
    the job and the query as it runs: as an older version planned it, where the state is of such a plan.
    """
    assert query.graph is not None
    graph, history = query.graph, None if query.history is None else query.history.graph
    former = None if query.former is None else _FormerPlans(query.former)
    try:
        job = state.jobs.manager.submit(graph, options, job_id, history, former)
        if job.former_plan is not None and former is not None:
            return job, former.queries[job.former_plan]
        return job, query
    except PenstockError as error:
        if (
            # only the state of another query, only where the user allowed the drop, and only a state on disk
            error.code != FOREIGN_STATE
            or not state.drop_foreign_state
            or options.state_dir is None
            or job_id is None
        ):
            raise
    from penstock.engine.storage.locations import exists, set_aside

    # renamed, not deleted: who dropped the wrong state can put it back
    old = options.state_dir / job_id
    number = next(n for n in itertools.count(1) if not exists(old.with_name(f"{job_id}.dropped-{n}")))
    set_aside(old, old.with_name(f"{job_id}.dropped-{number}"))
    return state.jobs.manager.submit(graph, options, job_id, history), query


class _FormerPlans:
    """Plans a query as older versions did, when a checkpoint asks for it. ``queries``: these plans."""

    def __init__(self, plans: Callable[[], Iterator[PlannedQuery]]) -> None:
        self._plans = plans
        self.queries: list[PlannedQuery] = []

    def __call__(self) -> Iterator[JobGraph]:
        for query in self._plans():
            self.queries.append(query)
            assert query.graph is not None
            yield query.graph


def final_order(plan: LogicalPlan) -> tuple[SortKey, ...]:
    """Return the order asked of a whole result: the keys of the Sort or TopN under its sink."""
    # only the top decides: the ORDER BY of a subquery is not the order of the result
    top = plan.inputs[0] if isinstance(plan, Sink) else plan
    return top.keys if isinstance(top, Sort | TopN) else ()


def result_shape(query: PlannedQuery) -> Shape:
    """Return the shape of a streamed result."""
    plan, facts = query.plan, query.facts
    top = plan.inputs[0]
    insert_only = facts.insert_only(top)
    shown = len(top.schema) - (plan.order_columns if isinstance(plan, Sink) else 0)
    # no row is replaced: a key is of no use to the reader. Nor is one with columns that it does not see
    key = None if insert_only else facts.upsert_key(top)
    key = None if key is not None and any(index >= shown for index in key) else key
    # a finite query ends by itself; where rows change, the first n rows are not the last word
    limit = None if facts.finite(top) or not insert_only else trailing_limit(top)
    # a -U meets its +U only if one task emits both: a single subtask, or a gather by the key
    in_order = key is not None and (
        _runs_in_one_task(query)
        or (query.with_exchanges is not None and is_gathered_by(query.with_exchanges.inputs[0], key))
    )
    update_key = key if in_order else None
    return Shape(
        Schema(top.schema.fields[:shown]),
        facts.finite(top),
        insert_only,
        key,
        final_order(plan),
        streamed=True,
        limit=limit,
        update_key=update_key,
        order_fields=top.schema.fields[shown:],
    )


def _runs_in_one_task(query: PlannedQuery) -> bool:
    """Whether no operator of a query has several subtasks, be it by its table or by a hint."""
    plan = query.with_exchanges or query.plan
    return query.options.parallelism == 1 and all(subtasks(node, 1) == 1 for node in plan.walk())


def trailing_limit(query: LogicalPlan) -> int | None:
    """Return the LIMIT that is a query's last clause, if it has one."""
    # a projection changes no number of rows: SELECT a + 1 FROM (.. LIMIT 3) still returns three
    while isinstance(query, Project):
        query = query.input
    return query.limit if isinstance(query, Limit) else None


def default_job_name(plan: LogicalPlan) -> str:
    """Return the name of a job without 'pipeline.name': the tables it fills."""
    tables = [table.name for table in sink_tables(plan)]
    if isinstance(plan, Sink) and plan.changes is not None:
        return f"{plan.changes.kind.lower()}-{tables[0]}"
    return f"insert-into-{'-'.join(tables)}" if tables else "query"


def sink_tables(plan: LogicalPlan) -> list[CatalogTable]:
    """Return the tables a plan writes to."""
    return [sink.table for sink in plan.walk() if isinstance(sink, Sink) and sink.table is not None]


def with_unique_sink(graph: JobGraph, number: int) -> tuple[JobGraph, str]:
    """Make the id of a job's collect sink unique, because the same query may run twice. Return the graph
    and the id.
    """
    sinks = [
        spec.operator_id
        for chain in graph.chains
        for spec in chain.operators
        if isinstance(spec.node, Sink) and spec.node.table is None
    ]
    sink_id = f"{sinks[0]}-{number}"

    def rename(spec: Any) -> Any:
        return (
            replace(spec, operator_id=sink_id)
            if isinstance(spec.node, Sink) and spec.node.table is None
            else spec
        )

    chains = tuple(
        replace(chain, operators=tuple(rename(spec) for spec in chain.operators)) for chain in graph.chains
    )
    return replace(graph, chains=chains), sink_id
