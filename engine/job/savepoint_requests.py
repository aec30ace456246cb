"""Savepoints of a running job: requests of clients, and the checkpoints that are taken for them."""

from __future__ import annotations

import threading
from collections import deque

from penstock.catalog.errors import PenstockError
from penstock.engine.checkpoint.coordinator import CheckpointCoordinator, CheckpointKind
from penstock.engine.checkpoint.store import CheckpointStore


class SavepointRequest:
    """Asks a running job for a checkpoint that a savepoint is copied from. Any thread may wait for it.

    The files of the checkpoint are retained until ``release``, which whoever made the request must call.
    """

    def __init__(self) -> None:
        # The checkpoint, once it is durable; or why there is none.
        self.checkpoint_id: int | None = None
        self.error: PenstockError | None = None
        self._lock = threading.Lock()
        self._answered = threading.Event()
        self._abandoned = False
        self._store: CheckpointStore | None = None

    def wait(self, timeout_s: float) -> bool:
        """Wait for the checkpoint or its failure; return whether one has come."""
        return self._answered.wait(timeout_s)

    def release(self) -> None:
        """The checkpoint is copied, or nobody waits for it any more: its files need not be retained."""
        with self._lock:
            self._abandoned = True
            if self.checkpoint_id is not None and self._store is not None:
                self._store.unpin(self.checkpoint_id)

    @property
    def abandoned(self) -> bool:
        """Whether it was released."""
        return self._abandoned

    def answer(self, checkpoint_id: int, store: CheckpointStore) -> None:
        """The checkpoint is durable. Called once, by the job's master."""
        with self._lock:
            self.checkpoint_id, self._store = checkpoint_id, store
            # released between its trigger and now: nobody else would
            if self._abandoned:
                store.unpin(checkpoint_id)
        self._answered.set()

    def fail(self, error: PenstockError) -> None:
        """There will be no checkpoint. Called once, by the job's master."""
        self.error = error
        self._answered.set()


class SavepointRequests:
    """The requests of one job, in their order. Each gets a checkpoint of its own, aligned like that of a
    stop. Only the job's master calls it.
    """

    def __init__(self, job_id: str, store: CheckpointStore) -> None:
        self._job_id, self._store = job_id, store
        self._waiting: deque[SavepointRequest] = deque()
        # The request whose checkpoint is in progress, and its id.
        self._taking: tuple[SavepointRequest, int] | None = None

    def add(self, request: SavepointRequest) -> None:
        """Take a checkpoint for a request as soon as the job can."""
        self._waiting.append(request)

    def advance(self, coordinator: CheckpointCoordinator, *, may_begin: bool) -> None:
        """Answer the request whose checkpoint is complete, and begin the next one's."""
        if self._taking is not None and not self._is_over(coordinator, *self._taking):
            return
        while self._waiting and self._waiting[0].abandoned:
            self._waiting.popleft()
        # one at a time: what is in progress is complete first, it may be a last checkpoint
        if may_begin and self._waiting and coordinator.pending is None:
            checkpoint_id = coordinator.last_checkpoint_id + 1
            self._taking = (self._waiting.popleft(), checkpoint_id)
            # before it is published: a later one may be, and garbage collected, before the master hears of it
            self._store.pin(checkpoint_id)
            coordinator.trigger(CheckpointKind.SAVEPOINT)

    def _is_over(
        self, coordinator: CheckpointCoordinator, request: SavepointRequest, checkpoint_id: int
    ) -> bool:
        if coordinator.pending is not None and coordinator.pending.checkpoint_id == checkpoint_id:
            return False
        self._taking = None
        if any(info.checkpoint_id == checkpoint_id for info in coordinator.history):
            request.answer(checkpoint_id, self._store)
            return True
        self._store.unpin(checkpoint_id)
        failure = coordinator.last_failure or ""
        if failure.startswith(f"checkpoint {checkpoint_id}:"):
            request.fail(_failed(self._job_id, failure))
        # a restart, a stop or a rescale has replaced it: it is taken again
        else:
            self._waiting.appendleft(request)
        return True


def _failed(job_id: str, failure: str) -> PenstockError:
    hint = "the job continues; try again once its checkpoints succeed: DESCRIBE JOB lists their failures"
    return PenstockError(
        "STA-3034", f"no savepoint of job {job_id} was written: {failure}", hint=hint, sqlstate="58030"
    )
