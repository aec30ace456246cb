"""The master of one job: it deploys the job, runs its checkpoints, restarts it after failures, and ends it.
It does no I/O: ``step`` processes posted messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.restart_strategy import RestartBudget
from penstock.engine.checkpoint.async_writer import (
    CheckpointFailed,
    EndWritten,
    FinishRecorded,
    IoOutcome,
    PartWritten,
    Published,
    RestorePointLost,
    RestorePointRead,
    Retired,
    StorageFailed,
    StoreIo,
    WrittenElsewhere,
    finish_recorded,
    retired,
    storage_failure,
)
from penstock.engine.checkpoint.coordinator import CheckpointCoordinator, CheckpointKind, LastCheckpoint
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.checkpoint.plan_identity import PlanIdentity
from penstock.engine.checkpoint.store import CheckpointStore, Opened
from penstock.engine.exchange.channel import Wakeup, no_wakeup
from penstock.engine.job.job_events import HistoryPhase, JobEvents, RescaleRequested
from penstock.engine.job.job_metrics import JobMetrics, has_delivered, job_metrics
from penstock.engine.job.job_state import JobState, StopMode, TasksPhase, check_tasks, check_transition
from penstock.engine.job.runtime_filter_coordinator import RuntimeFilterCoordinator
from penstock.engine.job.savepoint_requests import SavepointRequest, SavepointRequests
from penstock.engine.task.messages import (
    CancelRequested,
    CompletionAcknowledged,
    EndSource,
    HistoryRead,
    OperatorEventReported,
    SnapshotCompleted,
    StopRequested,
    TaskEnded,
    TaskFailed,
    TaskReport,
    TasksReleased,
    TasksStarted,
)
from penstock.engine.task.operator_chain import failure_in
from penstock.engine.task_manager.task_deployment import Deployer, Deployment, RestorePoint
from penstock.engine.task_manager.task_executor import TaskHandle, Workers
from penstock.planner.physical.operator_specs import JobGraph

Requested = CancelRequested | StopRequested | RescaleRequested | SavepointRequest
Posted = TaskReport | IoOutcome | WrittenElsewhere | Requested


FENCED_OFF, SUPERSEDED = "STA-3504", "STA-3002"
# An earlier attempt that wakes fences its successor off once, and ends. Two jobs of copied state would go on
# for ever.
_FENCED_OFF_MOST = 3


def _restore_point(store: CheckpointStore) -> RestorePointRead:
    """Read the newest checkpoint of a job that is still this process's: an attempt that begins fences off
    others.
    """
    store.check_owner()
    return RestorePointRead(store.latest())


class JobMaster:
    """Owns a job from its deployment to its end. Any thread may call ``post``; only one may call ``step``.

    ``store`` is None when no state is stored: then a failure after a commit is final. ``live``: the plan that
    follows ``deployer``'s history.
    """

    def __init__(
        self,
        job_id: str,
        deployer: Deployer,
        plan: PlanIdentity,
        workers: Workers,
        store: CheckpointStore | None,
        opened: Opened,
        *,
        live: RescaleRequested | None = None,
        wake: Wakeup = no_wakeup,
        on_end: Callable[[], None] = no_wakeup,
    ) -> None:
        self.job_id = job_id
        self.state = JobState.CREATED
        self.error: PenstockError | None = None
        self.last_failure: PenstockError | None = None
        self.tasks: Sequence[TaskHandle] = ()
        self.coordinator = CheckpointCoordinator(
            deployer.options, deployer.clock, None, opened.next_checkpoint_id
        )
        self._deployer, self._plan, self._workers = deployer, plan, workers
        self._store, self._opened = store, opened
        self._wake, self._on_end = wake, on_end
        self._clock = deployer.clock
        self._budget = RestartBudget(deployer.options.restart, job_id)
        self.events = JobEvents(self.coordinator, opened.latest, deployer.clock)
        # Any thread appends, ``step`` takes from the other end.
        self._mailbox: deque[Posted] = deque()
        # Deployments so far, which tasks' reports carry, and those of them that were no restarts after
        # failures.
        self._attempt = self._rescales = 0
        self._tasks_phase = TasksPhase.ABSENT
        # Monotonic milliseconds; infinite: no restart is planned.
        self._deployed_ms, self._restart_at_ms = 0.0, float("inf")
        # The terminal state decided on; the job enters it once its tasks are closed and no I/O is
        # outstanding.
        self._ending: JobState | None = None
        # I/O operations this master has started whose outcome has not come. A terminal state waits for them.
        self._io_outstanding = 0
        # How the job was asked to stop; a restart does not forget it.
        self._stop_mode = StopMode.NONE
        self.stopped = False
        # The plan to switch to after the next checkpoint.
        self._rescale: RescaleRequested | None = None
        self._history = HistoryPhase(live)
        self._savepoints = None if store is None else SavepointRequests(job_id, store)
        # The checkpoint that ends this deployment, once it was triggered.
        self._last: LastCheckpoint | None = None
        # Restarts after a sink was fenced off, and the error of the one that is under way.
        self._fenced_off = 0
        self._fenced_error: PenstockError | None = None
        # Whether a client has rows of some attempt: then no attempt may repeat them.
        self._delivered = False
        # Set at the end, when the tasks and their figures go.
        self._last_metrics: JobMetrics | None = None

    def post(self, message: Posted) -> None:
        """Post a message for the next step."""
        self._mailbox.append(message)
        self._wake()

    def start(self) -> None:
        """Deploy the job, from its newest checkpoint if it has one. A job that had finished only reports
        that.
        """
        # the directory has the marker FINISHED: report the end, deploy nothing
        if self._opened.finished:
            self._ending = JobState.FINISHED
            self._proceed()
            return
        self._deploy(self._opened.latest)

    def step(self) -> float | None:
        """Process all posted messages and due timers. Return the time of the next step (monotonic ms),
        ``None`` to wait for a message.
        """
        # A message may end the job; what comes after it has no meaning.
        while self._mailbox and not self.state.terminal:
            self._handle(self._mailbox.popleft())
        # messages posted after the end are not processed
        if self.state.terminal:
            return None
        # Not while tasks are closed: their checkpoints are over.
        if self._running:
            self._keep_checkpoints()
        self._proceed()
        return None if (due_ms := self._due_ms()) == float("inf") else due_ms

    def abort(self, cause: BaseException) -> None:
        """Fail the job in any state: for errors of the master itself."""
        self._end(JobState.FAILED, failure_in("job master", cause))
        self._proceed()

    @property
    def finished_before(self) -> bool:
        """Whether the state it was started with is that of a finished job."""
        return self._opened.finished

    @property
    def counts_all(self) -> bool:
        """Whether its tasks have counted all rows of the job: it was deployed once, without state."""
        return self._opened.finished or (self._opened.latest is None and self._attempt == 1)

    @property
    def parallelism(self) -> int:
        """The highest parallelism of any operator, in the current plan or in the one of the next
        deployment.
        """
        return max(chain.parallelism for chain in self.graph.chains)

    @property
    def graph(self) -> JobGraph:
        """The job graph of the current deployment, or of the next one."""
        return self._deployer.graph

    def metrics(self) -> JobMetrics:
        """Return the job's numbers as they are now, or as they were at its end; any thread may ask."""
        tasks = self.tasks  # read before _last_metrics: the end sets that first, then drops the tasks
        if self._last_metrics is not None:
            return self._last_metrics
        up_ms = self._clock.monotonic_ms() - self._deployed_ms if tasks else 0.0
        # The first deployment is no restart, nor is a switch of plans.
        restarts = max(0, self._attempt - 1 - self._rescales)
        return job_metrics(tasks, self.coordinator, restarts, up_ms, self._clock.wall_ms(), self.events.all())

    def _keep_checkpoints(self) -> None:
        """Advance the job's end, start and abort checkpoints; fail the job when too many fail."""
        self._advance_end()
        if self._savepoints is not None:
            may_begin = self._last is None and not self._history.loading
            self._savepoints.advance(self.coordinator, may_begin=may_begin)
        if self._takes_checkpoints:
            self.coordinator.tick()
        if self.coordinator.too_many_failures:
            cause = self.coordinator.last_failure
            error = PenstockError(
                "STA-3011",
                "too many checkpoints failed in a row",
                detail=cause,
                kind=Kind.EXTERNAL,
                sqlstate="58030",
            )
            self._fail(error)

    def _due_ms(self) -> float:
        """When the next timer is due, in monotonic milliseconds."""
        if not self._running:
            # while tasks close or I/O is outstanding, a message will wake the master; no timer is needed
            waits = self._tasks_phase is not TasksPhase.ABSENT or self._io_outstanding
            return float("inf") if waits else self._restart_at_ms
        return self.coordinator.due_ms if self._takes_checkpoints else float("inf")

    @property
    def _takes_checkpoints(self) -> bool:
        """Whether checkpoints go by the clock: not while history loads, not after the last one."""
        return self.coordinator.pending is not None or (self._last is None and not self._history.loading)

    @property
    def _running(self) -> bool:
        """Whether tasks are deployed and not being closed."""
        return self._tasks_phase is TasksPhase.RUNNING

    # Messages.

    def _handle(self, message: Posted) -> None:
        match message:
            case (
                TasksStarted()
                | SnapshotCompleted()
                | TaskEnded()
                | CompletionAcknowledged()
                | HistoryRead()
                | OperatorEventReported()
                | TaskFailed()
            ):
                # Reports of an earlier deployment, or of tasks that are being closed, are ignored.
                if message.attempt == self._attempt and self._running:
                    self._on_task(message)
            # I/O of a worker that this master did not start: nothing outstanding to count down.
            case WrittenElsewhere(outcome=outcome):
                self._on_io(outcome)
            # the deployment is gone: a restart or the end may proceed
            case TasksReleased():
                self._tasks_phase = TasksPhase.ABSENT
            case CancelRequested():
                self._end(JobState.CANCELED)
            # While history loads, the other plan replaces the one that follows; nothing is interrupted.
            case RescaleRequested() if self._history.loading:
                self._history.live = message
            case RescaleRequested():
                self._rescale = message
            # refused by the session for a job that stores nothing
            case SavepointRequest():
                if self._savepoints is not None:
                    self._savepoints.add(message)
            # A job that is restarting stops after its next deployment: see _deploy.
            case StopRequested(drain=drain):
                self._stop_mode = StopMode.DRAIN if drain else StopMode.SAVEPOINT
                if self.state is JobState.RUNNING:
                    self._stop()
            # The outcome of I/O that this master has started, whoever it was for: counted down even if it is
            # stale.
            case _:
                self._io_outstanding -= 1
                self._on_io(message)

    def _on_task(self, report: TaskReport) -> None:
        match report:
            # one report per deployment, once all its tasks run
            case TasksStarted():
                self.events.deployed(self._budget, self._store)
            case SnapshotCompleted():
                self.coordinator.on_snapshot(report)
            # an ended task has read its whole history, and belongs to every later checkpoint
            # Its final snapshot may still have to be written: the coordinator counts it as ended after that.
            case TaskEnded():
                self._history.read(report.task)
                self.coordinator.on_task_ended(report)
            case HistoryRead():
                self._history.read(report.task)
            case CompletionAcknowledged():
                self.coordinator.on_completion_acknowledged(report.checkpoint_id, report.task)
                if self._last is not None and report.checkpoint_id == self._last.checkpoint_id:
                    self._last.to_commit.discard(report.task)
            case OperatorEventReported():
                self._filters.on_operator_event(report)
                self.events.on_operator_event(report)
            case TaskFailed(error=error):
                self._fail(error)

    def _on_io(self, outcome: IoOutcome) -> None:
        # Outcomes without an attempt belong to no deployment.
        current = self._running and getattr(outcome, "attempt", self._attempt) == self._attempt
        match outcome:
            case PartWritten() if current:
                self.coordinator.on_written(outcome.checkpoint_id, outcome.task, outcome.written)
            case EndWritten() if current:
                self.coordinator.on_end_written(outcome.last_checkpoint_id, outcome.task, outcome.written)
            # Also when a restart came in between: the checkpoint is durable, so older ones may go.
            case Published():
                self._retire()
                if current:
                    self.coordinator.on_published(
                        outcome.checkpoint_id, outcome.kind, outcome.size_bytes, outcome.new_bytes
                    )
            # A full or slow disk costs a checkpoint; any other error would repeat, so it costs an attempt.
            case CheckpointFailed(error=error) if current:
                self.coordinator.abort(outcome.checkpoint_id, str(error))
                if not isinstance(error, OSError):
                    self._fail(storage_failure(error))
            case StorageFailed(error=error) if current:
                self._fail(storage_failure(error))
            # A cancellation that came while it was read has precedence.
            case RestorePointRead(manifest=manifest) if self._ending is None:
                self._fenced_error = None
                self._deploy(manifest)
            case RestorePointLost(error=error):
                self._fail(self._fenced_off_by(storage_failure(error)))
            case FinishRecorded():
                self._end(JobState.FINISHED)

    # Deployment and its end.

    def _deploy(self, manifest: Manifest | None) -> None:
        """Create and start the tasks. A failure to create them is a failure like any other."""
        # From here on, reports of the former deployment are stale.
        self._attempt += 1
        self._restart_at_ms, self._last = float("inf"), None
        # The history's checkpoint is durable: from here on the live plan reads on.
        if manifest is not None and (live := self._history.over()) is not None:
            self._switch_plan(live)
        self._to(JobState.RUNNING)
        store = self._store
        # Channel state, list states and key groups are read from storage by the tasks themselves.
        restore = None if store is None or manifest is None else RestorePoint(store.storage, manifest)
        io = None if store is None else StoreIo(store, self._plan, self._attempt, self._clock, self._run_io)
        # The job is RUNNING while its tasks are being made: a failure here is handled like one of a running
        # job.
        try:
            last_id, epoch = self.coordinator.last_checkpoint_id, 0 if store is None else store.epoch
            self.tasks = self._workers.deploy(
                Deployment(self._deployer, self._attempt, restore, last_id, epoch)
            )
        except BaseException as cause:  # noqa: BLE001 - operators are made of the user's plan; whatever they raise is the job's failure
            self._fail(cause)
            return
        by_id, sources = (
            {task.task_id: task for task in self.tasks},
            [task.task_id for task in self.tasks if task.is_source],
        )
        self._history.begins(sources)
        self._filters = RuntimeFilterCoordinator(self._deployer.graph, self.tasks)
        # By id, of this deployment: no message reaches tasks of a later one.
        self.coordinator.deploy(list(by_id), sources, lambda task, message: by_id[task].post(message), io)
        self._tasks_phase, self._deployed_ms = TasksPhase.RUNNING, self._clock.monotonic_ms()
        self._workers.start()
        # Asked to stop while it was restarting: it stops now, with a checkpoint of this deployment.
        if self._stop_mode is not StopMode.NONE:
            self._stop()

    def _stop(self) -> None:
        """Begin a stop. To drain, end the sources: the job then ends as one whose input has ended. History is
        loaded first.
        """
        self._to(JobState.STOPPING)
        if self._stop_mode is StopMode.DRAIN and not self._history.loading:
            for task in self.tasks:
                if task.is_source:
                    task.post(EndSource())

    def _release(self) -> None:
        # Once only: tasks that are being closed are not closed again.
        if self._running:
            self._tasks_phase = TasksPhase.RELEASING
            # Asked before the tasks and their counters are gone.
            self._delivered = self._delivered or has_delivered(self._deployer.graph, self.tasks)
            self._workers.release()

    def _proceed(self) -> None:
        """Once the tasks are closed and no I/O is outstanding: restart when that is due, or enter the
        terminal state that was decided on.
        """
        # A restart does not begin while an operation of the former deployment may still write.
        if self._at_rest and self._ending is None and self._clock.monotonic_ms() >= self._restart_at_ms:
            self._start_again()
        if self._at_rest and self._ending is not None:  # decided before, or just now by a restart that failed
            self._last_metrics = self.metrics()
            # The metrics are fixed before the tasks go; ``wait`` returns after ``_on_end``, when the
            # directory is unlocked.
            self.tasks = ()  # their operators' state goes with them
            self._to(self._ending)
            if self._store is not None:
                self._store.close(self._ending)
            self._on_end()

    @property
    def _at_rest(self) -> bool:
        """Whether no task is deployed and no I/O is outstanding."""
        return self._tasks_phase is TasksPhase.ABSENT and not (self._io_outstanding or self.state.terminal)

    def _start_again(self) -> None:
        self._restart_at_ms = float("inf")
        # Asked for while the job was failing, the other plan takes effect with the restart.
        if self._rescale is not None:
            self._switch_plan(self._rescale)
            self._rescale = None
        if self._store is None:
            self._deploy(None)
        # Read again, not remembered: the newest checkpoint is what is durable, whatever this process knows.
        else:
            self._run_io(partial(_restore_point, self._store), RestorePointLost)

    def _switch_plan(self, wanted: RescaleRequested) -> None:
        self._deployer, self._plan = replace(self._deployer, graph=wanted.graph), wanted.plan

    def _end(self, state: JobState, error: PenstockError | None = None) -> None:
        """Decide on a terminal state and release the tasks; the first decision is final."""
        if self._ending is None and not self.state.terminal:
            # a later failure must not replace the cause, nor a failure a cancellation
            self._ending, self.error = state, error
            self._release()

    def _to(self, state: JobState) -> None:
        if state is not self.state:
            check_transition(self.state, state)
            check_tasks(state, self._tasks_phase)
            self.state = state

    # Failures.

    def _fail(self, cause: BaseException) -> None:
        """Restart after a failure if the error, the strategy and the delivered rows allow it; fail the job
        otherwise.
        """
        # The end is decided; what fails while tasks are closed changes nothing.
        if self._ending is not None:
            return
        error = self.last_failure = (
            cause if isinstance(cause, PenstockError) else failure_in("job", cause, "run its tasks")
        )
        # None: the error is final, or the restart strategy is exhausted.
        delay_ms = None
        if self._may_restart(error):
            delay_ms = self._budget.next_delay_ms(self._clock.monotonic_ms(), f"{error.code} {error.message}")
        if delay_ms is None:
            self.events.failed(error, self._budget)
            self._end(JobState.FAILED, error)
            return
        self.events.restarting(error, delay_ms)
        # Released first: RESTARTING allows no running tasks.
        self._release()
        self._to(JobState.RESTARTING)
        self._restart_at_ms = self._clock.monotonic_ms() + delay_ms

    def _may_restart(self, error: PenstockError) -> bool:
        # The attempt that fenced this one off may be an earlier one, woken late: the restart asks the store
        # whose the job is.
        if error.code == FENCED_OFF and self._store is not None and self._fenced_off < _FENCED_OFF_MOST:
            self._fenced_off += 1
            self._fenced_error = error
        # it depends on the data, the query or the code alone: every attempt would fail
        elif not error.retriable:
            return False
        # A client has rows of this attempt; a restart would send them again.
        if self._delivered or has_delivered(self._deployer.graph, self.tasks):
            return False
        # Without a store a restart begins from nothing. After sinks have committed that would repeat their
        # output.
        return self._store is not None or not self.coordinator.notified

    def _fenced_off_by(self, error: Exception) -> Exception:
        """Return the error of a restart that did not begin: that of the sink, where another process has the
        job.
        """
        fenced, self._fenced_error = self._fenced_error, None
        lost = isinstance(error, PenstockError) and error.code == SUPERSEDED
        return fenced if fenced is not None and lost else error

    # The last checkpoint.

    def _advance_end(self) -> None:
        """Take the checkpoint that a stop or the end of all tasks needs, wait until sinks have committed it,
        then finish.
        """
        pending, stops = self.coordinator.pending, self._stop_mode is StopMode.SAVEPOINT
        if self._last is None:
            # A history ends with a checkpoint of its own, once every source has read all of it.
            if self._history.loading:
                if pending is None and self._history.done:
                    self._take_last(CheckpointKind.HISTORY)
            # All input has ended: the final checkpoint commits what sinks have prepared.
            elif pending is None and self.coordinator.all_ended:
                self._take_last(CheckpointKind.FINAL)
            # A stop or another plan takes a checkpoint at once; one that is being published comes first.
            elif (stops or self._rescale) and (pending is None or not pending.publishing):
                self._take_last(CheckpointKind.STOP if stops else CheckpointKind.RESCALE)
            return
        # Not durable yet, or the end is being written down.
        if pending is not None or self._last.recording:
            return
        # The pending checkpoint is gone: either it was published as the newest, or it was aborted.
        history = self.coordinator.history
        if not history or history[-1].checkpoint_id != self._last.checkpoint_id:
            self._last = None  # it failed: take another
        elif not self._last.to_commit:
            self._finish(self._last)

    def _take_last(self, kind: CheckpointKind) -> None:
        # The id it will have: ``trigger`` uses the next one.
        self._last = LastCheckpoint(
            kind, self.coordinator.last_checkpoint_id + 1, {task.task_id for task in self.tasks}
        )
        self.coordinator.trigger(kind)

    def _finish(self, last: LastCheckpoint) -> None:
        """End the job, or deploy it anew. The end of all input is recorded, a stop is not, so that the job
        can be resumed.
        """
        # Another deployment follows from this checkpoint; it does not count as a restart after a failure.
        if last.kind in (CheckpointKind.RESCALE, CheckpointKind.HISTORY):
            self._rescales += 1
            self._release()
            self._to(JobState.RESTARTING)
            self._restart_at_ms = self._clock.monotonic_ms()
            return
        # A stopped job can be resumed, so its end is not recorded.
        if last.kind is CheckpointKind.STOP or self._store is None:
            self.stopped = last.kind is CheckpointKind.STOP
            self._end(JobState.FINISHED)
            return
        # ``recording`` prevents a second write at the next step.
        last.recording, store, attempt = True, self._store, self._attempt
        self._run_io(
            lambda: finish_recorded(store, last.checkpoint_id), lambda error: StorageFailed(attempt, error)
        )

    # I/O.

    def _retire(self) -> None:
        # Without a store there is nothing to delete.
        if (store := self._store) is not None:
            self._run_io(lambda: retired(store), Retired)

    def _run_io(self, work: Callable[[], Any], failed: Callable[[Exception], Any]) -> None:
        # Counted after the call: an executor that refuses the work leaves nothing outstanding.
        self._workers.run_io(work, failed)
        self._io_outstanding += 1
