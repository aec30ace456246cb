"""The checkpoint coordinator: it decides when a checkpoint starts, is complete or is aborted, and notifies
the tasks.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Protocol

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.clock import Clock
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.job_options import JobOptions
from penstock.engine.checkpoint.snapshot_format import WrittenTask
from penstock.engine.metrics.task_metrics import TaskFigures
from penstock.engine.task.messages import (
    CheckpointComplete,
    SnapshotCompleted,
    TaskEnded,
    TaskId,
    TaskMessage,
    TriggerCheckpoint,
)

# Completed checkpoints that users can list.
HISTORY = 100


class CheckpointKind(StrEnum):
    """The reason of a checkpoint: the interval, a savepoint, a stop, another parallelism, a loaded history,
    or the job's end.
    """

    PERIODIC = "periodic"
    SAVEPOINT = "savepoint"
    STOP = "stop"
    RESCALE = "rescale"
    HISTORY = "history"
    FINAL = "final"

    @property
    def halts(self) -> bool:
        """Whether no row is processed after it in this deployment."""
        return self in (CheckpointKind.STOP, CheckpointKind.RESCALE, CheckpointKind.HISTORY)


@dataclass(frozen=True)
class CheckpointInfo:
    """A completed checkpoint as users see it; times in milliseconds. ``new_bytes`` were written for it, the
    other bytes are shared with earlier ones.

    ``channel_state_rows``: the rows its barriers had overtaken, of ``channel_state_bytes``.
    """

    checkpoint_id: int
    kind: CheckpointKind
    completed_at_ms: int
    duration_ms: float
    size_bytes: int
    new_bytes: int
    channel_state_rows: int = 0
    channel_state_bytes: int = 0


@dataclasses.dataclass
class PendingCheckpoint:
    """The checkpoint in progress."""

    checkpoint_id: int
    kind: CheckpointKind
    started_ms: float
    # Tasks whose part is not written yet; the checkpoint is complete when none is left.
    awaiting: set[TaskId]
    # The parts written so far. None: nothing is stored (``io`` is None).
    written: dict[TaskId, WrittenTask | None]
    ended: set[TaskId]
    # Its manifest is being written: from here on it may be durable, so it is neither aborted nor replaced.
    publishing: bool = False


@dataclasses.dataclass
class LastCheckpoint:
    """The checkpoint that ends the job, or its deployment. ``to_commit``: the tasks that have not committed
    it. ``recording``: the job's end is being written.
    """

    kind: CheckpointKind
    checkpoint_id: int
    # Only when all tasks have committed may the job end: released tasks commit nothing.
    to_commit: set[TaskId]
    recording: bool = False


class CheckpointIo(Protocol):
    """The blocking half. Results return through ``on_written``, ``on_end_written``, ``on_published`` and
    ``on_failed``.
    """

    def write(self, report: SnapshotCompleted | TaskEnded) -> None:
        """Write one task's snapshot."""

    def publish(
        self, checkpoint_id: int, kind: CheckpointKind, tasks: Sequence[WrittenTask], ended: frozenset[TaskId]
    ) -> None:
        """Make a complete checkpoint durable."""


