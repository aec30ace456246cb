"""The blocking half of checkpoints: it writes and publishes on a job's I/O thread, and posts the outcome to
the master.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import Kind, PenstockError, out_of_memory
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.clock import Clock
from penstock.engine.api.failpoints import failpoint
from penstock.engine.checkpoint.coordinator import CheckpointKind
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.checkpoint.snapshot_format import WrittenTask
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.task.messages import SnapshotCompleted, TaskEnded, TaskId

if TYPE_CHECKING:
    from penstock.engine.checkpoint.plan_identity import PlanIdentity

# Runs the first on the job's I/O thread and posts what it returns; of an error, what the second makes of it.
RunIo = Callable[[Callable[[], Any], Callable[[Exception], Any]], None]


@dataclass(frozen=True)
class PartWritten:
    """A task's part of a checkpoint is on storage."""

    attempt: int
    checkpoint_id: int
    task: TaskId
    written: WrittenTask


@dataclass(frozen=True)
class EndWritten:
    """A task's final snapshot is on storage."""

    attempt: int
    last_checkpoint_id: int
    task: TaskId
    written: WrittenTask


@dataclass(frozen=True)
class Published:
    """A checkpoint is durable; ``new_bytes`` of its bytes were written for it."""

    attempt: int
    checkpoint_id: int
    kind: CheckpointKind
    size_bytes: int
    new_bytes: int


@dataclass(frozen=True)
class CheckpointFailed:
    """A checkpoint could not be written or published."""

    attempt: int
    checkpoint_id: int
    error: Exception


@dataclass(frozen=True)
class StorageFailed:
    """A storage operation failed that the job cannot continue without."""

    attempt: int
    error: Exception


@dataclass(frozen=True)
class RestorePointRead:
    """The newest checkpoint, or None when there is none."""

    manifest: Manifest | None


@dataclass(frozen=True)
class RestorePointLost:
    """The newest checkpoint could not be read."""

    error: Exception


@dataclass(frozen=True)
class FinishRecorded:
    """The job's end is recorded on storage."""


@dataclass(frozen=True)
class Retired:
    """Old checkpoints are deleted; with ``error`` they are not, and the deletion is retried after the next
    checkpoint.
    """

    error: Exception | None = None


IoOutcome = (
    PartWritten
    | EndWritten
    | Published
    | CheckpointFailed
    | StorageFailed
    | RestorePointRead
    | RestorePointLost
    | FinishRecorded
    | Retired
)


# Such an outcome must not count down the master's outstanding I/O.
@dataclass(frozen=True)
class WrittenElsewhere:
    """The outcome of a write that a worker did without the master's request."""

    outcome: PartWritten | EndWritten | CheckpointFailed | StorageFailed


def storage_failure(cause: Exception) -> Exception:
    """Return a system error as STA-3053, a failure of storage; RUN-2024 when memory is exhausted; other
    errors unchanged.
    """
    if isinstance(cause, MemoryError):
        return out_of_memory(cause, "write or read the job's state")
    # Errors with a code of their own (a fenced epoch, damage) stay as they are.
    if not isinstance(cause, OSError):
        return cause
    message = f"the job's state cannot be written or read: {cause.strerror or cause}"
    hint = (
        "free space there, or check the disk; the newest checkpoint is complete, and the job resumes from it"
    )
    return PenstockError("STA-3053", message, hint=hint, kind=Kind.EXTERNAL, retriable=True, sqlstate="58030")


class StoreIo:
    """Does the coordinator's I/O on a checkpoint store. One per deployment (``attempt``)."""

    def __init__(
        self, store: CheckpointStore, plan: PlanIdentity, attempt: int, clock: Clock, run_io: RunIo
    ) -> None:
        self._store = store
        self._plan = plan
        self._attempt = attempt
        self._clock = clock
        self._run_io = run_io

    def write(self, report: SnapshotCompleted | TaskEnded) -> None:
        """Write one task's snapshot."""
        if isinstance(report, SnapshotCompleted):
            checkpoint_id = report.checkpoint_id
            # Only the snapshot is captured: it is frozen, so the task continues while it is written.
            self._run_io(
                lambda: PartWritten(
                    self._attempt, checkpoint_id, report.task, self._written(checkpoint_id, report)
                ),
                lambda error: CheckpointFailed(self._attempt, checkpoint_id, error),
            )
        else:
            # a final snapshot belongs to the first checkpoint whose barrier the task does not see
            last_id = report.last_checkpoint_id
            # The task is gone and cannot take its snapshot again, and every later checkpoint needs it: a
            # failure costs the deployment, not only a checkpoint.
            self._run_io(
                lambda: EndWritten(self._attempt, last_id, report.task, self._written(last_id + 1, report)),
                lambda error: StorageFailed(self._attempt, error),
            )

    def publish(
        self, checkpoint_id: int, kind: CheckpointKind, tasks: Sequence[WrittenTask], ended: frozenset[TaskId]
    ) -> None:
        """Make a complete checkpoint durable."""
        plan = self._plan
        manifest = Manifest(
            job_id=self._store.job_id,
            epoch=self._store.epoch,
            checkpoint_id=checkpoint_id,
            # The store sets parent and epoch: it knows what is current.
            parent=None,
            kind=kind,
            created_at_ms=self._clock.wall_ms(),
            max_parallelism=plan.max_parallelism,
            fingerprint=plan.fingerprint,
            operators=plan.operators,
            tasks=tuple(tasks),
            ended=ended,
            compatibility=plan.compatibility,
            owner=self._store.owner,
        )

        def work() -> Published:
            self._store.publish(manifest)
            return Published(self._attempt, checkpoint_id, kind, manifest.size_bytes, manifest.new_bytes)

        self._run_io(work, lambda error: CheckpointFailed(self._attempt, checkpoint_id, error))

    def _written(self, checkpoint_id: int, report: SnapshotCompleted | TaskEnded) -> WrittenTask:
        # Increments build on parts of this deployment only, which the attempt tells apart.
        written = self._store.write_task(self._attempt, checkpoint_id, report.task, report.operators)
        failpoint("W9")
        return written


def retired(store: CheckpointStore) -> Retired:
    """Delete the files that no retained checkpoint needs."""
    store.retire()
    return Retired()


def finish_recorded(store: CheckpointStore, checkpoint_id: int) -> FinishRecorded:
    """Record that the job has finished."""
    store.record_finished(checkpoint_id)
    return FinishRecorded()
