"""One deployment on a worker: its tasks in their slots, its links to other workers, its snapshot writes, its
reports to the coordinator.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.python_connectors import ProgramConnectors
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import Services
from penstock.engine.api.print_stream import PrintStream
from penstock.engine.checkpoint.async_writer import EndWritten, PartWritten, storage_failure
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.connectors.python.lookup import PythonConnectors
from penstock.engine.deploy.coordinator.shared_storage_probe import check_probe
from penstock.engine.deploy.protocol.error_codec import SentError
from penstock.engine.deploy.protocol.messages import (
    BoundedRows,
    Deployed,
    DeploymentId,
    DeployTasks,
    MetricsReport,
    PostToTask,
    Prepare,
    Prepared,
    Printed,
    Released,
    ResultCredit,
    TaskFailure,
    WriteFailure,
)
from penstock.engine.deploy.worker.environment import Plane, WorkerMeans
from penstock.engine.deploy.worker.python_modules import import_by_name
from penstock.engine.deploy.worker.services_client import (
    SentBackends,
    SentBadRecords,
    SentLateRows,
    SentResults,
    SentViews,
)
from penstock.engine.exchange.channel import ConsumerChannel, ProducerChannel, Wakeup
from penstock.engine.network.handshake import Identity
from penstock.engine.operators.source.alignment import WatermarkAlignments
from penstock.engine.task.messages import (
    SnapshotCompleted,
    TaskEnded,
    TaskFailed,
    TaskId,
    TaskReport,
    TasksReleased,
    TasksStarted,
)
from penstock.engine.task.task import Task
from penstock.engine.task_manager.task_deployment import Deployer, Deployment, RestorePoint


class LinkedSlots:
    """The placement of a deployment's subtasks, as one worker sees it."""

    def __init__(self, mine: tuple[int, ...], peers: dict[int, str], plane: Plane | None) -> None:
        self._mine = frozenset(mine)
        self._peers = peers
        self._plane = plane

    def here(self, subtask: int) -> bool:
        return subtask in self._mine

    def producer(self, key: str, target: int, wake: Wakeup) -> ProducerChannel:
        assert self._plane is not None
        return self._plane.sender(key, self._peers[target], wake)

    def consumer(self, key: str, source: int, capacity: int, wake: Wakeup) -> ConsumerChannel:
        assert self._plane is not None
        return self._plane.receiver(key, capacity, wake)


