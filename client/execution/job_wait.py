"""Waiting for the end of one job, and how sentences about jobs reach the user by default."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.job.job_state import JobState

if TYPE_CHECKING:
    from penstock.engine.job.job import Job

CANCEL_S = 10.0
"""How long a cancelled job may take to end before the caller goes on without it."""


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


def report_on_stderr(sentence: str) -> None:
    """Write a sentence to stderr; a program without one (``pythonw``) misses it."""
    if sys.stderr is not None:
        sys.stderr.write(f"penstock: {sentence}\n")
        sys.stderr.flush()
