"""Two hundred seeds of windowed aggregates under crashes, each twice; and planted bugs that the oracle must see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from catalog.errors import PenstockError
from engine.barriers import Alignment
from engine.checkpoint_coordinator import CheckpointCoordinator
from engine.elements import Barrier
from engine.job_messages import CheckpointComplete
from engine.job_state import JobState
from engine.task import Task
from planner.edges import Partition
from planner.physical import JobGraph
from tests.runtime import fakes, real_windows
from tests.runtime.fakes import Faults, Ledger, Row, expected, make_splits, services, window_job
from tests.runtime.simulation import Barriers, Simulation

SEEDS = 200
PLANTED_SEEDS = 200
SPLITS = make_splits(3, 16, 4)
PLANTED_SPLITS = make_splits(3, 30, 4)  # the fake job is quicker, so it can afford more
MARGIN = 5
"""How often each of the rare things must happen in the seeds, so that no small change leaves one of them out unseen."""
RARE = (
    "crashed while a checkpoint was published",
    "restored in a new process",
    "restored with an ended task",
    "rescaled",
    "rescale wished for while a checkpoint was under way",
    "task failed while a checkpoint was under way",
    *(f"{verb} failed" for verb in ("create", "append", "sync", "sync_directory", "publish", "delete")),
    *(f"power lost at {verb}" for verb in ("create", "append", "sync", "sync_directory", "publish", "delete")),
)


def fake_graph(random: Random) -> JobGraph:
    parallelism, sources = random.choice([1, 2, 3]), random.choice([1, 2, 3])
    edge = None if random.random() < 0.5 else Partition((0,))
    return window_job(PLANTED_SPLITS, parallelism=parallelism, sources=sources, batch_rows=random.choice([1, 3, 10]), sink_edge=edge)


def truths() -> list[Counter[Row]]:
    """Return what each window's job must give."""
    return [real_windows.expected(SPLITS, window) for window in real_windows.WINDOWS]


def simulate(seed: int, *, real: bool, steps: int | None = None, barriers: Barriers | None = None) -> tuple[Simulation, Counter[Row]]:
    """Run a seed to its end; return the simulation and the rows its sink committed. ``barriers``: the way they go, by default drawn from the seed."""
    ledger = Ledger()
    window = real_windows.WINDOWS[seed % len(real_windows.WINDOWS)]
    graph = (lambda random: real_windows.real_job(SPLITS, window, random)) if real else fake_graph
    simulation = Simulation(seed, graph, lambda: services(ledger, Faults()), real_windows.build if real else fakes.build, barriers)
    state = simulation.run(faulty_steps=steps or (600 if real else 1_000), healed_steps=8_000)
    assert state is JobState.FINISHED, f"seed {seed} is {state} after healing: {simulation.master.error}"
    return simulation, ledger.rows()


def test_seeds_are_exact_and_repeatable() -> None:
    coverage: Counter[str] = Counter()
    expected_of = truths()
    for seed in range(SEEDS):
        truth = expected_of[seed % len(expected_of)]
        first, rows = simulate(seed, real=True)
        assert rows == truth, f"seed {seed}: {rows - truth} too many, {truth - rows} missing"
        second, _ = simulate(seed, real=True)
        assert first.trace == second.trace, f"seed {seed} went two ways"
        coverage += first.coverage
    assert not [name for name in RARE if coverage[name] < MARGIN], coverage


def caught(seeds: int = PLANTED_SEEDS, barriers: Barriers | None = None, first: Sequence[int] = ()) -> bool:
    """Whether one of the seeds shows a wrong result, or an error only a bug of ours can cause; ``first``: those to begin with."""
    truth = expected(PLANTED_SPLITS, 10)
    for seed in (*first, *range(seeds)):
        try:
            _, rows = simulate(seed, real=False, barriers=barriers)
        except (AssertionError, KeyError, PenstockError):
            return True
        if rows != truth:
            return True
    return False


def test_nothing_is_caught_when_nothing_is_planted() -> None:
    assert not caught(40)


def test_snapshot_before_alignment_is_complete_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(Alignment):
        """Lets a checkpoint through at the first barrier and ignores the others."""

        def on_barrier(self, channel: int, barrier: Barrier) -> Barrier | None:
            if barrier.checkpoint_id <= self.settled:
                return None
            self.settled = barrier.checkpoint_id
            return barrier

    monkeypatch.setattr("engine.input_gate.Alignment", Hasty)
    assert caught()


def test_barrier_forwarded_before_the_snapshot_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = Task._checkpoint

    def forward_first(self: Task, barrier: Barrier, *, ahead: bool = False) -> None:
        self._output.barrier(barrier, self._clock.monotonic_ms())
        if self._gate is None and not self._output.blocked:
            self.chain.poll()  # what runs between a forwarded barrier and a snapshot taken too late
        checkpoint(self, barrier, ahead=ahead)

    monkeypatch.setattr(Task, "_checkpoint", forward_first)
    monkeypatch.setattr(Alignment, "on_barrier", once_per_checkpoint(Alignment.on_barrier))
    assert caught()


def once_per_checkpoint(on_barrier):
    """Ignore the second barrier of the same checkpoint, which the planted bug above sends."""

    def guarded(self: Alignment, channel: int, barrier: Barrier) -> Barrier | None:
        seen = self.__dict__.setdefault("seen", {})
        if seen.get(channel) == barrier.checkpoint_id:
            return None
        seen[channel] = barrier.checkpoint_id
        return on_barrier(self, channel, barrier)

    return guarded


def test_commit_before_the_manifest_is_durable_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = CheckpointCoordinator._complete_when_all_written

    def commit_early(self: CheckpointCoordinator) -> None:
        pending = self.pending
        if pending is not None and not pending.awaiting and not pending.publishing:
            for task in sorted(self._tasks):
                self._send(task, CheckpointComplete(pending.checkpoint_id))
        complete(self)

    monkeypatch.setattr(CheckpointCoordinator, "_complete_when_all_written", commit_early)
    assert caught()
