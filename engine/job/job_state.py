"""The states of a job and the legal steps between them, in one table."""

from __future__ import annotations

from enum import StrEnum

from penstock.catalog.errors import Kind, PenstockError


class JobState(StrEnum):
    """Where a job stands."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    STOPPING = "STOPPING"
    FINISHED = "FINISHED"
    CANCELED = "CANCELED"
    FAILED = "FAILED"

    @property
    def terminal(self) -> bool:
        """Whether nothing more can happen to the job."""
        return not TRANSITIONS[self]


TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    JobState.CREATED: frozenset({JobState.RUNNING, JobState.FINISHED, JobState.CANCELED, JobState.FAILED}),
    JobState.RUNNING: frozenset(
        {JobState.RESTARTING, JobState.STOPPING, JobState.FINISHED, JobState.CANCELED, JobState.FAILED}
    ),
    # RESTARTING to FINISHED: a task failed after all was committed, while the end was being written down.
    JobState.RESTARTING: frozenset({JobState.RUNNING, JobState.FINISHED, JobState.CANCELED, JobState.FAILED}),
    JobState.STOPPING: frozenset(
        {JobState.RESTARTING, JobState.FINISHED, JobState.CANCELED, JobState.FAILED}
    ),
    JobState.FINISHED: frozenset(),
    JobState.CANCELED: frozenset(),
    JobState.FAILED: frozenset(),
}


def check_transition(old: JobState, new: JobState) -> None:
    """Raise INT-9010 when a job may not step from ``old`` to ``new``."""
    if new not in TRANSITIONS[old]:
        raise PenstockError(
            "INT-9010", f"a job cannot go from {old} to {new}", kind=Kind.INTERNAL, sqlstate="XX000"
        )
