"""Many seeds, all or some of them twice: every result exact, every trace the same again, and every rare
event often enough.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.simulation.jobs import answer, simulate

STEPS = 5_000
MARGIN = 3
"""How often each of the rare things must happen in the seeds of ``test_seeds.py``, so that no small change leaves one of them
out unseen.
"""
ENOUGH_EVENTS = 5
"""How often the chosen seeds bring each of them."""
ENOUGH = 5
"""Wrong seeds after which no more are tried."""
RARE = (
    "an old coordinator found itself superseded",
    "byte changed",
    "bytes late",
    "bytes repeated",
    "connection cut",
    "control connection garbled",
    "coordinator killed while a checkpoint was published",
    "coordinator taken over",
    "damage refused",
    "disk full at append",
    "disk full at create",
    "link lost: NET-5003",
    "link lost: NET-5005",
    "link lost: NET-5009",
    "message twice",
    "opening failed",
    "rescale wished for while a checkpoint was under way",
    "rescaled",
    "restored in a new process",
    "restored rows in flight",
    "restored rows in flight at another parallelism",
    "restored with an ended task",
    "taken over right before CURRENT was renamed",
    "taken over right before chk was renamed",
    "task failed while a checkpoint was under way",
    "too many failed checkpoints",
    "wall clock jumped",
    "worker killed",
    "worker stopped",
    *(f"{verb} failed" for verb in ("create", "append", "sync", "sync_directory", "publish", "delete")),
    *(
        f"{what} at {verb}"
        for what in ("killed", "power lost")
        for verb in ("create", "append", "sync", "sync_directory", "publish", "delete")
    ),
    "append torn",
)
"""What must have happened for many seeds to mean anything."""


@dataclass
class Found:
    """What many seeds have shown."""

    wrong: list[str] = field(default_factory=list)
    coverage: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    seeds: int = 0
    seconds: float = 0.0

    def missing(self, least: int) -> dict[str, int]:
        """Return the rare events that happened less often than that."""
        return {name: self.coverage[name] for name in RARE if self.coverage[name] < least}


def run_seeds(
    seeds: Iterable[int], steps: int = STEPS, *, twice_every: int = 1, until_s: float = float("inf")
) -> Found:
    """Run seeds until ``until_s`` seconds have passed at most; ``seconds`` are of this process's own time.

    ``twice_every``: of so many seeds in turn one is run a second time, to see whether its trace is the same.
    """
    found = Found()
    started_s, started_cpu_s = time.monotonic(), time.process_time()
    with garbage_collected_seldom():
        for number, seed in enumerate(seeds):
            _run_seed(seed, steps, number % twice_every == 0, found)
            if time.monotonic() - started_s > until_s or len(found.wrong) >= ENOUGH:
                break
    found.seconds = time.process_time() - started_cpu_s
    return found


def _run_seed(seed: int, steps: int, twice: bool, found: Found) -> None:
    found.seeds += 1
    try:
        cluster, rows = simulate(seed, steps=steps)
        again = simulate(seed, steps=steps)[0] if twice else cluster
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is told with its seed
        found.wrong.append(f"seed {seed}: {type(error).__name__}: {str(error)[:500]}")
        return
    found.coverage += cluster.coverage
    found.steps += cluster.steps + (again.steps if twice else 0)
    truth = answer(seed)
    if rows != truth:
        found.wrong.append(
            f"seed {seed}: {(rows - truth).total()} rows too many, {(truth - rows).total()} missing"
        )
    if cluster.trace != again.trace:
        found.wrong.append(f"seed {seed} went two ways")


@contextlib.contextmanager
def garbage_collected_seldom() -> Iterator[None]:
    """A simulation makes and drops so much that looking for garbage takes a sixth of its time."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
