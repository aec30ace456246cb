"""The workers of one job as processes, and the handles of their tasks. It deploys tasks to workers, passes
messages between tasks and master, and detects lost workers.
"""

from __future__ import annotations

import secrets
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.cluster_options import ClusterOptions
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.locations import Location
from penstock.engine.checkpoint.async_writer import (
    CheckpointFailed,
    EndWritten,
    PartWritten,
    StorageFailed,
    WrittenElsewhere,
)
from penstock.engine.deploy.coordinator.coordinator_services import BoundedBefore, JobStores
from penstock.engine.deploy.coordinator.worker_handle import WorkerProcess, WorkerState
from penstock.engine.deploy.coordinator.worker_pool import WorkerPool
from penstock.engine.deploy.protocol.messages import (
    Deployed,
    DeploymentId,
    DeployTasks,
    FromTasks,
    MetricsReport,
    Peer,
    PostToTask,
    Prepare,
    Prepared,
    Released,
    ReleaseTasks,
    ResultRows,
    TableFile,
    TaskFailure,
    ToTasks,
    WriteFailure,
)
from penstock.engine.deploy.worker.python_modules import FunctionNames
from penstock.engine.metrics.task_metrics import OperatorFigures, TaskFigures
from penstock.engine.network.admission import Refusals
from penstock.engine.task.messages import (
    TaskFailed,
    TaskId,
    TaskMessage,
    TaskReport,
    TasksReleased,
    TasksStarted,
)
from penstock.engine.task.task import TaskPhase
from penstock.engine.task_manager.task_deployment import Deployment
from penstock.engine.task_manager.task_manager import IoThread, run_io
from penstock.planner.physical.operator_specs import AnyOperatorSpec, Chain


class RemoteTask:
    """The handle of a task in a worker: it sends posted messages, and returns the figures that the worker
    reported last.
    """

    def __init__(
        self, chain: Chain, subtask: int, *, is_source: bool, send: Callable[[TaskId, TaskMessage], None]
    ) -> None:
        self.task_id = TaskId(chain.chain_id, subtask)
        self.is_source = is_source
        self.operators: tuple[AnyOperatorSpec, ...] = chain.operators
        self._send = send
        nothing = tuple(OperatorFigures(spec.operator_id, spec.name) for spec in chain.operators)
        self._figures = TaskFigures(chain.chain_id, subtask, TaskPhase.NEW, is_source, nothing)
        self._delivered: dict[str, int] = {}

    @property
    def phase(self) -> str:
        """The phase of the task."""
        return self._figures.phase

    def figures(self) -> TaskFigures:
        """Return the figures the worker reported last. Rows that have arrived here count even if not reported
        yet.
        """
        known, delivered = self._figures, self._delivered
        if not delivered:
            return known
        operators = tuple(
            # the worker's report may be older than rows that have arrived, or newer
            replace(each, rows_in=max(each.rows_in, delivered.get(each.operator_id, 0)))
            for each in known.operators
        )
        return replace(known, operators=operators)

    def post(self, message: TaskMessage) -> None:
        """Send a message to the task."""
        self._send(self.task_id, message)

    def counted(self, figures: TaskFigures) -> None:
        """Store the worker's figures."""
        self._figures = figures

    def delivered(self, operator_id: str, rows: int) -> None:
        """Record that rows of a collect sink have arrived here."""
        self._delivered = {**self._delivered, operator_id: self._delivered.get(operator_id, 0) + rows}


# time for the pool, which checks its workers every WATCH_S, to report a dead peer first
PEER_LOSS_WAIT_S = 0.6
# after that a task's step counts as one that never ends
RELEASE_S = 30.0
_REPORTS = get_args(TaskReport)
Later = Callable[[float, Callable[[], None]], Callable[[], None]]
"""Calls a function after a delay in seconds, and returns what cancels that."""


@dataclass
class Member:
    """A worker's part in a deployment; the other workers connect to ``address``."""

    process: WorkerProcess
    slots: tuple[int, ...]
    # None until the worker has reported Prepared
    address: tuple[Any, ...] | None = None
    deployed: bool = False
    released: bool = False

    @property
    def name(self) -> str:
        """The name other workers know it by."""
        return f"worker-{self.process.number}"


