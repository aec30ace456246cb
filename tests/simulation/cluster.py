"""A cluster under one seed: coordinators, task managers, wires and a disk, and what befalls them; at the end
all heals, and the job must finish.

Two phases: faults on, then healed. The oracle is with whoever calls: what the job's sink has committed.
``wrong`` says what no fault explains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.engine.api.operator import Services
from penstock.engine.checkpoint.plan_identity import plan_identity
from penstock.engine.checkpoint.store import Opened
from penstock.engine.job.job_events import RescaleRequested
from penstock.engine.job.job_state import JobState
from penstock.engine.task.task import Task
from penstock.engine.task_manager.task_deployment import BuildOperator
from penstock.planner.physical.operator_specs import JobGraph
from tests.simulation.coordinator import Coordinator
from tests.simulation.disk import Disk
from tests.simulation.knobs import Fixed, draw
from tests.simulation.plane import SimulatedPlane
from tests.simulation.task_manager import TaskManager
from tests.simulation.wires import Trouble, Wire
from tests.simulation.world import Died, Node, World

LIKELIER = 8
"""How much likelier faults are between a complete checkpoint and one that is committed everywhere."""


@dataclass(frozen=True)
class SimulatedJob:
    """What runs: ``graph`` draws a plan, always of the same state; ``outside`` is the world its operators
    act on, which survives everything.
    """

    graph: Callable[[Random], JobGraph]
    build: BuildOperator
    outside: tuple[Any, ...]

    def services(self) -> Services:
        """Return what operators in the coordinator's process find."""
        return Services(*self.outside)


