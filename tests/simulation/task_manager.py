"""A simulated task manager: the real worker, whose slots, I/O and data plane are picked by chance instead
of run by threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.catalog.errors import PenstockError
from penstock.engine.deploy.worker.main import METRICS_EVERY_S, Worker
from penstock.engine.exchange.channel import Wakeup
from penstock.engine.network.admission import Refusals
from penstock.engine.network.handshake import Identity
from penstock.engine.network.links import LinkLost
from penstock.engine.storage.storage import Storage
from penstock.engine.task.messages import TaskFailed, TaskReport, TasksReleased, TasksStarted
from penstock.engine.task.task import Did, Task
from penstock.engine.task_manager.task_deployment import Deployment
from penstock.engine.task_manager.task_manager import run_io
from tests.simulation.disk import NodeDisk
from tests.simulation.plane import SimulatedPlane
from tests.simulation.wires import ControlEnd
from tests.simulation.world import Node, Runnable

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster


class SimulatedIo:
    """Does the blocking work of a node, a piece at a time, in order."""

    def __init__(self, node: Node) -> None:
        self._world = node.world
        self._work: deque[Callable[[], None]] = deque()
        self._next = node.runnable("io", "io", self._act)

    def submit(self, work: Callable[[], None]) -> None:
        self._work.append(work)
        self._world.wake(self._next)

    def _act(self) -> str:
        self._work.popleft()()
        if self._work:
            self._world.wake(self._next)
        return ""


class SimulatedSlots:
    """Steps tasks that were woken, or whose time has come; nobody else is."""

    def __init__(
        self, cluster: Cluster, node: Node, report: Callable[[TaskReport], None], io: SimulatedIo
    ) -> None:
        self._cluster = cluster
        self._node = node
        self._report = report
        self._io = io
        self._attempt = 0
        self._tasks: dict[Runnable, Task] = {}
        self._slots: dict[int, list[Runnable]] = {}
        self._due_ms: dict[Runnable, float] = {}
        self._closes = node.runnable("task", "close", self._close_one)

    def deploy(self, deployment: Deployment) -> Sequence[Task]:
        self._slots = {}
        tasks = deployment.tasks(self._report, self._wakeup)
        self._attempt, self._tasks, self._due_ms = deployment.attempt, {}, {}
        for task in tasks:
            if task._gate is not None and not self._cluster.knobs.merges:
                task._gate._max_rows = 0
            runnable = self._node.runnable("task", str(task.task_id), lambda: "")
            runnable.act = self._stepper(runnable, task)
            self._tasks[runnable] = task
            self._slots.setdefault(task.task_id.subtask, []).append(runnable)
        return tasks

    def start(self) -> None:
        for runnable in self._tasks:
            self._node.world.wake(runnable)
        self._report(TasksStarted(self._attempt))

    def release(self) -> None:
        self._node.world.wake(self._closes)

    def run_io(self, work: Callable[[], Any], failed: Callable[[Exception], Any]) -> None:
        run_io(self._io, self._report, work, failed)  # type: ignore[arg-type]

    def running(self) -> list[Task]:
        """Return the tasks that run."""
        return list(self._tasks.values())

    def fail(self, task: Task, error: Exception) -> None:
        """Let a task fail."""
        runnable = next(key for key, value in self._tasks.items() if value is task)
        del self._tasks[runnable]
        task.close()
        self._report(TaskFailed(task.attempt, task.task_id, error))

    def _wakeup(self, slot: int) -> Wakeup:
        woken, world = self._slots.setdefault(slot, []), self._node.world

        def wake() -> None:
            for runnable in woken:
                if not runnable.queued:
                    world.wake(runnable)

        return wake

    def _stepper(self, runnable: Runnable, task: Task) -> Callable[[], str]:
        world, node, cluster = self._node.world, self._node, self._cluster

        def step() -> str:
            if runnable not in self._tasks:
                return "gone"
            if cluster.dawdles(task):
                world.wake(runnable)
                return "dawdles"
            try:
                result = task.step()
            except Exception as error:  # noqa: BLE001 - as a slot does
                self.fail(task, error)
                return "failed"
            if result.did is Did.WORKED:
                world.wake(runnable)
            elif (
                result.wake_ms is not None
                and not node.clock.monotonic_ms() < self._due_ms.get(runnable, 0.0) <= result.wake_ms
            ):
                self._due_ms[runnable] = result.wake_ms
                node.after(result.wake_ms - node.clock.monotonic_ms(), lambda: world.wake(runnable))
            return result.did.value

        return step

    def _close_one(self) -> str:
        if self._tasks:
            self._tasks.popitem()[1].close()
            self._node.world.wake(self._closes)
        else:
            self._report(TasksReleased(self._attempt))
        return ""


class SimulatedMeans:
    """What the worker of a simulated task manager runs its tasks with."""

    def __init__(self, cluster: Cluster, node: TaskManager) -> None:
        self.build = cluster.job.build
        self._cluster = cluster
        self._node = node

    def io(self) -> SimulatedIo:
        return SimulatedIo(self._node)

    def slots(self, report: Callable[[TaskReport], None], io: SimulatedIo) -> SimulatedSlots:
        self._node.slots = SimulatedSlots(self._cluster, self._node, report, io)
        return self._node.slots

    def plane(self, identity: Identity, link_lost: LinkLost) -> SimulatedPlane:
        self._node.plane = SimulatedPlane(self._cluster, self._node, identity, link_lost)
        return self._node.plane

    def storage(self, directory: Path) -> Storage:
        return NodeDisk(self._cluster.disk, self._node)

    def services(self) -> tuple[Any, ...]:
        return self._cluster.job.outside

    def refusals(self) -> Refusals:
        return Refusals()


class TaskManager(Node):
    """A worker process."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster.world, name)
        self.slots: SimulatedSlots | None = None
        self.plane: SimulatedPlane | None = None
        self._cluster = cluster

    def begin(self, control: ControlEnd) -> None:
        """Run over a connection with the coordinator."""
        self._control = control
        self._worker = Worker(control, self.clock, SimulatedMeans(self._cluster, self))  # type: ignore[arg-type]
        self.after(METRICS_EVERY_S * 1e3, self._beat)

    def heard(self, data: bytes) -> None:
        """Take what the coordinator says; what is no message ends the process."""
        try:
            messages = self._control.received(data)
        except PenstockError:
            self._cluster.coverage["control connection garbled"] += 1
            self._cluster.kill(self)
            return
        for message in messages:
            self._worker.take(message)

    def left_alone(self) -> None:
        """The coordinator is gone: so is its worker."""
        self._cluster.kill(self)

    def _beat(self) -> None:
        self._worker.beat()
        self.after(METRICS_EVERY_S * 1e3, self._beat)