@dataclass
class Underway:
    """The current deployment."""

    id: DeploymentId
    deployment: Deployment
    tasks: dict[TaskId, RemoteTask]
    members: list[Member]
    stores: JobStores
    # whether the tasks were sent: messages for tasks wait in ``unsent`` until then
    sent: bool = False
    releasing: bool = False
    # so that a session of many jobs has no thread that waits for each of them
    cancel_loss: Callable[[], None] | None = None
    unsent: list[tuple[Member, PostToTask]] = field(default_factory=list)


class ProcessWorkers:
    """Runs the tasks of one job in worker processes. Each worker runs ``slots`` subtask numbers; slot i is
    subtask i of every chain.

    Fencing: messages of any deployment but the current
    one are dropped and counted. A lost worker is dead before it is replaced.
    """

    def __init__(
        self,
        pool: WorkerPool,
        post: Callable[[Any], None],
        io: IoThread,
        state: Location | None,
        tables: tuple[TableFile, ...],
        scratch: Path,
        later: Later | None = None,
        bounded: BoundedBefore | None = None,
        probe: tuple[Path, str] | None = None,
    ) -> None:
        """``bounded``: subplans whose rows are staged already; ``probe``: the file of the job's directory
        that workers must see.
        """
        self.stale = 0
        self._pool = pool
        self._post = post
        self._io = io
        self._state = state
        self._tables = tables
        self.scratch = scratch
        self._later = later or _later
        self._bounded = bounded
        self._probe = probe
        # reentrant: start() calls _on_lost while it has the lock
        self._lock = threading.RLock()
        self._processes: list[WorkerProcess] = []
        self._underway: Underway | None = None
        self.lost: list[str] = []

    def deploy(self, deployment: Deployment) -> Sequence[RemoteTask]:
        deployer = deployment.deployer
        graph, options = deployer.graph, deployer.options
        slots = max(chain.parallelism for chain in graph.chains)
        # rounded up
        count = -(-slots // options.task_slots)
        tasks = {
            task.task_id: task
            for chain in graph.chains
            for task in (
                RemoteTask(
                    chain, subtask, is_source=not graph.inputs_of(chain.chain_id), send=self._send_to_task
                )
                for subtask in range(chain.parallelism)
            )
        }
        identity = DeploymentId(deployer.job_id, deployment.epoch, deployment.attempt)
        with self._lock:
            self._processes = self._enough(count, options.heartbeat_timeout_ms)
            # worker n runs the slots from n * task_slots on; the last one may have fewer
            members = [
                Member(
                    process,
                    tuple(range(number * options.task_slots, min(slots, (number + 1) * options.task_slots))),
                )
                for number, process in enumerate(self._processes)
            ]
            stores = JobStores(
                deployer.services,
                graph,
                deployer.job_id,
                deployment.attempt,
                options.time_zone,
                self._bounded,
                options.bounded_backend,
            )
            self._underway = Underway(identity, deployment, tasks, members, stores)
        return list(tasks.values())

    def start(self) -> None:
        with self._lock:
            underway = self._underway
            assert underway is not None, "deployed before it is started"
            members, modules = underway.members, underway.deployment.deployer.options.python_modules
            # a new secret per deployment: links of an earlier one cannot connect
            token = secrets.token_hex(32)
            # callbacks for all workers before the first message: a reply may come at once
            for member in members:
                member.process.belongs_to(self._on_message, self._on_lost)
            for member in members:
                prepare = Prepare(member.name, token, len(members) > 1, modules, tuple(sys.path), self._probe)
                member.process.send(ToTasks(underway.id, prepare))
            for member in members:
                if member.process.state is WorkerState.LOST:  # before it was ours to hear of
                    self._on_lost(member.process)

    def release(self) -> None:
        with self._lock:
            underway = self._underway
            if underway is None:
                return
            # from here on no message goes to a task, and a lost worker is no failure
            underway.releasing = True
            underway.stores.close()
            for member in underway.members:
                if not member.released:
                    member.process.send(ToTasks(underway.id, ReleaseTasks()))
                    # it has no tasks, and may never come to say so
                    member.released = member.process.state is WorkerState.STARTING
            self._end_when_released(underway)
        # not ended at once: some worker has still to close its tasks
        with self._lock:
            if self._underway is underway:
                underway.cancel_loss = self._later(RELEASE_S, lambda: self._lose_unreleased(underway))

    def run_io(self, work: Callable[[], Any], failed: Callable[[Exception], Any]) -> None:
        run_io(self._io, self._post, work, failed)

    def close(self) -> None:
        """Return the workers to the pool: the job has ended."""
        with self._lock:
            processes, self._processes = self._processes, []
        self._pool.return_workers(processes)

    def members(self) -> list[Member]:
        """Return the workers of the current deployment with their slots."""
        # read once: another thread may replace it
        underway = self._underway
        return [] if underway is None else list(underway.members)

    @property
    def stale_messages(self) -> int:
        """How many messages of earlier deployments were refused, here and in the current workers."""
        return self.stale + sum(process.stale for process in self._processes)

    @property
    def refusals(self) -> Refusals:
        """The strangers that the listeners for workers have refused, in this process and in the workers."""
        return sum((process.refusals for process in self._processes), self._pool.admission.refusals)

    def processes(self) -> list[WorkerProcess]:
        """Return the workers of the job."""
        return list(self._processes)

    def _enough(self, count: int, timeout_ms: float) -> list[WorkerProcess]:
        """Return ``count`` workers: the job's own that are not lost, and new ones."""
        alive = [process for process in self._processes if process.state is not WorkerState.LOST]
        self._pool.return_workers([process for process in self._processes if process not in alive[:count]])
        return [*alive[:count], *self._pool.take(max(0, count - len(alive)), timeout_ms)]

    def _send_to_task(self, task: TaskId, message: TaskMessage) -> None:
        with self._lock:
            underway = self._underway
            if underway is None or underway.releasing:
                return
            # slot i of a worker is subtask i of every chain
            member = next(member for member in underway.members if task.subtask in member.slots)
            body = PostToTask(task, message)
            if underway.sent:
                member.process.send(ToTasks(underway.id, body))
            else:
                # tasks are not deployed yet; _send_tasks sends it after them
                underway.unsent.append((member, body))

    # What workers say; called from their reader threads.

    def _on_message(self, process: WorkerProcess, message: FromTasks) -> None:
        with self._lock:
            underway = self._underway
            member = (
                None
                if underway is None
                else next((member for member in underway.members if member.process is process), None)
            )
            # fencing: the message is of another deployment, or of a worker that has left this one
            if underway is None or member is None or message.deployment != underway.id or member.released:
                self.stale += 1
                return
            self._on_body(underway, member, message.body)

    def _on_body(self, underway: Underway, member: Member, body: Any) -> None:
        attempt = underway.id.attempt
        match body:
            # deploy only when every worker listens: peers connect at once
            case Prepared(address):
                member.address = address
                if all(each.address is not None for each in underway.members) and not underway.releasing:
                    self._send_tasks(underway)
            # the master learns of a start once all workers have their tasks
            case Deployed():
                member.deployed = True
                if all(each.deployed for each in underway.members):
                    self._post(TasksStarted(attempt))
            # reports of tasks go to the master as they are
            case _ if isinstance(body, _REPORTS):
                self._post(body)
            # a snapshot that the worker itself has written to the job's storage
            case PartWritten() | EndWritten():
                self._post(WrittenElsewhere(body))
            # a failed final snapshot has no checkpoint to abort: it costs the attempt
            case WriteFailure(checkpoint_id, error):
                failed = (
                    StorageFailed(attempt, error.raised())
                    if checkpoint_id is None
                    else CheckpointFailed(attempt, checkpoint_id, error.raised())
                )
                self._post(WrittenElsewhere(failed))
            case TaskFailure(task, error, peer):
                self._on_failure(underway, task, error.raised(), peer)
            # the worker's tasks, by chain and subtask
            case MetricsReport(tasks):
                for figures in tasks:
                    underway.tasks[TaskId(figures.chain, figures.subtask)].counted(figures)
            # the last worker ends the deployment
            case Released():
                member.released = True
                self._end_when_released(underway)
            case _:
                if isinstance(body, ResultRows):
                    self._count_delivered(underway, member, body)
                self._serve(underway, member, body)

    def _serve(self, underway: Underway, member: Member, body: Any) -> None:
        identity = underway.id
        try:
            underway.stores.take(
                member.process.number, body, lambda answer: member.process.send(ToTasks(identity, answer))
            )
        # lines of a print sink for a stdout that takes none: the worker has done its part
        except PenstockError as error:
            self._post(TaskFailed(identity.attempt, _task_of(underway, member), error))

    def _count_delivered(self, underway: Underway, member: Member, body: ResultRows) -> None:
        """Rows that reached the client count from here on, even if the worker dies before it reports them."""
        for task in underway.tasks.values():
            if task.task_id.subtask in member.slots and any(
                body.operator_id == spec.operator_id for spec in task.operators
            ):
                task.delivered(body.operator_id, body.batch.num_rows)
                return

    def _on_failure(self, underway: Underway, task: TaskId, error: Exception, peer: str | None) -> None:
        failure = TaskFailed(underway.id.attempt, task, error)
        # an error of the task itself
        if peer is None:
            self._post(failure)
            return
        # A link breaks when the worker at its other end dies, which is the error to report: wait for that
        # report.
        self._later(PEER_LOSS_WAIT_S, lambda: self._post(failure))

    def _on_lost(self, process: WorkerProcess) -> None:
        with self._lock:
            underway = self._underway
            why = f"worker {process.number} lost: {process.why_lost}"
            self.lost.append(why)
            member = (
                None
                if underway is None
                else next((member for member in underway.members if member.process is process), None)
            )
            if underway is None or member is None or member.released:
                return
            member.released = True
            # one failure per lost worker
            if not underway.releasing:
                error = process.error or PenstockError(
                    "RUN-2910", why, kind=Kind.EXTERNAL, retriable=True, sqlstate="58000"
                )
                self._post(TaskFailed(underway.id.attempt, _task_of(underway, member), error))
            self._end_when_released(underway)

    def _send_tasks(self, underway: Underway) -> None:
        """All workers are prepared: send each its part, then the messages posted meanwhile."""
        deployment, deployer = underway.deployment, underway.deployment.deployer
        functions = FunctionNames(deployer.options.python_modules)
        for member in underway.members:
            # every other worker with its address: each pair has one link
            peers = tuple(
                Peer(other.name, other.address or (), other.slots)
                for other in underway.members
                if other is not member
            )
            body = DeployTasks(
                graph=deployer.graph,
                options=_sent(deployer.options),
                slots=member.slots,
                peers=peers,
                last_checkpoint_id=deployment.last_checkpoint_id,
                keep_snapshots=deployer.keep_snapshots,
                state=self._state,
                manifest=None if deployment.restore is None else deployment.restore.manifest,
                scratch=self.scratch,
                tables=self._tables,
                owner=deployer.owner,
            )
            member.process.send(ToTasks(underway.id, body), functions.name)
        underway.sent = True
        # in the order they were posted, behind the tasks they are for
        for member, post in underway.unsent:
            member.process.send(ToTasks(underway.id, post))
        underway.unsent.clear()

    def _lose_unreleased(self, underway: Underway) -> None:
        """Kill workers that do not close their tasks: a task may be in a step that never ends."""
        for member in underway.members:
            if self._underway is underway and not member.released:
                member.process.lose(f"its tasks were not closed within {RELEASE_S:g} s")

    def _end_when_released(self, underway: Underway) -> None:
        if (
            underway.releasing
            and self._underway is underway
            and all(member.released for member in underway.members)
        ):
            self._underway = None
            if underway.cancel_loss is not None:
                underway.cancel_loss()
            self._post(TasksReleased(underway.id.attempt))


def _task_of(underway: Underway, member: Member) -> TaskId:
    """Return a task of a worker for a failure of it: which one is named does not matter."""
    return next(task for task in underway.tasks if task.subtask in member.slots)


def _sent(options: JobOptions) -> JobOptions:
    """Return the options as workers need them; paths are absolute, since workers may have another working
    directory.
    """
    return replace(
        options,
        record=None,
        cluster=ClusterOptions(),
        state_dir=None if options.state_dir is None else options.state_dir.absolute(),
    )


def _later(delay_s: float, call: Callable[[], None]) -> Callable[[], None]:
    timer = threading.Timer(delay_s, call)
    timer.daemon = True
    timer.start()
    return timer.cancel
