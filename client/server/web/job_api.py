"""The API of jobs: their facts, and the actions on them. An action is its SQL statement, so that it is
checked and logged like one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError
from penstock.client.monitoring.graph_facts import graph_facts
from penstock.client.monitoring.job_facts import job_facts, job_summary
from penstock.client.server.principal import PrincipalRole
from penstock.client.server.web.api_call import ApiCall, ApiRoute, BodyField
from penstock.client.server.web.json_rows import json_columns, json_schema
from penstock.client.server.web.stream_event import StreamEvent
from penstock.client.statements.jobs import find_job
from penstock.engine.job.metric_registry import metrics_of
from penstock.planner.logical.scan import Scan

if TYPE_CHECKING:
    from penstock.client.execution.planned_query import SubmittedJob
    from penstock.engine.job.job import Job

_KEPT_ROWS = 100
"""Bad and late rows that one answer shows; SQL reads all that are stored."""


def list_jobs(call: ApiCall) -> dict[str, Any]:
    """Return all jobs, newest first."""
    jobs = [{**asdict(job_summary(job)), "statement": _statement(call, job)} for job in call.engine.jobs()]
    return {"jobs": jobs[::-1]}


def show_job(call: ApiCall) -> dict[str, Any]:
    """Return all facts of a job, its graph, statement and settings."""
    job = _job(call)
    facts = job_facts(job)
    submitted = _submitted(call, job)
    return {
        **asdict(facts),
        "graph": asdict(graph_facts(job, facts)),
        "statement": _statement(call, job),
        "settings": dict(submitted.settings) if submitted is not None else {},
        "can_rescale": job.checkpoint_storage is not None and not job.state.terminal,
        "late_rows_table": f"{job.job_id}$late",
        "bad_rows_tables": _bad_rows_tables(job),
    }


def show_graph(call: ApiCall) -> dict[str, Any]:
    """Return the chains, operators and edges of a job."""
    job = _job(call)
    return asdict(graph_facts(job, job_facts(job)))


def show_checkpoints(call: ApiCall) -> dict[str, Any]:
    """Return the completed checkpoints of a job, and the parts of the newest."""
    facts = asdict(job_facts(_job(call)))
    return {name: facts[name] for name in ("checkpoints", "checkpoint_parts", "checkpoint_failure")}


def show_metrics(call: ApiCall) -> dict[str, Any]:
    """Return what SHOW METRICS FOR JOB returns."""
    job = _job(call)
    return {"metrics": [asdict(metric) for metric in metrics_of(job.job_id, job.metrics())]}


def show_errors(call: ApiCall) -> dict[str, Any]:
    """Return the failure of a job, and its restarts and warnings."""
    facts = asdict(job_facts(_job(call)))
    return {"failure": facts["summary"]["failure"], "events": facts["events"]}


def show_rejected_rows(call: ApiCall) -> dict[str, Any]:
    """Return the last late rows of a job, and the last bad records of the tables it reads."""
    job = _job(call)
    late = [_stored_rows(call, f"{job.job_id}$late")] if job.metrics().late_rows else []
    bad = [_stored_rows(call, f"{table}$errors") for table in _bad_rows_tables(job)]
    return {"late": [one for one in late if one], "bad": [one for one in bad if one and one["columns"]]}


def _stored_rows(call: ApiCall, table: str) -> dict[str, Any] | None:
    name = table.replace("`", "``")
    try:
        cursor = call.session.connection.execute(f"SELECT * FROM `{name}` LIMIT {_KEPT_ROWS}")
        with cursor:
            rows = cursor.fetch_arrow_table(timeout=5.0)
            return {"table": table, "columns": json_schema(cursor.schema), "data": json_columns(rows)}
    # the table was dropped since, or no late row has columns to show
    except PenstockError as error:
        return {"table": table, "columns": [], "data": [], "note": error.message}


def watch_jobs(call: ApiCall) -> Iterator[StreamEvent]:
    """Yield the list of jobs, as often as the reader asks."""
    while True:
        yield StreamEvent("jobs", list_jobs(call), pause=True)


def watch_job(call: ApiCall) -> Iterator[StreamEvent]:
    """Yield the facts of a job until it has ended, as often as the reader asks."""
    job = _job(call)
    while True:
        # before the facts: those of an ended job are the last
        ended = job.state.terminal
        yield StreamEvent("job", show_job(call), pause=not ended)
        if ended:
            return


def cancel_job(call: ApiCall) -> dict[str, Any]:
    """Cancel a job: what is not committed is dropped."""
    return _act(call, "CANCEL JOB {job}", "cancelling jobs")


def stop_job(call: ApiCall) -> dict[str, Any]:
    """Stop a job after one more checkpoint."""
    return _act(
        call, "STOP JOB {job} WITH DRAIN" if call.flag("drain") else "STOP JOB {job}", "stopping jobs"
    )


def save_job(call: ApiCall) -> dict[str, Any]:
    """Take a savepoint of a job, which continues unless it is to stop."""
    directory = call.text("directory", "")
    begin, to = (
        ("STOP JOB {job} WITH SAVEPOINT", "")
        if call.flag("stop")
        else ("CREATE SAVEPOINT OF JOB {job}", " TO")
    )
    if not directory:
        return _act(call, begin, "savepoints")
    return _act(call, f"{begin}{to} {{directory}}", "savepoints", directory=directory)


def rescale_job(call: ApiCall) -> dict[str, Any]:
    """Continue a job at another parallelism, from a checkpoint it takes now."""
    # a number, so it may stand in the statement as it is
    return _act(call, f"ALTER JOB {{job}} SET PARALLELISM {call.number('parallelism')}", "rescaling jobs")


def _act(call: ApiCall, statement: str, what: str, **values: str) -> dict[str, Any]:
    """Run a statement about a job. The values are literals of SQL, whatever is in them."""
    call.require(PrincipalRole.RUN, what)
    job = _job(call)
    literals = {name: _literal(value) for name, value in {"job": job.job_id, **values}.items()}
    with call.session.connection.execute(statement.format(**literals)) as cursor:
        return {"note": cursor.note, "job": job.job_id, "state": str(job.state)}


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _job(call: ApiCall) -> Job:
    return find_job(call.engine.state, call.path["job"])


def _submitted(call: ApiCall, job: Job) -> SubmittedJob | None:
    return call.engine.state.jobs.submitted.get(job.job_id)


def _statement(call: ApiCall, job: Job) -> str:
    submitted = _submitted(call, job)
    return "" if submitted is None else submitted.statement


def _bad_rows_tables(job: Job) -> list[str]:
    """Return the tables that a job reads and whose bad records are stored."""
    specs = [] if job.graph is None else [spec for chain in job.graph.chains for spec in chain.operators]
    nodes = [spec.node for spec in specs if isinstance(spec.node, Scan)]
    return sorted({node.table.name for node in nodes if node.table.options.get("on-error") == "table"})


_DRAIN = BodyField(
    "drain", "boolean", "let all windows close first; the job cannot be resumed then", required=False
)
_DIRECTORY = BodyField(
    "directory", "string", "where the savepoint is written; by default that of the setting", required=False
)
_STOP = BodyField("stop", "boolean", "stop the job with it; else the job continues", required=False)
_PARALLELISM = BodyField("parallelism", "integer", "subtasks of each operator")
JOB_ROUTES = (
    ApiRoute("GET", "/jobs", "listJobs", "All jobs, newest first.", list_jobs),
    ApiRoute("GET", "/jobs/stream", "watchJobs", "All jobs, once a second.", watch_jobs, streams=True),
    ApiRoute("GET", "/jobs/{job}", "showJob", "All facts of one job.", show_job),
    ApiRoute(
        "GET", "/jobs/{job}/stream", "watchJob", "The facts of a job until it ends.", watch_job, streams=True
    ),
    ApiRoute("GET", "/jobs/{job}/graph", "showGraph", "Chains, operators and edges.", show_graph),
    ApiRoute("GET", "/jobs/{job}/checkpoints", "showCheckpoints", "The checkpoints.", show_checkpoints),
    ApiRoute("GET", "/jobs/{job}/metrics", "showMetrics", "The rows of SHOW METRICS.", show_metrics),
    ApiRoute("GET", "/jobs/{job}/errors", "showErrors", "The failure, restarts and warnings.", show_errors),
    ApiRoute(
        "GET",
        "/jobs/{job}/rejected-rows",
        "showRejectedRows",
        "Late rows, and records that could not be read.",
        show_rejected_rows,
    ),
    ApiRoute(
        "POST", "/jobs/{job}/cancel", "cancelJob", "Cancel: what is not committed is dropped.", cancel_job
    ),
    ApiRoute("POST", "/jobs/{job}/stop", "stopJob", "Stop after one more checkpoint.", stop_job, (_DRAIN,)),
    ApiRoute("POST", "/jobs/{job}/savepoint", "saveJob", "Take a savepoint.", save_job, (_DIRECTORY, _STOP)),
    ApiRoute(
        "POST",
        "/jobs/{job}/rescale",
        "rescaleJob",
        "Continue at another parallelism.",
        rescale_job,
        (_PARALLELISM,),
    ),
)
