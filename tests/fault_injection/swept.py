"""One run of the swept job in the simulation, with one failpoint armed: killed, failed or delayed there,
gone on with, judged by its files.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.client.session import Session
from penstock.engine.api.failpoints import armed
from penstock.engine.api.operator import Services
from penstock.engine.api.restart_strategy import FixedDelay
from penstock.engine.checkpoint.manifest import decode_manifest
from penstock.engine.job.job_state import JobState
from penstock.engine.operators.factory import build_operator
from penstock.planner.physical.operator_specs import JobGraph
from penstock.planner.statements.nodes import Insert
from tests.fault_injection.swept_job import Row, script, unpublished, written
from tests.harness.runtime.simulation import PowerLoss, Simulation

STEPS = 20_000
RESTORING = ("R1", "R2", "R2b")
# those that come seldom act at their first hit, the others at their second
FIRST_HIT = ("C1", "C13", "C14", "G3", "W11", *RESTORING)
# steps that touch nothing that could fail
IN_MEMORY = ("C1", "C2", "C3", "C4", "C5", "C12", "C13", "C14", "W10")
# W11: this job's queues are hardly ever so full that a barrier has rows to overtake; K and L: this job writes files
NOT_HERE = ("W11", "K1", "K2", "K3", "L1", "L2")
PARALLELISM = ((1, 1), (2, 3))


@dataclass(frozen=True)
class Swept:
    """What a run showed."""

    reached: bool
    state: JobState
    rows: Counter[Row]
    left: list[str]


class ProcessKilled(PowerLoss):
    """The process dies, the machine does not."""


class Plans:
    """The swept job's plans by parallelism, made once over one directory of input."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root = root
        self.out = root / "out"
        self._sessions = {p: Session({"parallelism.default": str(p)}, state_dir=state) for p in (1, 2, 3)}
        self._graphs = {p: self._plan(session) for p, session in self._sessions.items()}

    def graph(self, parallelism: int) -> JobGraph:
        """Return the plan at a parallelism."""
        return self._graphs[parallelism]

    def services(self) -> Services:
        """Return what operators of these plans ask for."""
        state = self._sessions[1].state
        return Services(state.registered, state.bad_records, state.engine.late_rows, state.views.tables)

    def close(self) -> None:
        """Release the sessions."""
        for session in self._sessions.values():
            session.close()

    def _plan(self, session: Session) -> JobGraph:
        for statement in session.parse(script(self.root, self.out, rate=2_000, rolling=3)):
            if isinstance(statement.node, Insert):
                graph = session.pipeline.plan(session.pipeline.bind(statement.node)).graph
                assert graph is not None
                return graph
            session.run(statement)
        raise AssertionError("the script has no INSERT")


class SweptSimulation(Simulation):
    """The simulation without faults of its own; after the death it goes on at another parallelism if
    asked.
    """

    def __init__(self, seed: int, plans: Plans, before: int, after: int, unaligned: bool) -> None:
        super().__init__(seed, lambda random: plans.graph(before), plans.services, build_operator)
        self._plans, self._after = plans, after
        self._crash_rate = self._task_failure_rate = self._io_failure_rate = self._power_rate = (
            self._rescale_rate
        ) = 0.0
        self._skew = 3 if unaligned else 1  # sources run ahead, so that there are rows to overtake
        self._until = [0.2, 0.8, 0.9, 1.0]
        self.options = replace(
            self.options,
            batch_max_rows=10,
            buffer_timeout_ms=1,
            checkpoint_interval_ms=15,
            checkpoint_timeout_ms=10_000,
            checkpoint_min_pause_ms=0,
            channel_capacity=4,
            restart=FixedDelay(attempts=20, delay=5.0),
            unaligned=unaligned,
        )

    def _crash(self, *, power: bool) -> None:
        self.options = replace(self.options, checkpoint_timeout_ms=10_000)
        self.graph = self._plans.graph(self._after)
        super()._crash(power=False)


def sweep(
    plans: Plans,
    point: str,
    does: str,
    parallelism: tuple[int, int],
    *,
    seed: int = 1,
    times: int = 1,
    unaligned: bool = False,
) -> Swept:
    """Run the job with one point armed: there the process dies (``times`` times in a row), the step fails,
    or two seconds pass.
    """
    for path in plans.out.rglob("*"):
        if path.is_file():
            path.unlink()
    simulation = SweptSimulation(seed, plans, *parallelism, unaligned)
    if point == "C13":
        simulation.options = replace(simulation.options, checkpoint_timeout_ms=3)
    hits = Counter[str]()
    first = 1 if point in FIRST_HIT else 2

    def act(name: str) -> None:
        hits[name] += 1
        if first <= hits[name] < first + times:
            _do(does, name, simulation)

    with armed({**_first_death(point), point: act}):
        state = simulation.run(STEPS, 0)
    return Swept(
        hits[point] >= first + times - 1,
        state,
        written(plans.out),
        [*_orphans(simulation), *unpublished(plans.out)],
    )


def meaningful(point: str, does: str) -> bool:
    """Whether a fault can happen at a point: what touches nothing cannot fail, and a checkpoint already
    given up for its time cannot take longer.
    """
    return point not in NOT_HERE and (
        does == "kill" or (point not in IN_MEMORY if does == "raise" else point != "C13")
    )


def _do(does: str, name: str, simulation: Simulation) -> None:
    if does == "kill":
        raise ProcessKilled
    if does == "raise":
        raise OSError(errno.EIO, f"failpoint {name}")
    simulation.clock.advance(2_000)


def _first_death(point: str) -> dict[str, Callable[[str], None]]:
    """What must die before anything is restored: the third checkpoint, as it is told of."""
    hits = Counter[str]()

    def die(name: str) -> None:
        hits[name] += 1
        if hits[name] == 3:
            raise ProcessKilled

    return {"C12": die} if point in RESTORING else {}


def _orphans(simulation: Simulation) -> list[str]:
    """Return the files no checkpoint that is kept needs."""
    names = simulation.storage.list()
    manifests = {
        name: decode_manifest(name, simulation.storage.read(name))
        for name in names
        if name.endswith(".manifest.json")
    }
    needed = {file.name for manifest in manifests.values() for file in manifest.files}
    kept = (
        needed
        | manifests.keys()
        | {"CURRENT", "FINISHED", "OWNER", f"epoch-{max(m.epoch for m in manifests.values())}"}
    )
    spare = sorted(manifests, key=lambda name: manifests[name].checkpoint_id)[:-2]
    return [name for name in names if name not in kept] + spare
