"""The states of a job, of its tasks and of a requested stop, with tables of the legal transitions."""

from __future__ import annotations

from enum import Enum, StrEnum

from penstock.catalog.errors import Kind, PenstockError


class JobState(StrEnum):
    """The state of a job, as users see it. A terminal state is entered once its tasks are closed."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    STOPPING = "STOPPING"
    FINISHED = "FINISHED"
    CANCELED = "CANCELED"
    FAILED = "FAILED"

    @property
    def terminal(self) -> bool:
        """Whether no transition leaves this state."""
        return not TRANSITIONS[self]


TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    # FINISHED: it was finished by an earlier run.
    JobState.CREATED: frozenset({JobState.RUNNING, JobState.FINISHED, JobState.CANCELED, JobState.FAILED}),
    JobState.RUNNING: frozenset(
        {JobState.RESTARTING, JobState.STOPPING, JobState.FINISHED, JobState.CANCELED, JobState.FAILED}
    ),
    # RESTARTING to FINISHED: a task failed after all was committed, while the end was being written down.
    JobState.RESTARTING: frozenset({JobState.RUNNING, JobState.FINISHED, JobState.CANCELED, JobState.FAILED}),
    # Every stopping job may fail and restart; the request to stop survives that.
    JobState.STOPPING: frozenset(
        {JobState.RESTARTING, JobState.FINISHED, JobState.CANCELED, JobState.FAILED}
    ),
    JobState.FINISHED: frozenset(),
    JobState.CANCELED: frozenset(),
    JobState.FAILED: frozenset(),
}


class TasksPhase(Enum):
    """The tasks of a job's deployment, as its master sees them."""

    ABSENT = "absent"
    """None is deployed: before the first deployment, between two, and after the last."""
    RUNNING = "running"
    RELEASING = "releasing"
    """They are being closed; what they still report is ignored."""


TASKS_IN: dict[JobState, frozenset[TasksPhase]] = {
    JobState.CREATED: frozenset({TasksPhase.ABSENT}),
    # ABSENT: tasks are being made, or could not be made. RELEASING: the job's end has been decided on.
    JobState.RUNNING: frozenset(TasksPhase),
    JobState.STOPPING: frozenset(TasksPhase),
    JobState.RESTARTING: frozenset({TasksPhase.ABSENT, TasksPhase.RELEASING}),
    JobState.FINISHED: frozenset({TasksPhase.ABSENT}),
    JobState.CANCELED: frozenset({TasksPhase.ABSENT}),
    JobState.FAILED: frozenset({TasksPhase.ABSENT}),
}
"""The phases of the tasks that each state of the job allows."""


class StopMode(Enum):
    """How a job was asked to stop; the request survives restarts."""

    NONE = "none"
    SAVEPOINT = "stop with a checkpoint: the job can be resumed from it"
    DRAIN = "end the sources: the job ends as one whose input has ended"


def check_tasks(state: JobState, tasks: TasksPhase) -> None:
    """Raise INT-9010 when a job in this state must not have tasks in this phase."""
    if tasks not in TASKS_IN[state]:
        raise PenstockError(
            "INT-9010",
            f"a job that is {state} cannot have tasks that are {tasks.value}",
            kind=Kind.INTERNAL,
            sqlstate="XX000",
        )


def check_transition(old: JobState, new: JobState) -> None:
    """Raise INT-9010 when a job may not step from ``old`` to ``new``."""
    if new not in TRANSITIONS[old]:
        raise PenstockError(
            "INT-9010", f"a job cannot go from {old} to {new}", kind=Kind.INTERNAL, sqlstate="XX000"
        )
