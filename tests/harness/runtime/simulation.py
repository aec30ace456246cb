"""The seeded simulation: one thread drives master, tasks, I/O and clock in an order drawn from a seed, and
pulls plugs.

Everything is drawn from the seed, the knobs too, so a seed that fails fails again. Two phases: faults on,
then healed; a healed job must finish.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter, deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Services
from penstock.engine.api.restart_strategy import FixedDelay
from penstock.engine.checkpoint.plan_identity import plan_identity
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.exchange.channel import no_wakeup
from penstock.engine.job.job_events import RescaleRequested
from penstock.engine.job.job_master import JobMaster
from penstock.engine.job.job_state import JobState
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.task.messages import TaskFailed, TasksReleased, TasksStarted
from penstock.engine.task.task import Did, Task
from penstock.engine.task_manager.task_deployment import BuildOperator, Deployer, Deployment
from penstock.planner.physical.operator_specs import JobGraph

Barriers = dict[str, Any]

BARRIERS: tuple[Barriers, ...] = (
    {},
    {"unaligned": True},
    {"unaligned": True, "aligned_timeout_ms": 1},
    {"unaligned": True, "aligned_timeout_ms": 5},
    {"unaligned": True, "aligned_timeout_ms": 25},
)
"""The ways barriers may go, each of them exact."""


class PowerLoss(BaseException):
    """The machine stops here."""


class FaultyStorage(MemoryStorage):
    """Storage whose next operations may fail or lose power, as the simulation decides at each."""

    def __init__(self) -> None:
        super().__init__()
        self.before_operation: Callable[[str], None] = lambda verb: None

    def create(self, name: str) -> None:
        self.before_operation("create")
        super().create(name)

    def append(self, name: str, data: bytes) -> None:
        self.before_operation("append")
        super().append(name, data)

    def sync(self, name: str) -> None:
        self.before_operation("sync")
        super().sync(name)

    def sync_directory(self) -> None:
        self.before_operation("sync_directory")
        super().sync_directory()

    def publish(self, name: str, target: str) -> None:
        self.before_operation("publish")
        super().publish(name, target)

    def delete(self, name: str) -> None:
        self.before_operation("delete")
        super().delete(name)


class SimulatedWorkers:
    """Holds tasks and I/O until the scheduler picks them."""

    def __init__(self, post: Callable[[Any], None]) -> None:
        self._post = post
        self._attempt = 0
        self.tasks: list[Task] = []
        self.releasing = False
        self.io: deque[tuple[Callable[[], Any], Callable[[Exception], Any]]] = deque()

    def deploy(self, deployment: Deployment) -> Sequence[Task]:
        tasks = deployment.tasks(self._post, lambda slot: no_wakeup)
        self._attempt, self.tasks, self.releasing = deployment.attempt, list(tasks), False
        return tasks

    def start(self) -> None:
        self._post(TasksStarted(self._attempt))

    def release(self) -> None:
        self.releasing = True

    def run_io(self, work: Callable[[], Any], failed: Callable[[Exception], Any]) -> None:
        self.io.append((work, failed))

    def step_task(self, task: Task) -> Did:
        try:
            return task.step().did
        except Exception as error:  # noqa: BLE001 - as a slot does
            self.tasks.remove(task)
            task.close()
            self._post(TaskFailed(task.attempt, task.task_id, error))
            return Did.ENDED

    def step_release(self) -> None:
        if self.tasks:
            self.tasks.pop().close()
        else:
            self.releasing = False
            self._post(TasksReleased(self._attempt))

    def step_io(self) -> None:
        work, failed = self.io.popleft()
        try:
            outcome = work()
        except Exception as error:  # noqa: BLE001 - as the I/O thread does
            outcome = failed(error)
        self._post(outcome)


class Simulation:
    """One job under one seed. ``coverage`` counts the rare things that happened; ``trace`` is a digest of
    every decision and what came of it.
    """

    def __init__(
        self,
        seed: int,
        graph: Callable[[Random], JobGraph],
        services: Callable[[], Services],
        build: BuildOperator,
        barriers: Barriers | None = None,
    ) -> None:
        self.random = Random(seed)
        self.clock = ManualClock(1_000)
        self.storage = FaultyStorage()
        self.coverage: Counter[str] = Counter()
        self.steps = 0
        self._make_graph = graph
        self.graph = graph(self.random)
        self._services = services
        self._build = build
        self._trace = hashlib.blake2b(digest_size=16)
        self._faults = True
        self.draw_owner: Callable[[], str] = lambda: "sim"
        self._crash_rate = self.random.choice([0.0, 0.001, 0.003])
        self._task_failure_rate = self.random.choice([0.0, 0.001, 0.003])
        self._io_failure_rate = self.random.choice([0.0, 0.01, 0.05])
        self._power_rate = self.random.choice([0.0, 0.005, 0.02])
        self._rescale_rate = self.random.choice([0.0, 0.002, 0.01])
        # above 1 favours the first tasks (sources), below 1 the last
        self._skew = self.random.choice([0.5, 1, 2, 3])
        weights = [
            self.random.choice([1, 3, 10]),
            self.random.choice([15, 30, 60]),
            self.random.choice([1, 3, 10]),
            1,
        ]
        # master, task, I/O, clock
        self._until = list(itertools.accumulate(weight / sum(weights) for weight in weights))
        self.options = JobOptions(
            batch_max_rows=self.random.choice([1, 4, 100]),
            buffer_timeout_ms=self.random.choice([0, 1, 20]),
            checkpoint_interval_ms=self.random.choice([2, 10, 40]),
            checkpoint_timeout_ms=self.random.choice([20, 200, 10_000]),
            checkpoint_min_pause_ms=self.random.choice([0, 5]),
            channel_capacity=self.random.choice([1, 2, 8]),
            restart=FixedDelay(attempts=1_000_000, delay=5.0),
            tolerable_failed_checkpoints=1_000_000,
            **(barriers if barriers is not None else self.random.choice(BARRIERS)),
        )
        self.storage.before_operation = self._storage_operation

    @property
    def trace(self) -> str:
        return self._trace.hexdigest()

    def run(self, faulty_steps: int, healed_steps: int) -> JobState:
        """Run until the job ends; faults stop after ``faulty_steps``; returns the last state."""
        self._boot()
        for number in range(faulty_steps + healed_steps):
            if number == faulty_steps:
                self._heal()
            self.steps += 1
            try:
                self._step()
            except PowerLoss:
                self._crash(power=True)
            if self.master.state.terminal:
                break
        return self.master.state

    def _heal(self) -> None:
        """No more faults, and nobody starves."""
        self._faults = False
        self._skew = 1
        self._until = [0.1, 0.85, 0.95, 1.0]

    def _boot(self) -> None:
        faults, self._faults = self._faults, False
        plan = plan_identity(self.graph)
        store = CheckpointStore(self.storage, "sim", 2)
        opened = store.open()
        owner = store.own(self.draw_owner())
        posts: list[JobMaster] = []
        self.workers = SimulatedWorkers(lambda message: posts[0].post(message))
        deployer = Deployer(
            self.graph,
            self.options,
            self._services(),
            self.clock,
            self._build,
            keep_snapshots=True,
            job_id="sim",
            owner=owner,
        )
        self.master = JobMaster("sim", deployer, plan, self.workers, store, opened)
        posts.append(self.master)
        if opened.latest is not None:
            rows, parts = (
                sum(task.channel_state_rows for task in opened.latest.tasks),
                {operator.operator_id: operator.parallelism for operator in opened.latest.operators},
            )
            self.coverage["restored rows in flight"] += rows > 0
            self.coverage["restored rows in flight at another parallelism"] += rows > 0 and parts != {
                operator.operator_id: operator.parallelism for operator in plan.operators
            }
            self.coverage["restored in a new process"] += 1
            self.coverage["restored with an ended task"] += bool(opened.latest.ended)
        self.master.start()
        self._faults = faults

    def _step(self) -> None:
        if self._faults and self._chance(self._crash_rate * self._delicate()):
            self._crash(power=self.random.random() < 0.5)
            return
        if self._chance(self._rescale_rate):
            self._rescale()
        draw = self.random.random()
        if draw < self._until[0]:
            rescales = self.master._rescales
            self.master.step()
            self.coverage["rescaled"] += self.master._rescales - rescales
            self._note("master", self.master.state.value)
        elif draw < self._until[1] and (self.workers.releasing or self.workers.tasks):
            self._note("task", self._step_task())
        elif draw >= self._until[1] and draw < self._until[2] and self.workers.io:
            self.workers.step_io()
            self._note("io", "")
        else:
            self.clock.advance(0.1 + 5.0 * self.random.random() ** 3)
            self._note("clock", f"{self.clock.now_ms:.3f}")

    def _step_task(self) -> str:
        if self.workers.releasing:
            self.workers.step_release()
            return "released"
        tasks = self.workers.tasks
        task = tasks[int(self.random.random() ** self._skew * len(tasks))]
        if self._faults and self._chance(self._task_failure_rate * self._delicate()):
            self.coverage["task failed"] += 1
            self.coverage["task failed while a checkpoint was under way"] += (
                self.master.coordinator.pending is not None
            )
            self.workers.tasks.remove(task)
            task.close()
            self.master.post(TaskFailed(task.attempt, task.task_id, ConnectionError("injected")))
            return f"{task.task_id} failed"
        return f"{task.task_id.chain}.{task.task_id.subtask} {self.workers.step_task(task).value}"

    def _rescale(self) -> None:
        """Wish for another parallelism, whatever the job is doing; a process that dies comes back with the
        new plan.
        """
        self.coverage["rescale wished for while a checkpoint was under way"] += (
            self.master.coordinator.pending is not None
        )
        self.graph = self._make_graph(self.random)
        self.master.post(RescaleRequested(self.graph, plan_identity(self.graph)))
        self._note("rescale", str([chain.parallelism for chain in self.graph.chains]))

    def _storage_operation(self, verb: str) -> None:
        # these happen less often than the others, and must go wrong as well
        rarer = {"publish": 8, "sync_directory": 4, "delete": 4}.get(verb, 1)
        if self._chance(self._power_rate * rarer):
            self.coverage[f"power lost at {verb}"] += 1
            raise PowerLoss
        if self._chance(self._io_failure_rate * rarer):
            self.coverage[f"{verb} failed"] += 1
            raise OSError(5, f"injected at {verb}")

    def _crash(self, *, power: bool) -> None:
        """Lose the process and everything in it; with ``power`` also what storage had not made durable."""
        pending = self.master.coordinator.pending
        self.coverage["crashed"] += 1
        self.coverage["crashed while a checkpoint was published"] += (
            pending is not None and pending.publishing
        )
        self._note("crash", "with power" if power else "")
        if power:
            self.storage.crash(self.random.randrange)
        self._boot()

    def _chance(self, rate: float) -> bool:
        return rate > 0 and self._faults and self.random.random() < rate

    def _delicate(self) -> int:
        """How much likelier faults are now: they are drawn to the moment between a complete checkpoint and
        a durable one.
        """
        pending = self.master.coordinator.pending
        return 10 if pending is not None and pending.publishing else 1

    def _note(self, action: str, outcome: str) -> None:
        self._trace.update(f"{action} {outcome}\n".encode())
