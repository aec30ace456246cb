"""The card of rescaling: a job begins at one parallelism and is finished at another, from a checkpoint of
each kind; the answer is that of one slot.

Choices are the job, both parallelisms, what lies between, whether state has a small budget of memory and
whether checkpoints tell changes only.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from random import Random
from typing import Any

from penstock.client.connection import Connection
from penstock.engine.job.job import Job
from tests.compatibility.jobs import JOBS, ROWS, opened, results, statement
from tests.fault_injection.verdict import Verdict
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.source_gate import SourceGate, gated

WAYS = ("stop", "savepoint", "crash", "crash unaligned", "online")
RATE = 30_000
FAST = 1_000_000
HELD_AT = ROWS * 4 // 5
"""Rows of each table after which sources wait until the job was rescaled or stopped: every case is
rescaled in mid-run.
"""


@dataclass(frozen=True)
class Case:
    """One choice of everything."""

    job: str
    first: int
    then: int
    way: str
    small_memory: bool
    incremental: bool

    def __str__(self) -> str:
        return f"{self.job} {self.first}->{self.then}, {self.way}{', small memory' * self.small_memory}{', whole checkpoints' * (not self.incremental)}"

    def settings(self, parallelism: int) -> dict[str, str]:
        """What a session of the case is opened with."""
        chosen = {
            "parallelism.default": str(parallelism),
            "execution.checkpointing.incremental": str(self.incremental).lower(),
            "execution.checkpointing.unaligned.enabled": str(self.way == "crash unaligned").lower(),
        }
        return chosen | ({"state.memory.budget-per-slot": "4 MB"} if self.small_memory else {})


CHOICES: tuple[Sequence[Any], ...] = (
    tuple(JOBS),
    range(1, 6),
    range(1, 6),
    WAYS,
    (False, True),
    (True, False),
)


def every_pair(seed: int) -> list[Case]:
    """Return cases in which each two values of different choices meet at least once; the first ones meet
    most.
    """
    random = Random(seed)
    places = list(itertools.combinations(range(len(CHOICES)), 2))
    missing = {(a, b, x, y) for a, b in places for x in CHOICES[a] for y in CHOICES[b]}
    cases = []
    while missing:
        tried = []
        for a, b, x, y in random.sample(sorted(missing, key=repr), min(30, len(missing))):
            for _ in range(8):
                values = [random.choice(choice) for choice in CHOICES]
                values[a], values[b] = x, y
                tried.append(values)
        best = max(tried, key=lambda values: len(_pairs(values) & missing))
        missing -= _pairs(best)
        cases.append(Case(*best))
    return cases


def _pairs(values: Sequence[Any]) -> set[tuple[int, int, Any, Any]]:
    return {(a, b, values[a], values[b]) for a, b in itertools.combinations(range(len(values)), 2)}


def every_case() -> list[Case]:
    """Return all cases there are."""
    return [Case(*values) for values in itertools.product(*CHOICES)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, help="only so many of those that meet every pair")
    parser.add_argument("--full", action="store_true", help="all cases instead, 5,000 of them")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    verdict.least = {"rescaled in mid-run": 1}
    cases = every_case() if arguments.full else every_pair(arguments.seed)[: arguments.cases]
    expected: dict[str, Any] = {}
    for number, case in enumerate(cases):
        if case.job not in expected:
            with _inside(arguments.directory / f"straight-{case.job}"):
                _finish(case.job, {"parallelism.default": "1"})
                expected[case.job] = results(case.job)
        with _inside(arguments.directory / str(number)):
            rescaled(case, verdict)
            verdict.check(results(case.job) == expected[case.job], f"{case}: not the answer of one slot")
        verdict.faults.append(str(case))
    verdict.figures["cases"] = len(cases)


def rescaled(case: Case, verdict: Verdict) -> None:
    """Run a case in the current directory."""
    settings = case.settings(case.then)
    with gated(HELD_AT) as gate, opened(case.job, RATE, case.settings(case.first)) as connection:
        _begin_and_leave(case, connection, gate)
    verdict.coverage["rescaled in mid-run"] += 1
    if case.way == "savepoint":
        saved = next(path for path in Path("saved").rglob("CURRENT")).parent
        settings |= {"execution.checkpointing.dir": "state2", "execution.state-recovery.path": str(saved)}
    if case.way != "online":
        _finish(case.job, settings)


def _begin_and_leave(case: Case, connection: Connection, gate: SourceGate) -> None:
    """Run the job to a checkpoint in mid-run; rescale it there and await its end, or stop it as the case
    says.
    """
    job = connection.execute(statement(case.job)).job
    assert job is not None
    await_that(
        lambda: (job.metrics().rows_in >= ROWS // 3 and bool(job.checkpoints)) or job.state.terminal,
        f"a checkpoint of {case}",
    )
    assert not job.state.terminal, job.error
    match case.way:
        case "online":
            connection.execute(f"ALTER JOB '{job.job_id}' SET PARALLELISM {case.then}")
            gate.open()
            _await_end(job)
            return
        case "savepoint":
            connection.execute(f"STOP JOB '{job.job_id}' WITH SAVEPOINT 'saved'")
        case "stop":
            connection.execute(f"STOP JOB '{job.job_id}'")
        case _:
            connection.execute(f"CANCEL JOB '{job.job_id}'")
    assert job.wait(PATIENCE_S)


def _finish(job: str, settings: Mapping[str, str]) -> None:
    with opened(job, FAST, settings) as connection:
        running = connection.execute(statement(job)).job
        assert running is not None
        _await_end(running)


def _await_end(job: Job) -> None:
    assert job.wait(PATIENCE_S), f"does not end: {job.state}"
    if job.error is not None:
        raise job.error


@contextlib.contextmanager
def _inside(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(directory):
        yield


def covered(cases: Sequence[Case]) -> int:
    """Return how many pairs of choices meet in some cases."""
    return len(set().union(*(_pairs(astuple(case)) for case in cases)))