class CheckpointCoordinator:
    """Runs the checkpoints of one deployment, one at a time. ``io`` is None when nothing is stored: a
    snapshot then counts as written when it is taken.

    A task that has ended belongs to every later checkpoint with its final snapshot.
    """

    def __init__(
        self, options: JobOptions, clock: Clock, io: CheckpointIo | None, next_checkpoint_id: int
    ) -> None:
        self._options = options
        self._clock = clock
        self._io = io
        # Ids rise over all deployments and runs: those in the directory are below it.
        self._next_id = next_checkpoint_id
        self._send: Callable[[TaskId, TaskMessage], None] = lambda task, message: None
        self._tasks: frozenset[TaskId] = frozenset()
        self._sources: tuple[TaskId, ...] = ()
        # Ended tasks with their final snapshots, None where nothing is stored.
        self._ended: dict[TaskId, WrittenTask | None] = {}
        self._pending: PendingCheckpoint | None = None
        # By task: milliseconds until its part of the last checkpoint was written, and its bytes.
        self._task_parts: dict[TaskId, tuple[float, int]] = {}
        # Monotonic milliseconds: when the next periodic checkpoint starts.
        self._due_ms = float("inf")
        self._failures_in_a_row = 0
        self.completed = 0
        self.failed = 0
        # Whether sinks were ever notified: without a store, no restart is allowed after that.
        self.notified = False
        # The tasks that have not acknowledged the newest checkpoint.
        self.committing: set[TaskId] = set()
        self.last_failure: str | None = None
        self.on_aborted: Callable[[str], None] = lambda cause: None
        self.history: deque[CheckpointInfo] = deque(maxlen=HISTORY)

    def deploy(
        self,
        tasks: Sequence[TaskId],
        sources: Sequence[TaskId],
        send: Callable[[TaskId, TaskMessage], None],
        io: CheckpointIo | None,
    ) -> None:
        """Start a new deployment; the checkpoint in progress in the old one is aborted."""
        # Parts and reports of the old deployment come with its attempt, which the master ignores.
        self._tasks, self._sources, self._send, self._io = frozenset(tasks), tuple(sources), send, io
        self._ended, self._pending, self.committing, self._task_parts = {}, None, set(), {}
        self._schedule(self._clock.monotonic_ms())

    @property
    def pending(self) -> PendingCheckpoint | None:
        """The checkpoint in progress."""
        return self._pending

    @property
    def last_checkpoint_id(self) -> int:
        """The highest checkpoint id ever used."""
        return self._next_id - 1

    @property
    def all_ended(self) -> bool:
        """Whether every task has ended and its final snapshot is written."""
        return len(self._ended) == len(self._tasks)

    @property
    def due_ms(self) -> float:
        """When ``tick`` must start a checkpoint or abort one."""
        if self._pending is None:
            return self._due_ms
        # What is being published may be durable already: only its outcome ends it.
        return (
            float("inf")
            if self._pending.publishing
            else self._pending.started_ms + self._options.checkpoint_timeout_ms
        )

    @property
    def too_many_failures(self) -> bool:
        """Whether so many checkpoints failed in a row that the job must fail."""
        return self._failures_in_a_row > self._options.tolerable_failed_checkpoints

    def tick(self) -> None:
        """Abort a checkpoint that takes too long; start one that is due."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self.due_ms:
            return
        # Late: the tasks' snapshots of it are ignored when they come.
        if self._pending is not None:
            failpoint("C13")
            self.abort(
                self._pending.checkpoint_id, f"not complete after {self._options.checkpoint_timeout_ms} ms"
            )
        else:
            self.trigger(CheckpointKind.PERIODIC)

    def trigger(self, kind: CheckpointKind) -> int:
        """Start a checkpoint now and return its id. The pending one is dropped, so do not call this while
        that is being published.
        """
        # C14: sinks are still committing the checkpoint before
        failpoint("C14" if self.committing else "C1")
        now_ms = self._clock.monotonic_ms()
        # an id is never reused, not even that of an aborted checkpoint: files carry it
        checkpoint_id, self._next_id = self._next_id, self._next_id + 1
        # ended tasks take part with their final snapshots
        awaiting = set(self._tasks - self._ended.keys())
        self._pending = PendingCheckpoint(
            checkpoint_id, kind, now_ms, awaiting, dict(self._ended), set(self._ended)
        )
        failpoint("C2")
        # barriers of a last checkpoint never overtake: it must leave no channel state
        overtakes_after_ms = (
            self._options.aligned_timeout_ms
            if self._options.unaligned and kind is CheckpointKind.PERIODIC
            else float("inf")
        )
        for task in self._sources:
            if task not in self._ended:
                self._send(task, TriggerCheckpoint(checkpoint_id, kind.halts, overtakes_after_ms))
                failpoint("C3")
        # with all tasks ended nothing is awaited
        self._complete_when_all_written()
        return checkpoint_id

    def on_snapshot(self, report: SnapshotCompleted) -> None:
        """Have a task's snapshot written, unless its checkpoint was aborted."""
        # Of an aborted checkpoint, or of one that was replaced by a last one.
        if self._pending is None or report.checkpoint_id != self._pending.checkpoint_id:
            return
        if self._io is None:
            self.on_written(report.checkpoint_id, report.task, None)
        else:
            self._io.write(report)

    def on_task_ended(self, report: TaskEnded) -> None:
        """Have a task's final snapshot written."""
        if self._io is None:
            self.on_end_written(report.last_checkpoint_id, report.task, None)
        else:
            self._io.write(report)

    # Only parts of the pending checkpoint, and each once, may count.
    def on_written(self, checkpoint_id: int, task: TaskId, written: WrittenTask | None) -> None:
        """Count a task's part of a checkpoint as written."""
        if (
            self._pending is not None
            and self._pending.checkpoint_id == checkpoint_id
            and task in self._pending.awaiting
        ):
            failpoint("W10")
            self._pending.awaiting.discard(task)
            self._pending.written[task] = written
            self._task_parts[task] = (
                self._clock.monotonic_ms() - self._pending.started_ms,
                0 if written is None else written.size_bytes,
            )
            if self._pending.awaiting:
                failpoint("C4")
            self._complete_when_all_written()

    def with_part(self, task: TaskId, figures: TaskFigures) -> TaskFigures:
        """Return a task's figures with those of its part of the last checkpoint: the time until it was
        written, and its bytes.
        """
        duration_ms, size_bytes = self._task_parts.get(task, (0.0, 0))
        return replace(figures, part_ms=duration_ms, part_bytes=size_bytes)

    def on_end_written(self, last_checkpoint_id: int, task: TaskId, written: WrittenTask | None) -> None:
        """Count a task as ended. Its final snapshot becomes its part of a checkpoint whose barrier it never
        saw.
        """
        # Recorded even without a pending checkpoint: later ones start with it.
        self._ended[task] = written
        # the task ended before it saw the pending barrier: its final snapshot is its part
        if self._pending is not None and last_checkpoint_id < self._pending.checkpoint_id:
            self._pending.ended.add(task)
            self.on_written(self._pending.checkpoint_id, task, written)

    def on_published(self, checkpoint_id: int, kind: CheckpointKind, size_bytes: int, new_bytes: int) -> None:
        """A checkpoint is durable: notify every task, so that sinks commit."""
        now_ms = self._clock.monotonic_ms()
        # Aborted or replaced meanwhile: it is durable, but nobody waits for it.
        if self._pending is None or self._pending.checkpoint_id != checkpoint_id:
            return
        duration_ms = now_ms - self._pending.started_ms
        written = [task for task in self._pending.written.values() if task is not None]
        self._pending = None
        self._failures_in_a_row = 0
        self.completed += 1
        self.notified = True
        # Rows that barriers had overtaken, over all tasks.
        rows, rows_bytes = (
            sum(task.channel_state_rows for task in written),
            sum(task.channel_state_bytes for task in written),
        )
        self.history.append(
            CheckpointInfo(
                checkpoint_id,
                kind,
                self._clock.wall_ms(),
                duration_ms,
                size_bytes,
                new_bytes,
                rows,
                rows_bytes,
            )
        )
        # Sinks commit what they prepared before the barrier; the acknowledgements empty this set.
        self.committing = set(self._tasks)
        for task in sorted(self._tasks):
            self._send(task, CheckpointComplete(checkpoint_id))
            failpoint("C12")
        # the minimum pause counts from the end, the interval from the start of a checkpoint
        self._due_ms = max(self._due_ms, now_ms + self._options.checkpoint_min_pause_ms)

    def on_completion_acknowledged(self, checkpoint_id: int, task: TaskId) -> None:
        """A task has processed the notification of a complete checkpoint: its sinks have committed."""
        # Acknowledgements of earlier checkpoints come late and mean nothing.
        if self.history and self.history[-1].checkpoint_id == checkpoint_id:
            self.committing.discard(task)

    def abort(self, checkpoint_id: int, cause: str) -> None:
        """Abort a checkpoint that failed or took too long; the job runs on."""
        if self._pending is not None and self._pending.checkpoint_id == checkpoint_id:
            self._pending = None
            self.last_failure = f"checkpoint {checkpoint_id}: {cause}"
            self.failed += 1
            self._failures_in_a_row += 1
            self.on_aborted(self.last_failure)
            # A whole interval from now: a slow disk is not asked again at once.
            self._schedule(self._clock.monotonic_ms())

    def _complete_when_all_written(self) -> None:
        pending = self._pending
        if pending is None or pending.awaiting or pending.publishing:
            return
        pending.publishing = True
        # the interval counts from the start of the checkpoint, not from its end
        self._schedule(pending.started_ms)
        failpoint("C5")
        if self._io is None:
            self.on_published(pending.checkpoint_id, pending.kind, 0, 0)
            return
        # In the order of the tasks, whatever order they were written in.
        tasks = [pending.written[task] for task in sorted(self._tasks)]
        self._io.publish(
            pending.checkpoint_id,
            pending.kind,
            [task for task in tasks if task is not None],
            frozenset(pending.ended),
        )

    def _schedule(self, started_ms: float) -> None:
        interval = self._options.checkpoint_interval_ms
        self._due_ms = started_ms + interval if interval > 0 else float("inf")
