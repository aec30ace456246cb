"""Two hundred seeds of a windowed aggregate under crashes, each twice; and planted bugs that the oracle must see."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from catalog.errors import PenstockError
from engine.barriers import Alignment
from engine.job_state import JobState
from engine.task import Task
from planner.edges import Partition
from planner.physical import JobGraph
from tests.runtime.fakes import Faults, Ledger, Row, build, expected, make_splits, services, window_job
from tests.runtime.simulation import Simulation

SEEDS = 200
SPLITS = make_splits(3, 24, 4)


def window_graph(random: Random) -> JobGraph:
    parallelism, sources = random.choice([1, 2, 3]), random.choice([1, 2, 3])
    edge = None if random.random() < 0.5 else Partition((0,))
    return window_job(SPLITS, parallelism=parallelism, sources=sources, batch_rows=random.choice([1, 3, 10]), sink_edge=edge)


def simulate(seed: int) -> tuple[Simulation, Counter[Row]]:
    ledger = Ledger()
    simulation = Simulation(seed, window_graph, lambda: services(ledger, Faults()), build)
    state = simulation.run(faulty_steps=800, healed_steps=8_000)
    assert state is JobState.FINISHED, f"seed {seed} is {state} after healing: {simulation.master.error}"
    return simulation, ledger.rows()


def wrong(seed: int) -> bool:
    """Whether a seed shows a wrong result, or an error only a bug of ours can cause."""
    try:
        _, rows = simulate(seed)
    except (AssertionError, KeyError, PenstockError):
        return True
    return rows != expected(SPLITS, 10)


def test_seeds_are_exact_and_repeatable() -> None:
    coverage: Counter[str] = Counter()
    truth = expected(SPLITS, 10)
    for seed in range(SEEDS):
        first, rows = simulate(seed)
        assert rows == truth, f"seed {seed}: {rows - truth} too many, {truth - rows} missing"
        second, _ = simulate(seed)
        assert first.trace == second.trace, f"seed {seed} went two ways"
        coverage += first.coverage
    rare = [
        "crashed while a checkpoint was published",
        "restored in a new process",
        "restored with an ended task",
        "task failed while a checkpoint was under way",
        *(f"{verb} failed" for verb in ("create", "append", "sync", "sync_directory", "publish")),
        *(f"power lost at {verb}" for verb in ("create", "append", "sync", "sync_directory", "publish")),
    ]
    assert not [name for name in rare if not coverage[name]], coverage


def caught_within(seeds: int) -> bool:
    return any(wrong(seed) for seed in range(seeds))


def test_snapshot_before_alignment_is_complete_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hasty(Alignment):
        """Lets a checkpoint through at the first barrier and ignores the others."""

        def __init__(self, channels: int) -> None:
            super().__init__(channels)
            self._last = 0

        def on_barrier(self, channel: int, checkpoint_id: int) -> int | None:
            if checkpoint_id <= self._last:
                return None
            self._last = checkpoint_id
            return checkpoint_id

    monkeypatch.setattr("engine.input_gate.Alignment", Hasty)
    assert caught_within(50)


def test_barrier_forwarded_before_the_snapshot_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward_first(self: Task, checkpoint_id: int) -> None:
        self._output.barrier(checkpoint_id)
        if self.is_source:
            self._poll_source(self._clock.monotonic_ms(), False)
        checkpoint(self, checkpoint_id)

    checkpoint = Task._checkpoint
    monkeypatch.setattr(Task, "_checkpoint", forward_first)
    assert caught_within(50)


def test_commit_before_the_manifest_is_durable_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.checkpoint_coordinator import CheckpointCoordinator
    from engine.job_messages import CheckpointComplete

    def commit_early(self: CheckpointCoordinator) -> None:
        pending = self.pending
        if pending is not None and not pending.awaiting and not pending.publishing:
            for task in sorted(self._tasks):
                self._send(task, CheckpointComplete(pending.checkpoint_id))
        complete(self)

    complete = CheckpointCoordinator._complete_when_all_written
    monkeypatch.setattr(CheckpointCoordinator, "_complete_when_all_written", commit_early)
    assert caught_within(50)
