"""Messages between a job's master, its tasks, its I/O and its user: a closed set of frozen classes."""

from __future__ import annotations

import dataclasses

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.operator import KeysKnown, OperatorEvent
from penstock.engine.task.operator_chain import OperatorSnapshot


@dataclasses.dataclass(frozen=True, order=True)
class TaskId:
    """One subtask of one chain."""

    chain: int
    subtask: int

    def __str__(self) -> str:
        return f"{self.chain}.{self.subtask}"


# To tasks.


@dataclass(frozen=True)
class TriggerCheckpoint:
    """Inject a barrier at a source task; with ``then_stop`` it reads nothing after it.

    ``overtakes_after_ms``: how long the barrier is aligned before it may overtake rows.
    """

    checkpoint_id: int
    then_stop: bool = False
    overtakes_after_ms: float = float("inf")


@dataclass(frozen=True)
class CheckpointComplete:
    """A checkpoint is durable: sinks commit."""

    checkpoint_id: int


@dataclass(frozen=True)
class EndSource:
    """End a source task as if its input had ended: the watermark goes to the end of time and windows
    close.
    """


TaskMessage = TriggerCheckpoint | CheckpointComplete | EndSource | KeysKnown


# From tasks; ``attempt`` numbers their deployment, so that a message of an earlier deployment is recognised
# and ignored.


@dataclass(frozen=True)
class SnapshotCompleted:
    """A task's snapshot at a barrier; ``operators`` is empty when no snapshots are stored."""

    attempt: int
    task: TaskId
    checkpoint_id: int
    operators: tuple[OperatorSnapshot, ...]


@dataclass(frozen=True)
class TaskEnded:
    """A task has ended; ``last_checkpoint_id`` is the last barrier it passed before its final snapshot."""

    attempt: int
    task: TaskId
    last_checkpoint_id: int
    operators: tuple[OperatorSnapshot, ...]


@dataclass(frozen=True)
class CompletionAcknowledged:
    """A task's operators have processed that a checkpoint is durable (sinks have committed)."""

    attempt: int
    task: TaskId
    checkpoint_id: int


@dataclass(frozen=True)
class HistoryRead:
    """A source task has emitted the whole history."""

    attempt: int
    task: TaskId


@dataclass(frozen=True)
class OperatorEventReported:
    """An operator of a task reports an event."""

    attempt: int
    task: TaskId
    operator_id: str
    operator: str
    event: OperatorEvent


@dataclass(frozen=True)
class TaskFailed:
    """A task has failed."""

    attempt: int
    task: TaskId
    error: BaseException


@dataclass(frozen=True)
class TasksStarted:
    """Every task of a deployment runs in its slot."""

    attempt: int


@dataclass(frozen=True)
class TasksReleased:
    """Every task of a deployment is closed."""

    attempt: int


TaskReport = (
    SnapshotCompleted
    | TaskEnded
    | CompletionAcknowledged
    | HistoryRead
    | OperatorEventReported
    | TaskFailed
    | TasksStarted
    | TasksReleased
)


# From the user.


@dataclass(frozen=True)
class CancelRequested:
    """End the job now."""


@dataclass(frozen=True)
class StopRequested:
    """End the job after one more checkpoint; with ``drain`` sources end first, so that everything buffered is
    emitted.
    """

    drain: bool = False