class WorkerTasks:
    """Runs this worker's part of one deployment. ``send`` sends a report to the coordinator; the thread that
    reads messages calls ``take``.

    ``means``: the threads, connections and files it uses.
    """

    def __init__(
        self, deployment: DeploymentId, clock: Clock, send: Callable[[Any], None], means: WorkerMeans
    ) -> None:
        self.deployment = deployment
        self._clock = clock
        self._send = send
        self._means = means
        self._io = means.io()
        self._slots = means.slots(self._on_report, self._io)
        self._plane: Plane | None = None
        self._tasks: dict[TaskId, Task] = {}
        self._store: CheckpointStore | None = None
        self._results = SentResults(send)
        self._backends: SentBackends | None = None
        self._released = False
        self.ended = False

    def take(self, body: Any) -> None:
        """Act on a message; an error is reported as the failure of a task."""
        match body:
            # listen for peers and report the address
            case Prepare():
                try:
                    self._prepare(body)
                except PenstockError as cause:
                    self.fail(cause)
            # all workers are prepared: create the tasks
            case DeployTasks():
                try:
                    self._deploy(body)
                except BaseException as cause:  # noqa: BLE001 - operators are made of the user's plan; whatever they raise is the job's failure
                    self.fail(cause)
            # a task may have failed to be created
            case PostToTask(task, message):
                if task in self._tasks:
                    self._tasks[task].post(message)
            # what the coordinator answers to this worker's services
            case ResultCredit():
                self._results.credited(body)
            case BoundedRows() if self._backends is not None:
                self._backends.came(body)

    def fail(self, cause: BaseException) -> None:
        """Report that the tasks cannot be created."""
        self._send(TaskFailure(TaskId(0, 0), SentError.of(cause, "deployment")))

    def release(self) -> None:
        """Close the tasks; ``Released`` is sent once they are closed."""
        if not self._released:
            self._released = True
            self._slots.release()

    def numbers(self) -> MetricsReport:
        """Return the current figures of the tasks."""
        return MetricsReport(tuple(task.figures() for task in self._tasks.values()))

    def _prepare(self, wanted: Prepare) -> None:
        # first: without the job's directory nothing else can work
        if wanted.probe is not None:
            check_probe(*wanted.probe)
        identity = Identity(
            wanted.name, self.deployment.job_id, self.deployment.epoch, self.deployment.attempt, wanted.token
        )
        self._plane = self._means.plane(identity, self._link_lost) if wanted.linked else None
        self._send(Prepared(() if self._plane is None else tuple(self._plane.address)))

    def _deploy(self, wanted: DeployTasks) -> None:
        # which worker runs a subtask
        peers = {slot: peer.name for peer in wanted.peers for slot in peer.slots}
        if self._plane is not None:
            for peer in wanted.peers:
                # one of each pair connects, the other expects it
                self._plane.connect(peer.name, (str(peer.address[0]), int(peer.address[1])))
        self._store = self._open_store(wanted)
        restore = (
            None
            if self._store is None or wanted.manifest is None
            else RestorePoint(self._store.storage, wanted.manifest)
        )
        # before the tasks: their operators look it up when they are made
        self._backends = SentBackends(wanted.graph, wanted.scratch, self._send)
        deployer = Deployer(
            wanted.graph,
            wanted.options,
            self._services(wanted),
            self._clock,
            self._means.build,
            wanted.keep_snapshots,
            self.deployment.job_id,
            wanted.owner,
        )
        placement = LinkedSlots(wanted.slots, peers, self._plane)
        attempt, epoch = self.deployment.attempt, self.deployment.epoch
        made = self._slots.deploy(
            Deployment(deployer, attempt, restore, wanted.last_checkpoint_id, epoch, placement)
        )
        self._tasks = {task.task_id: task for task in made}
        self._slots.start()

    def _open_store(self, wanted: DeployTasks) -> CheckpointStore | None:
        """Open the job's checkpoints as a worker uses them: it reads parts and writes its own, but never a
        manifest.
        """
        # a job without checkpoints
        if wanted.state is None or not wanted.keep_snapshots:
            return None
        store = CheckpointStore(self._means.storage(wanted.state), self.deployment.job_id)
        # the epoch of the coordinator that this worker serves
        store.epoch = self.deployment.epoch
        return store

    def _services(self, wanted: DeployTasks) -> Services:
        tables = RegisteredTables()
        for table in wanted.tables:
            # mapped into memory: workers of one machine share the pages
            tables.register(table.name, _map_table(table.path))
        stores = (SentLateRows(self._send), SentBadRecords(self._send), SentViews(self._send))
        printing = PrintStream(lambda text: self._send(Printed(text)))
        # what the program registered is not here: a job that wants it was refused
        python = PythonConnectors(ProgramConnectors(), lambda: wanted.options.python_modules, import_by_name)
        return Services(
            self._results,
            tables,
            *stores,
            printing,
            self._backends,
            python,
            WatermarkAlignments(),
            *self._means.services(),
        )

    # What comes of the tasks; called by their slots.

    def _on_report(self, report: TaskReport) -> None:
        match report:
            # write here: state does not travel through the coordinator
            case SnapshotCompleted() | TaskEnded() if self._store is not None:
                self._write(self._store, report)
            # the error as text and numbers: exceptions are not sent
            case TaskFailed(task=task, error=error):
                self._send(TaskFailure(task, SentError.of(error, f"task {task}")))
            case TasksStarted():
                self._send(Deployed())
            case TasksReleased():
                # behind the snapshots that are still being written
                self._io.submit(self._end)
            case _:
                self._send(report)

    def _write(self, store: CheckpointStore, report: SnapshotCompleted | TaskEnded) -> None:
        """Write a snapshot on the I/O thread; it is reported only once it is on storage."""
        attempt, task = self.deployment.attempt, report.task

        def work() -> PartWritten | EndWritten:
            if isinstance(report, SnapshotCompleted):
                written = store.write_task(attempt, report.checkpoint_id, task, report.operators)
                return PartWritten(attempt, report.checkpoint_id, task, written)
            # a task that has ended: its final state is part of every later checkpoint
            written = store.write_task(attempt, report.last_checkpoint_id + 1, task, report.operators)
            return EndWritten(attempt, report.last_checkpoint_id, task, written)

        def run() -> None:
            try:
                outcome: Any = work()
            except Exception as error:  # noqa: BLE001 - the master decides what a failed write means
                # memory exhausted: sent with its code, RUN-2024
                cause = storage_failure(error) if isinstance(error, MemoryError) else error
                outcome = WriteFailure(
                    report.checkpoint_id if isinstance(report, SnapshotCompleted) else None,
                    SentError.of(cause, f"task {task}"),
                )
            self._send(outcome)

        self._io.submit(run)

    def _link_lost(self, peer: str, cause: PenstockError) -> None:
        # which task is named does not matter: ``peer`` is the cause
        task = next(iter(self._tasks), TaskId(0, 0))
        self._send(TaskFailure(task, SentError.of(cause, "data plane"), peer))

    def _end(self) -> None:
        """Send the last figures and report that all tasks are closed; runs after the last write."""
        if self._plane is not None:
            self._plane.close()
        # the last figures before Released, after which messages of this deployment are refused
        self._send(self.numbers())
        self.ended = True
        self._send(Released())


def _map_table(path: Path) -> pa.Table:
    # the arrays keep the mapping alive after the file is closed
    with contextlib.closing(pa.memory_map(str(path))) as source:
        return pa.ipc.open_file(source).read_all()
