"""How the job of an INSERT ends for whoever started it: waited for, refused as unfinished, or stopped with
its session.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.result import Result, note_result
from penstock.client.statements.jobs import rows_out
from penstock.engine.api.clock import SystemClock
from penstock.engine.job.job_state import JobState

if TYPE_CHECKING:
    from penstock.client.session import Session
    from penstock.engine.job.job import Job

HoldJob = Callable[["Job | None"], None]
STOP_S = 60.0
CANCEL_S = 10.0
_KEEP = "penstock run --state DIR, or SET 'execution.checkpointing.dir', lets it go on"


def hold_no_job(job: Job | None) -> None:
    """Take a job that is waited for where nobody wants to cancel it."""


def start_or_finish(session: Session, result: Result, hold: HoldJob) -> Result:
    """Wait for the job of an INSERT whose sources all end, and raise what it failed of; of any other say that
    it was started.

    ``table.dml-sync`` overrules: true waits always, false never.
    """
    job, sync = result.job, session.settings.get("table.dml-sync")
    assert job is not None
    waits = session.started[job.job_id].ends if sync == "automatic" else sync == "true"
    if not waits:
        changes = () if job.state_diff is None else job.state_diff.changes
        return note_result(
            "; ".join([f"job {job.job_id} started", *job.told_at_start, *map(str, changes)]), job
        )
    hold(job)
    session.heard.add(job.job_id)
    try:
        note = session.wait_for(job)
    finally:
        hold(None)
    written = rows_out(job.metrics()) if job.counts_all else -1
    return replace(note_result(note, job), rowcount=written)


def wait_for_job(job: Job) -> str:
    """Wait for the end of a job and return a sentence about it; Ctrl-C cancels it. Raises what
    ``check_end`` does.
    """
    try:
        job.wait(None)
    except KeyboardInterrupt:
        job.cancel()
        job.wait(CANCEL_S)
        raise
    check_end(job)
    return (
        f"job {job.job_id} had finished before: nothing was written"
        if job.finished_before
        else f"job {job.job_id} {job.state.lower()}"
    )


def check_end(job: Job) -> None:
    """Raise what a job failed of; RUN-2903 when it was cancelled or stopped, for then not all its rows are
    written.
    """
    if job.error is not None:
        raise job.error
    if job.state is JobState.CANCELED or job.stopped:
        how = "stopped" if job.stopped else "cancelled"
        message = f"job {job.job_id} was {how} before all its rows were written"
        hint = "run the statement again; with a state directory it goes on from its last checkpoint"
        raise PenstockError("RUN-2903", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="57014")


def stop_jobs(session: Session) -> None:
    """Stop the running jobs of a session that is closed, each with a last checkpoint, and report each INSERT
    that did not end by itself.

    An INSERT that failed is reported too, unless its error was raised before. A query is cancelled: nobody
    will read its rows. A job that waits for its restart is cancelled as well. A job without state is stopped
    all the same: what it has read by then is committed.
    """
    filling = session.filling_jobs()
    views = [
        filled.job for filled in session.views.fillings.values() if session.started[filled.job.job_id].durable
    ]
    running = [job for job in (*filling, *views) if not job.state.terminal]
    for job in running:
        if job.state is JobState.RESTARTING:
            job.cancel()
        else:
            job.stop()
    clock = SystemClock()
    until_ms = clock.monotonic_ms() + STOP_S * 1e3
    for job in running:
        if not job.wait(max(0.0, until_ms - clock.monotonic_ms()) / 1e3):
            job.cancel()
            job.wait(CANCEL_S)
    for job in filling:
        if job in running or (job.error is not None and job.job_id not in session.heard):
            sentence = _told(job, durable=session.started[job.job_id].durable)
            if sentence is not None:
                session.tell(sentence)


def _told(job: Job, *, durable: bool) -> str | None:
    """Say of a job that was stopped whether it can go on, and from where; None of one that has ended by
    itself or on request.
    """
    if job.error is not None:
        return f"job {job.job_id} failed: {job.error.code}: {job.error.message}"
    if job.state is JobState.FINISHED and not job.stopped:
        return None
    if not job.state.terminal:
        return (
            f"warning: job {job.job_id} does not end: something of the program or of another system holds it"
        )
    how = "stopped" if job.stopped else "cancelled"
    if not durable:
        return (
            f"warning: job {job.job_id} was {how} before its sources ended, and keeps no state to go on "
            f"from ({_KEEP})"
        )
    newest = job.metrics().last_checkpoint
    if newest is None:
        return f"warning: job {job.job_id} was {how} without a checkpoint; the same statement begins anew"
    return f"job {job.job_id} was {how}; the same statement goes on from checkpoint {newest.checkpoint_id}"


def tell_stderr(sentence: str) -> None:
    """Say a sentence where programs say what is no data, if there is such a place."""
    if sys.stderr is not None:
        sys.stderr.write(f"penstock: {sentence}\n")
        sys.stderr.flush()
