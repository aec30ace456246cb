"""The handle of a submitted job; every method may be called from any thread."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.engine.checkpoint.coordinator import CheckpointInfo
from penstock.engine.job.job_metrics import JobMetrics
from penstock.engine.job.job_state import JobState
from penstock.engine.job.savepoint_requests import SavepointRequest
from penstock.engine.network.admission import Refusals, refusals_of_row_listeners
from penstock.engine.task.messages import CancelRequested, StopRequested

if TYPE_CHECKING:
    from penstock.engine.deploy.coordinator.job_workers import ProcessWorkers
    from penstock.engine.job.job_events import RescaleRequested
    from penstock.engine.job.job_master import JobMaster
    from penstock.engine.job.query_evolution import StateDiff
    from penstock.engine.storage.storage import Storage
    from penstock.planner.physical.operator_specs import JobGraph


class Job:
    """The handle of one run of a job graph. The job does not need its handle: it runs until it ends or its
    manager is closed.

    ``checkpoint_storage``: where its checkpoints are, None when it stores none. ``state_diff``: what happened
    to the state of a changed query. ``processes``: its worker processes. ``start_notes``: notes about the
    start for its user. ``submitted_at_ms``: wall milliseconds.
    """

    def __init__(
        self, job_id: str, name: str, checkpoint_storage: Storage | None = None, submitted_at_ms: int = 0
    ) -> None:
        self.job_id = job_id
        self.name = name
        self.checkpoint_storage = checkpoint_storage
        self.submitted_at_ms = submitted_at_ms
        self.state_diff: StateDiff | None = None
        # The number of the former plan that it runs; None: its own.
        self.former_plan: int | None = None
        self.start_notes: tuple[str, ...] = ()
        # Set once, in a terminal state; ``wait`` of any thread returns then.
        self._ended = threading.Event()
        self.processes: ProcessWorkers | None = None
        # None until the manager has attached it: questions before that have the answers of a job not yet
        # started.
        self._master: JobMaster | None = None

    def __repr__(self) -> str:
        return f"<penstock.Job {self.job_id}: {self.name}, {self.state}>"

    def attach(self, master: JobMaster) -> None:
        """Connect the handle to the master that runs the job. Called once, by the manager."""
        self._master = master

    def ended(self) -> None:
        """The job is in a terminal state. Called once, by the manager."""
        self._ended.set()

    @property
    def state(self) -> JobState:
        """The state of the job."""
        return JobState.CREATED if self._master is None else self._master.state

    @property
    def error(self) -> PenstockError | None:
        """Why the job failed."""
        return None if self._master is None else self._master.error

    @property
    def last_failure(self) -> PenstockError | None:
        """The job's last failure, even if it has restarted since."""
        return None if self._master is None else self._master.last_failure

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the job to end; return whether it has."""
        return self._ended.wait(timeout_s)

    @property
    def stopped(self) -> bool:
        """Whether it ended because it was stopped: its input was not read to the end."""
        return self._master is not None and self._master.stopped

    @property
    def finished_before(self) -> bool:
        """Whether its state recorded that it had finished, so that it was not run again."""
        return self._master is not None and self._master.finished_before

    @property
    def counts_all(self) -> bool:
        """Whether its figures count all its work: it started without state and was never restarted."""
        return self._master is not None and self._master.counts_all

    def cancel(self) -> None:
        """Cancel the job; uncommitted output is dropped. Does nothing when it has ended."""
        # Posted to the master, which decides on its own thread.
        if self._master is not None:
            self._master.post(CancelRequested())

    def stop(self, *, drain: bool = False) -> None:
        """End the job after one more checkpoint, whose output is committed. With a state directory it can be
        resumed.

        ``drain``: its sources end first, the watermark goes to the end of time and every window closes. Such
        a job has finished for good.
        """
        if self._master is not None:
            self._master.post(StopRequested(drain))

    def take_savepoint(self) -> SavepointRequest:
        """Ask for a checkpoint that a savepoint can be copied from; the job continues."""
        request = SavepointRequest()
        if self._master is not None:
            self._master.post(request)
        return request

    def rescale(self, request: RescaleRequested) -> None:
        """Continue as another plan of the same state; ``JobManager.rescale`` has checked it."""
        if self._master is not None:
            self._master.post(request)

    @property
    def parallelism(self) -> int:
        """The most subtasks any operator has."""
        return 0 if self._master is None else self._master.parallelism

    @property
    def graph(self) -> JobGraph | None:
        """The job graph of the current deployment: after a rescale the new one."""
        return None if self._master is None else self._master.graph

    def metrics(self) -> JobMetrics:
        """Return the job's numbers as they are now."""
        numbers = JobMetrics() if self._master is None else self._master.metrics()
        # Refused connections of row listeners belong to this process, not to the workers.
        pushed = refusals_of_row_listeners()
        if self.processes is None:
            return numbers if pushed is None else replace(numbers, refusals=pushed)
        refusals = self.processes.refusals + (pushed or Refusals())
        return replace(
            numbers,
            workers_lost=len(self.processes.lost),
            stale_messages=self.processes.stale_messages,
            refusals=refusals,
        )

    @property
    def checkpoints(self) -> tuple[CheckpointInfo, ...]:
        """The latest completed checkpoints, oldest first."""
        return self.metrics().checkpoints
