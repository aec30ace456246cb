"""The ends of INSERT jobs: their statement waits for them, their session stops them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.client.execution.engine_jobs import CANCEL_S
from penstock.client.execution.pending_statement import HoldJob
from penstock.client.execution.session_state import SessionState
from penstock.client.results.result import Result, note_result
from penstock.engine.api.clock import SystemClock
from penstock.engine.job.job_state import JobState

if TYPE_CHECKING:
    from penstock.engine.connectors.row_replacement.replaced_table import RowCounts
    from penstock.engine.job.job import Job

STOP_S = 60.0  # a last checkpoint of large state takes long; then the job is cancelled
_STATE_HINT = "penstock run --state DIR, or SET 'execution.checkpointing.dir', makes it resumable"


def start_or_finish(state: SessionState, result: Result, hold: HoldJob) -> Result:
    """Wait for the job of an INSERT whose sources all end, and raise its error; report any other as
    started. ``table.dml-sync`` overrules: true waits always, false never.
    """
    job, sync = result.job, state.settings.get("table.dml-sync")
    assert job is not None
    # automatic: an INSERT over files waits, one over an endless stream returns its job
    waits = state.jobs.submitted[job.job_id].is_finite if sync == "automatic" else sync == "true"
    if not waits and result.publish is None:
        changes = () if job.state_diff is None else job.state_diff.changes
        return note_result(
            "; ".join([f"job {job.job_id} started", *job.start_notes, *map(str, changes)]), job
        )
    # from here another thread can cancel the job that this one waits for
    hold(job)
    # before the wait: its error is raised here, so close does not report it again
    state.jobs.reported.add(job.job_id)
    try:
        note = state.wait_for(job)
    finally:
        hold(None)
    changed = None if result.publish is None else _publish(result, job)
    # UPDATE, DELETE and MERGE: the rows that were changed, not those that the job wrote
    if changed is not None:
        return replace(note_result(str(changed), job), rowcount=changed.total)
    # a job that restarted or began with a state has not counted all rows: -1, unknown in PEP 249
    written = job.metrics().rows_out if job.counts_all else -1
    return replace(note_result(note, job), rowcount=written)


def _publish(result: Result, job: Job) -> RowCounts | None:
    """Replace what the job has written anew. CLI-6015 when it was stopped: not all rows are there."""
    assert result.publish is not None
    if job.stopped:
        raise PenstockError(
            "CLI-6015",
            f"job {job.job_id} was stopped before its end, so the old rows stay",
            hint="run the statement again",
            sqlstate="57014",
        )
    return result.publish()


def stop_jobs(state: SessionState) -> None:
    """Stop the running jobs of a session that closes, each with a last checkpoint, and report each INSERT
    that did not end by itself.

    An INSERT that failed is reported too, unless its error was raised before. A query is cancelled: nobody
    will read its rows. A job that waits for its restart is cancelled as well. A job without state is stopped
    too: its rows so far are committed.
    """
    inserts, views = state.insert_jobs(), state.durable_view_jobs()
    running = [job for job in (*inserts, *views) if not job.state.terminal]
    for job in running:
        # no task runs that could take a checkpoint
        if job.state is JobState.RESTARTING:
            job.cancel()
        else:
            job.stop()
    clock = SystemClock()
    # one deadline for all jobs together: they stop at the same time
    until_ms = clock.monotonic_ms() + STOP_S * 1e3
    for job in running:
        # all were asked to stop before the first wait, so the waits overlap
        if not job.wait(max(0.0, until_ms - clock.monotonic_ms()) / 1e3):
            job.cancel()
            job.wait(CANCEL_S)
    for job in inserts:
        # in the background: stopped just now, or failed without a statement that could raise the error
        if job in running or (job.error is not None and job.job_id not in state.jobs.reported):
            sentence = _end_report(job, durable=state.jobs.submitted[job.job_id].durable)
            if sentence is not None:
                state.report(sentence)


def _end_report(job: Job, *, durable: bool) -> str | None:
    """Return a sentence about a job that was stopped: whether it can be resumed, and from where. None for one
    that has ended by itself or on request.
    """
    if job.error is not None:
        return f"job {job.job_id} failed: {job.error.code}: {job.error.message}"
    # it ended by itself before the request arrived: nothing to report
    if job.state is JobState.FINISHED and not job.stopped:
        return None
    # neither stopped nor cancelled in time: a call into other code does not return
    if not job.state.terminal:
        return f"warning: job {job.job_id} does not end: the program or another system blocks it"
    how = "stopped" if job.stopped else "cancelled"
    if not durable:
        return (
            f"warning: job {job.job_id} was {how} before its sources ended, and has no state to "
            f"resume from ({_STATE_HINT})"
        )
    newest = job.metrics().last_checkpoint
    if newest is None:
        return (
            f"warning: job {job.job_id} was {how} without a checkpoint; the same statement starts "
            "without state"
        )
    return f"job {job.job_id} was {how}; the same statement resumes from checkpoint {newest.checkpoint_id}"