class Cluster:
    """One job under one seed. ``coverage`` counts the rare things that happened."""

    def __init__(self, seed: int, job: SimulatedJob, fixed: Fixed, trouble: Trouble | None) -> None:
        self.random = random = Random(seed)
        self.coverage: Counter[str] = Counter()
        self.world = World(random)
        self.knobs = draw(random, fixed, trouble)
        self.disk = Disk(random, self.coverage)
        self.disk.fault = self._at_operation
        self.job = job
        self.graph = job.graph(random)
        self.current: Coordinator | None = None
        self.state: JobState = JobState.CREATED
        self.wrong: str | None = None
        self._faulty = True
        self._nodes: list[Node] = []
        self._wires: list[Wire] = []
        self._planes: list[SimulatedPlane] = []
        self._count = 0
        self._boots = self._nested = False
        self._total = sum(self.knobs.rates.values())
        self._faults: dict[str, Callable[[], None]] = {
            "coordinator killed": self._kill_coordinator,
            "worker killed": lambda: self._to_worker(self.kill),
            "worker stopped": lambda: self._to_worker(self._stop_a_while),
            "power lost": self._lose_power,
            "coordinator taken over": self._take_over,
            "task failed": self._fail_task,
            "link cut": self._cut_link,
            "checkpoint given up": self._give_up,
            "rescale": self._rescale,
            "bit flipped": self._flip,
            "disk full": self._fill_disk,
            "clock jumped": self._jump,
        }

    @property
    def trace(self) -> str:
        """A digest of all that happened."""
        return self.world.trace

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self.world.steps

    def run(self, faulty_steps: int, healed_steps: int) -> JobState:
        """Run until the job ends; faults stop after ``faulty_steps``; returns the last state."""
        self._boot()
        while (
            self.wrong is None
            and self.state is not JobState.FINISHED
            and self.world.steps < faulty_steps + healed_steps
        ):
            if self._faulty:
                if self.world.steps >= faulty_steps:
                    self._heal()
                else:
                    self._maybe_fault()
            if not self.world.step():
                self.wrong = "nothing is left to happen"
        return self.state

    # What the nodes ask.

    def wire(self, name: str, source: Node, target: Node) -> Wire:
        """Return one direction of a new connection."""
        wire = Wire(name, source, target, self.knobs.trouble, self.coverage)
        self._wires = [each for each in self._wires if each.source.alive or each.target.alive]
        self._wires.append(wire)
        return wire

    def listen(self, plane: SimulatedPlane) -> int:
        """Return where a data plane is found."""
        self._planes.append(plane)
        return len(self._planes) - 1

    def plane(self, port: int) -> SimulatedPlane | None:
        """Return who listens there."""
        found = self._planes[port]
        return found if found.node.alive and not found.closing else None

    def dawdles(self, task: Task) -> bool:
        """Whether a task takes longer this time."""
        return task.task_id.chain == self.knobs.slow_chain and self.random.random() < 0.5

    def opened(self, opened: Opened) -> None:
        """Count what a new coordinator goes on from."""
        if opened.latest is None:
            return
        rows = sum(task.channel_state_rows for task in opened.latest.tasks)
        before = {operator.operator_id: operator.parallelism for operator in opened.latest.operators}
        now = {operator.operator_id: operator.parallelism for operator in plan_identity(self.graph).operators}
        self.coverage["restored in a new process"] += 1
        self.coverage["restored rows in flight"] += rows > 0
        self.coverage["restored rows in flight at another parallelism"] += rows > 0 and before != now
        self.coverage["restored with an ended task"] += bool(opened.latest.ended)

    def ended(self, coordinator: Coordinator) -> None:
        """A coordinator's job has come to its end, so the process has too."""
        master = coordinator.master
        assert master is not None
        code = None if master.error is None else master.error.code
        if coordinator is not self.current:
            self.coverage["an old coordinator found itself superseded"] += code == "STA-3002"
        elif master.state is JobState.FINISHED:
            self.state = JobState.FINISHED
        elif not self._explained(code):
            self.wrong = (
                f"the job is {master.state}: {master.error} {master.error.detail if master.error else ''}"
            )
        self.coverage["rescaled"] += master._rescales
        self.kill(coordinator)

    def kill(self, node: Node) -> None:
        """A process dies, and its connections with it."""
        if not node.alive:
            return
        node.alive = False
        self.world.note(f"{node.name} dies")
        for wire in self._wires:
            if wire.source is node:
                wire.cut()
            elif wire.target is node:
                wire.close()
        self._nodes = [each for each in self._nodes if each is not node]
        if isinstance(node, TaskManager):
            node.slots = node.plane = None
        elif node is self.current:
            self.current = None
            if self.state is not JobState.FINISHED:
                self._boot_soon()

    def came(self, node: Node) -> None:
        """A process has started."""
        self._nodes.append(node)

    # Coordinators come and go.

    def _boot_soon(self) -> None:
        if not self._boots:
            self._boots = True
            self.world.at(self.world.now_ms + 30.0 * self.random.random(), None, self._boot)

    def _boot(self) -> None:
        """Start a coordinator; one that cannot open the job's directory is tried again."""
        self._boots = False
        if self.current is not None:
            return
        self._count += 1
        self.current = coordinator = Coordinator(self, f"c{self._count}")
        self.came(coordinator)
        self.world.note(f"{coordinator.name} boots")
        try:
            coordinator.start(take_over=True)
        except OSError:
            self.coverage["opening failed"] += 1
            self.kill(coordinator)
        except PenstockError as error:
            if not self._explained(error.code):
                self.wrong = f"the directory cannot be opened: {error} {error.detail}"
            self.kill(coordinator)
        except Died:
            pass

    def _explained(self, code: str | None) -> bool:
        """Whether a fault explains that the job cannot go on; whoever looks after it then does what the
        error asks for.
        """
        if code == "STA-3005" and self.disk.damaged:
            self.coverage["damage refused"] += 1
            self.disk.repair()
            return True
        if code == "STA-3011" and self.knobs.options.tolerable_failed_checkpoints < 100:
            self.coverage["too many failed checkpoints"] += 1
            return True
        return False

    # Faults.

    def _maybe_fault(self) -> None:
        current = self.current
        if current is None or current.master is None:
            return
        rate = self._total * LIKELIER if current.delicate else self._total
        if self.random.random() >= rate:
            return
        drawn = self.random.random() * self._total
        for name, share in self.knobs.rates.items():
            drawn -= share
            if drawn < 0:
                self.world.note(name)
                self._faults[name]()
                return

    def _heal(self) -> None:
        self._faulty = False
        self.knobs.trouble.end()
        self.disk.failure_rate = self.disk.torn_rate = 0.0
        self.disk.full = False
        self.disk.repair()
        for node in self._nodes:
            if node.stopped:
                node.go_on()
        self.world.calm()

    def _kill_coordinator(self) -> None:
        assert self.current is not None and self.current.master is not None
        pending = self.current.master.coordinator.pending
        self.coverage["coordinator killed"] += 1
        self.coverage["coordinator killed while a checkpoint was published"] += (
            pending is not None and pending.publishing
        )
        self.kill(self.current)

    def _to_worker(self, does: Callable[[Node], None]) -> None:
        workers = [node for node in self._nodes if isinstance(node, TaskManager) and not node.stopped]
        if workers:
            self.coverage["worker killed" if does == self.kill else "worker stopped"] += 1
            does(self.random.choice(workers))

    def _stop_a_while(self, node: Node) -> None:
        node.stop()
        self.world.at(
            self.world.now_ms + 3_000.0 * self.random.random() ** 2,
            None,
            lambda: node.go_on() if node.stopped else None,
        )

    def _lose_power(self) -> None:
        self.coverage["power lost"] += 1
        for wire in self._wires:
            wire.close()
        for node in list(self._nodes):
            self.kill(node)
        self.disk.crash(self.random.randrange)

    def _take_over(self) -> None:
        """The coordinator stands still, another takes its place; the first may go on before, or after
        that.
        """
        coordinator = self.current
        assert coordinator is not None
        self.coverage["coordinator taken over"] += 1
        coordinator.stop()
        self.current = None
        self._boot_soon()
        self.world.at(self.world.now_ms + 120.0 * self.random.random() ** 2, None, coordinator.go_on)

    def _take_over_at_publish(self, coordinator: Coordinator, target: str) -> None:
        """The coordinator stands still between its look at the epoch and a rename, while another takes
        over and goes on for a while.
        """
        self.coverage[f"taken over right before {target.split('-', maxsplit=1)[0]} was renamed"] += 1
        self._nested = True
        coordinator.stop()
        self.current = None
        self._boot()
        for _ in range(self.random.choice([0, 10, 100, 400])):
            if not coordinator.alive or self.wrong is not None or not self.world.step():
                break
        self._nested = False
        if not coordinator.alive:
            raise Died
        coordinator.go_on()

    def _fail_task(self) -> None:
        assert self.current is not None and self.current.master is not None
        running = [(slots, task) for slots in self.current.tasks() for task in slots.running()]
        if running:
            slots, task = self.random.choice(running)
            self.coverage["task failed"] += 1
            self.coverage["task failed while a checkpoint was under way"] += (
                self.current.master.coordinator.pending is not None
            )
            slots.fail(task, ConnectionError("injected"))

    def _cut_link(self) -> None:
        wires = [wire for wire in self._wires if wire.source.alive and wire.target.alive]
        if wires:
            wire = self.random.choice(wires)
            self.coverage["connection cut"] += 1
            wire.cut()

    def _give_up(self) -> None:
        assert self.current is not None and self.current.master is not None
        coordinator = self.current.master.coordinator
        if coordinator.pending is not None and not coordinator.pending.publishing:
            self.coverage["checkpoint given up"] += 1
            coordinator.abort(coordinator.pending.checkpoint_id, "injected")

    def _rescale(self) -> None:
        """Wish for another parallelism, whatever the job is doing; a process that dies comes back with the
        new plan.
        """
        assert self.current is not None and self.current.master is not None
        self.coverage["rescale wished for while a checkpoint was under way"] += (
            self.current.master.coordinator.pending is not None
        )
        self.graph = self.job.graph(self.random)
        self.current.master.post(RescaleRequested(self.graph, plan_identity(self.graph)))

    def _flip(self) -> None:
        if self.disk.flip() is not None:
            self.coverage["bit flipped"] += 1

    def _fill_disk(self) -> None:
        if not self.disk.full:
            self.coverage["disk full"] += 1
            self.disk.full = True
            self.world.at(self.world.now_ms + 60.0 * self.random.random(), None, self._free_disk)

    def _free_disk(self) -> None:
        self.disk.full = False

    def _jump(self) -> None:
        self.coverage["wall clock jumped"] += 1
        self.random.choice(self._nodes).clock.jumped_ms += self.random.choice([-3_600_000.0, 3_600_000.0])

    def _at_operation(self, node: Node, verb: str, name: str) -> None:
        """What befalls a node at an operation of storage."""
        if not node.alive:
            raise Died
        if not self._faulty:
            return
        rarer = {"publish": 8, "sync_directory": 3}.get(verb, 1)
        drawn = self.random.random()
        if drawn < self.knobs.dies * rarer:
            self.coverage[f"killed at {verb}"] += 1
            self.kill(node)
            raise Died
        if drawn < self.knobs.rates["power lost"] * 10 * rarer + self.knobs.dies * rarer:
            self.coverage[f"power lost at {verb}"] += 1
            self._lose_power()
            raise Died
        if (
            verb == "publish"
            and not self._nested
            and node is self.current
            and self.random.random() < self.knobs.rates["coordinator taken over"] * 150
        ):
            self._take_over_at_publish(self.current, name)
        self.disk.fail(verb)
