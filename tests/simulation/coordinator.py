"""A simulated coordinator: the real master, checkpoint store and worker handling, driven by chance; and
its workers as processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError
from penstock.engine.checkpoint.plan_identity import plan_identity
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.deploy.coordinator.job_workers import ProcessWorkers
from penstock.engine.deploy.coordinator.worker_handle import WorkerProcess, WorkerState
from penstock.engine.deploy.coordinator.worker_pool import OVERSLEPT_MS, WATCH_S
from penstock.engine.job.job_master import JobMaster, Posted
from penstock.engine.task_manager.task_deployment import Deployer
from tests.simulation.disk import NodeDisk
from tests.simulation.task_manager import SimulatedIo, SimulatedSlots, TaskManager
from tests.simulation.wires import ControlEnd
from tests.simulation.world import Node

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

RENEW_MS = 500.0
START_UP_MS = 40.0
START_MS = 30_000.0


class SimulatedContainer:
    """A worker process that is a node of the simulation."""

    fault = pid = None
    token = ""

    def __init__(self, number: int, pool: SimulatedPool) -> None:
        self.number = number
        self.process = WorkerProcess(number, pool.coordinator.clock, self)  # type: ignore[arg-type]
        self._node: TaskManager | None = None
        self._pool = pool

    def begin(self) -> None:
        """Start, which takes a while."""
        coordinator = self._pool.coordinator
        coordinator.after(START_UP_MS * coordinator.world.random.random(), self._started)

    def ended(self) -> None:
        """How it has ended is told by its connection."""

    def disconnected(self) -> str:
        return "exit -9"

    def kill(self) -> None:
        if self._node is not None:
            self._pool.cluster.kill(self._node)

    def _started(self) -> None:
        if self.process.state is WorkerState.LOST:
            return
        cluster, coordinator = self._pool.cluster, self._pool.coordinator
        self._node = node = TaskManager(cluster, f"{coordinator.name}.w{self.number}")
        there = cluster.wire("control", coordinator, node)
        back = cluster.wire("control", node, coordinator)
        messages: dict[int, Any] = {}
        near = ControlEnd(there, messages)
        node.begin(ControlEnd(back, messages))
        there.take, there.ended = node.heard, node.left_alone
        back.take, back.ended = partial(self._heard, near), lambda: self.process.lose("exit -9")
        cluster.came(node)
        coordinator.workers_of.append(node)
        self.process.attach(near)  # type: ignore[arg-type]

    def _heard(self, near: ControlEnd, data: bytes) -> None:
        try:
            messages = near.received(data)
        except PenstockError as error:
            self._pool.cluster.coverage["control connection garbled"] += 1
            self.process.lose(f"its messages cannot be read: {error}")
            return
        for message in messages:
            self.process.take(message)


class SimulatedPool:
    """The workers of one coordinator."""

    def __init__(self, cluster: Cluster, coordinator: Coordinator) -> None:
        self.cluster = cluster
        self.coordinator = coordinator
        self._workers: list[WorkerProcess] = []
        self._taken: set[int] = set()
        self._timeout_ms = 5_000.0
        self._before_ms = coordinator.clock.monotonic_ms()
        self._count = 0
        coordinator.after(WATCH_S * 1e3, self._watch)

    def take(self, count: int, timeout_ms: float) -> list[WorkerProcess]:
        self._timeout_ms = timeout_ms
        taken = [
            worker
            for worker in self._workers
            if worker.state is WorkerState.IDLE and worker.number not in self._taken
        ][:count]
        while len(taken) < count:
            self._count += 1
            container = SimulatedContainer(self._count, self)
            taken.append(container.process)
            self._workers.append(container.process)
            container.begin()
        self._taken.update(worker.number for worker in taken)
        return taken

    def return_workers(self, workers: Sequence[WorkerProcess]) -> None:
        for worker in workers:
            worker.belongs_to(None, None)
            self._taken.discard(worker.number)
        self._workers = [worker for worker in self._workers if worker.state is not WorkerState.LOST]

    def _watch(self) -> None:
        now_ms = self.coordinator.clock.monotonic_ms()
        overslept, self._before_ms = now_ms - self._before_ms > OVERSLEPT_MS, now_ms
        if not overslept:
            for worker in list(self._workers):
                worker.check(self._timeout_ms, START_MS)
        self.coordinator.after(WATCH_S * 1e3, self._watch)


class Coordinator(Node):
    """The process of a job's master. Making one opens the job's directory, which may raise."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster.world, name)
        self.workers_of: list[TaskManager] = []
        self.cluster = cluster
        self._steps = self.runnable("master", "master", self._step)
        self._due_ms = 0.0
        self.master: JobMaster | None = None
        self.store = CheckpointStore(NodeDisk(cluster.disk, self), "simulated", cluster.knobs.retained)

    def start(self, *, take_over: bool) -> None:
        """Open the directory and deploy. PenstockError and OSError as the store raises them."""
        cluster, io = self.cluster, SimulatedIo(self)
        opened = self.store.open(take_over=take_over)
        cluster.opened(opened)
        self.slots = None
        workers: ProcessWorkers | SimulatedSlots
        if cluster.knobs.options.deployment == "processes":
            pool = SimulatedPool(cluster, self)

            def later(delay_s: float, call: Callable[[], None]) -> None:
                self.after(delay_s * 1e3, call)

            workers = ProcessWorkers(pool, self._post, io, Path("state"), (), Path("scratch"), later)  # type: ignore[arg-type]
        else:
            workers = self.slots = SimulatedSlots(cluster, self, self._post, io)
        graph, options = cluster.graph, cluster.knobs.options
        whose = {"job_id": "simulated", "owner": "simulated"}
        deployer = Deployer(
            graph,
            options,
            cluster.job.services(),
            self.clock,
            cluster.job.build,
            keep_snapshots=True,
            **whose,
        )
        wake = lambda: self.world.wake(self._steps)  # noqa: E731
        self.master = JobMaster(
            "simulated", deployer, plan_identity(graph), workers, self.store, opened, wake=wake
        )
        self._guarded(self.master.start)
        wake()
        self.after(RENEW_MS, self._renew)

    @property
    def ended(self) -> bool:
        """Whether the job has ended, as far as this process is concerned."""
        return self.master is not None and self.master.state.terminal

    @property
    def delicate(self) -> bool:
        """Whether a checkpoint is being published, or was and is not committed everywhere yet."""
        coordinator = None if self.master is None else self.master.coordinator
        return coordinator is not None and (
            bool(coordinator.committing)
            or (coordinator.pending is not None and coordinator.pending.publishing)
        )

    def tasks(self) -> list[SimulatedSlots]:
        """Return whatever runs tasks for it."""
        slots = [self.slots, *(worker.slots for worker in self.workers_of if worker.alive)]
        return [each for each in slots if each is not None]

    def _post(self, message: Posted) -> None:
        assert self.master is not None
        self.master.post(message)

    def _step(self) -> str:
        assert self.master is not None
        due_ms = self._guarded(self.master.step)
        if self.ended:
            self.cluster.ended(self)
            return str(self.master.state)
        now_ms = self.clock.monotonic_ms()
        if due_ms is not None and not now_ms < self._due_ms <= due_ms:
            self._due_ms = due_ms
            self.after(due_ms - now_ms, lambda: self.world.wake(self._steps))
        return str(self.master.state)

    def _renew(self) -> None:
        if not self.ended:
            self._guarded(self.store.renew)
            self.world.wake(self._steps)
            self.after(RENEW_MS, self._renew)

    def _guarded(self, call: Callable[[], Any]) -> Any:
        """As the manager of jobs does: a fault of the master ends its job."""
        assert self.master is not None
        try:
            return call()
        except Exception as cause:  # noqa: BLE001
            self.master.abort(cause)
            return None
