"""SHOW JOBS, DESCRIBE, STOP, CANCEL and ALTER JOB, CREATE SAVEPOINT."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.name_suggestions import did_you_mean
from penstock.client.execution.job_submission import rescaled_graph
from penstock.client.monitoring.event_time import moment_text
from penstock.client.results.result import Result, note_result, rows_result, text_rows
from penstock.engine.api.locations import parse_location
from penstock.engine.job.job_state import JobState
from penstock.planner.statements import nodes

if TYPE_CHECKING:
    from penstock.client.execution.session_state import SessionState
    from penstock.engine.api.locations import Location
    from penstock.engine.deploy.coordinator.worker_handle import WorkerProcess
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_metrics import OperatorReport
    from penstock.engine.job.savepoint_requests import SavepointRequest

# a last checkpoint of large state takes long
_STOP_TIMEOUT_S = 60.0
# how often a rescaled job is looked at
_LOOK_S = 0.01


def control_job(state: SessionState, node: nodes.JobControl) -> Result:
    """Describe, stop, cancel or rescale one job, or take a savepoint of it."""
    # before the match: an unknown id has one error for all five statements
    job = find_job(state, node.job_id, node.job_span)
    match node:
        case nodes.DescribeJob():
            return describe(job)
        case nodes.StopJob(savepoint=savepoint, drain=drain):
            return _stop(state, job, savepoint, drain=drain)
        case nodes.CreateSavepoint(savepoint=savepoint):
            return _create_savepoint(state, job, savepoint)
        case nodes.AlterJob(parallelism=parallelism, parallelism_span=span):
            return _rescale(state, job, parallelism, span)
        case nodes.CancelJob():
            job.cancel()
    # STOP and CANCEL return when the job has ended, so that the next statement sees its rows
    job.wait(_STOP_TIMEOUT_S)
    return note_result(f"job {job.job_id} is {job.state.lower()}", job)


def _stop(state: SessionState, job: Job, savepoint: nodes.Savepoint | None, *, drain: bool) -> Result:
    """Stop a job; for a savepoint, then copy its last checkpoint."""
    # checked before the job is stopped: a savepoint without a target must not cost the job
    directory = None if savepoint is None else _savepoint_directory(state, job, savepoint)
    job.stop(drain=drain)
    job.wait(_STOP_TIMEOUT_S)
    note = f"job {job.job_id} is {job.state.lower()}"
    if directory is None:
        return note_result(note, job)
    # the last checkpoint is not complete yet, and a savepoint is a copy of it
    if not job.state.terminal:
        hint = (
            "it stops when its last checkpoint is complete; that is in its state directory, and "
            "`penstock checkpoint` reads it"
        )
        raise PenstockError(
            "STA-3041",
            f"{note} after {_STOP_TIMEOUT_S:.0f} s, so no savepoint was written",
            hint=hint,
            sqlstate="57014",
        )
    # stopped by a failure: its last checkpoint is an older one than the user asked for
    if job.error is not None:
        raise job.error
    from penstock.engine.checkpoint.savepoints import write_savepoint

    assert job.checkpoint_storage is not None
    path = write_savepoint(job.checkpoint_storage, job.job_id, directory)
    return _savepoint_result(job, path, note)


def _create_savepoint(state: SessionState, job: Job, savepoint: nodes.Savepoint) -> Result:
    """Take a checkpoint of a running job and copy it; of a job that was stopped, copy its last one."""
    directory = _savepoint_directory(state, job, savepoint)
    from penstock.engine.checkpoint.savepoints import write_savepoint

    assert job.checkpoint_storage is not None
    if job.state.terminal:
        if not job.stopped:
            raise _ended(job)
        path = write_savepoint(job.checkpoint_storage, job.job_id, directory)
        return _savepoint_result(job, path, f"job {job.job_id} is {job.state.lower()}")
    request = job.take_savepoint()
    try:
        checkpoint_id = _await_checkpoint(job, request)
        # on this thread: the job continues, and its next checkpoints do not wait for the copy
        path = write_savepoint(job.checkpoint_storage, job.job_id, directory, checkpoint_id)
    finally:
        request.release()
    return _savepoint_result(job, path, f"job {job.job_id} is {job.state.lower()}")


def _await_checkpoint(job: Job, request: SavepointRequest) -> int:
    """Return the checkpoint of a savepoint, once it is durable."""
    deadline_s = time.monotonic() + _STOP_TIMEOUT_S
    # a job that has ended answers no request
    while not request.wait(_LOOK_S):
        if job.state.terminal and not request.wait(0):
            raise job.error or _ended(job)
        if time.monotonic() >= deadline_s:
            hint = "the job continues; SHOW JOBS and EXPLAIN WHY NO OUTPUT tell what holds its checkpoints"
            message = (
                f"job {job.job_id} is {job.state.lower()} and took no checkpoint in "
                f"{_STOP_TIMEOUT_S:.0f} s, so no savepoint was written"
            )
            raise PenstockError("STA-3041", message, hint=hint, sqlstate="57014")
    if request.checkpoint_id is None:
        assert request.error is not None
        raise request.error
    return request.checkpoint_id


def _savepoint_result(job: Job, path: Location, note: str) -> Result:
    return replace(text_rows(["savepoint"], [(str(path),)], f"{note}, its savepoint is {path}"), job=job)


def _ended(job: Job) -> PenstockError:
    hint = "a savepoint is taken of a job that runs or was stopped"
    return PenstockError("STA-3040", f"job {job.job_id} is {job.state.lower()}", hint=hint, sqlstate="55000")


def _rescale(state: SessionState, job: Job, parallelism: int, span: Span) -> Result:
    """Rescale a job to another parallelism, and wait until it runs."""
    if job.state.terminal:
        raise PenstockError(
            "STA-3040",
            f"job {job.job_id} is {job.state.lower()}",
            hint="only a job that runs can be rescaled",
            sqlstate="55000",
        )
    graph = rescaled_graph(state.jobs.submitted[job.job_id], parallelism, state.settings, span)
    state.jobs.manager.rescale(job, graph)
    deadline_s = time.monotonic() + _STOP_TIMEOUT_S
    # the tasks are deployed anew; RUNNING with the new graph is the end of it
    while not (job.graph is graph and job.state is JobState.RUNNING) and time.monotonic() < deadline_s:
        if job.wait(_LOOK_S):
            break
    if job.error is not None:
        raise job.error
    return note_result(f"job {job.job_id} is {job.state.lower()} at parallelism {parallelism}", job)


def _savepoint_directory(state: SessionState, job: Job, savepoint: nodes.Savepoint) -> Location:
    """Return where a savepoint goes; STA-3036 for a job without checkpoints, STA-3037 without a target."""
    if savepoint.path is not None:
        state.access.check_path("savepoint", savepoint.path)
    path = savepoint.path or str(state.settings.get("execution.checkpointing.savepoint-dir"))
    if not path:
        hint = (
            "write WITH SAVEPOINT 'path', CREATE SAVEPOINT OF JOB 'id' TO 'path', or "
            "SET 'execution.checkpointing.savepoint-dir'"
        )
        raise PenstockError("STA-3037", "the savepoint has no target directory", hint=hint, sqlstate="42601")
    if job.checkpoint_storage is None:
        hint = (
            "start jobs with --state DIR, or SET 'execution.checkpointing.interval', to be able to take "
            "savepoints of them"
        )
        raise PenstockError(
            "STA-3036",
            f"job {job.job_id} writes no checkpoints, so it cannot make a savepoint",
            hint=hint,
            sqlstate="55000",
        )
    return parse_location(path)


def find_job(state: SessionState, job_id: str, span: Span | None = None) -> Job:
    """Return a job by its id, or the last job of a name; CLI-6030 with the nearest id when there is none."""
    jobs = {job.job_id: job for job in state.jobs.all()}
    # a name may be that of several jobs, as in the name of the table of late rows the last one counts
    named = {job.name: job for job in jobs.values()}
    if (found := jobs.get(job_id) or named.get(job_id)) is not None:
        return found
    hint = did_you_mean(job_id, jobs, others=True) or "SHOW JOBS lists the jobs of this session"
    raise PenstockError("CLI-6030", f"there is no job '{job_id}'", hint=hint, span=span, sqlstate="42704")


def list_jobs(jobs: Sequence[Job]) -> Result:
    """Return one row per job: id, name, state and what it has counted."""
    # once a job, so that the columns of a row are of one moment
    figures = [job.metrics() for job in jobs]
    columns = {
        "job": pa.array([job.job_id for job in jobs], pa.string()),
        "name": pa.array([job.name for job in jobs], pa.string()),
        "state": pa.array([str(job.state) for job in jobs], pa.string()),
        "rows in": pa.array([figure.rows_in for figure in figures], pa.int64()),
        "rows out": pa.array([figure.rows_out for figure in figures], pa.int64()),
        "late rows": pa.array([figure.late_rows for figure in figures], pa.int64()),
        "state bytes": pa.array([figure.state_bytes for figure in figures], pa.int64()),
        "checkpoints": pa.array([figure.checkpoints_completed for figure in figures], pa.int64()),
    }
    return rows_result(pa.table(columns))


def describe(job: Job) -> Result:
    """Return the facts of one job and of each of its operators."""
    metrics = job.metrics()
    last = metrics.last_checkpoint
    facts: list[tuple[str, str | None]] = [
        ("job", job.job_id),
        ("name", job.name),
        ("state", str(job.state)),
        ("error", job.error.message if job.error else None),
        ("last failure", job.last_failure.message if job.last_failure else None),
        ("restarts", str(metrics.restarts)),
        ("rows in", str(metrics.rows_in)),
        ("rows out", str(metrics.rows_out)),
        ("late rows", str(metrics.late_rows)),
        ("windows closed", str(metrics.windows_closed)),
        ("watermark", moment_text(metrics.watermark_us)),
        ("checkpoints", f"{metrics.checkpoints_completed} completed, {metrics.checkpoints_failed} failed"),
        (
            "last checkpoint",
            f"{last.checkpoint_id}: {last.duration_ms:.0f} ms, {last.size_bytes:,} bytes, "
            f"{last.new_bytes:,} new"
            if last
            else None,
        ),
        (
            "rows in flight",
            f"{last.channel_state_rows:,} in the last checkpoint, {last.channel_state_bytes:,} bytes"
            if last and last.channel_state_rows
            else None,
        ),
    ]
    facts += [
        ("state of the former query", str(change))
        for change in (job.state_diff.changes if job.state_diff is not None else ())
    ]
    for operator in metrics.operators:
        counts = (
            f"{operator.rows_in} rows in, {operator.rows_out} out, {operator.late_rows} late, "
            f"{operator.state_entries} entries of state"
        )
        counts += f", {state_text(operator)}" if operator.state_bytes or operator.spilled_bytes else ""
        counts += "".join(
            f", {count} {name.replace('_', ' ')}" for name, count in sorted(operator.counters.items())
        )
        facts.append((f"{operator.name} × {operator.parallelism}", counts))
    facts += [(f"event {_wall_text(event.at_ms)}", f"{event.kind} {event.text}") for event in metrics.events]
    facts += worker_facts(job)
    for task in metrics.tasks:
        spent = sum(task.time) or 1.0
        shares = (
            f"{task.time.busy / spent:.0%} busy, {task.time.idle / spent:.0%} idle, "
            f"{task.time.backpressured / spent:.0%} backpressured"
        )
        barriers = (
            f"{task.alignment_ms:.0f} ms last alignment, {task.checkpoint_sync_ms_max:.1f} ms longest "
            "checkpoint sync"
        )
        facts.append((f"task {task.subtask} of {task.name}", f"{task.phase}, {shares}, {barriers}"))
    return text_rows(["fact", "value"], facts)


def _wall_text(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1e3, UTC):%Y-%m-%d %H:%M:%S}"


def worker_facts(job: Job) -> list[tuple[str, str | None]]:
    """Return a line for each worker process of a job, and one about lost workers; nothing for an embedded
    job.
    """
    workers = job.processes
    if workers is None:
        return []
    facts: list[tuple[str, str | None]] = [
        (
            f"worker {member.process.number}",
            f"pid {member.process.pid}, {member.process.state}, {slots_text(member.slots)}, "
            f"{last_heard_text(member.process)}",
        )
        for member in workers.members()
    ]
    lost = f"{len(workers.lost)}: {', '.join(workers.lost)}" if workers.lost else "0"
    refused = f"{workers.refusals.refused}, {workers.refusals.failed} that could not be accepted"
    stale = ("messages of deployments that are over", str(workers.stale_messages))
    return [*facts, ("workers lost", lost), stale, ("connections refused", refused)]


def slots_text(slots: Sequence[int]) -> str:
    """Return the numbers of slots in words."""
    return f"{'slot' if len(slots) == 1 else 'slots'} {', '.join(map(str, slots))}"


def last_heard_text(worker: WorkerProcess) -> str:
    """Return in words when a worker sent its last message."""
    return f"heard of {worker.silence_ms / 1e3:.1f} s ago"


def state_text(operator: OperatorReport) -> str:
    """Return how much memory, and how much of the disk, an operator's state takes."""
    spilled = f", {operator.spilled_bytes:,} bytes of it on disk" if operator.spilled_bytes else ""
    return f"{operator.state_bytes + operator.spilled_bytes:,} bytes{spilled}"
