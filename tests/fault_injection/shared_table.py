"""The card of the shared table: jobs of one name and one script, each with a state of its own, write to one
table at once and are killed.

Pass: the table holds the rows of all of them, each job's once, and its log names every file once. Simulated
jobs take turns in an order drawn from a seed and die at failpoints; processes of the command line, each in a
working directory of its own, are killed as they stand and started again.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from penstock.engine.api.failpoints import armed
from penstock.engine.connectors.filesystem.commit_log import CommitLog
from penstock.engine.job.job_state import JobState
from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.swept import PARALLELISM, Plans, ProcessKilled, SweptSimulation
from tests.fault_injection.swept_job import Row, expected, unpublished, write_input, written
from tests.fault_injection.two_phase_job import JOB, SCRIPT, SPLITS
from tests.fault_injection.verdict import Verdict
from tests.streaming.databases.places import KINDS, Place

POINTS = ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "C8", "C10", "C11", "C12", "R2", "R2b", "W6")
STEPS = 60_000
INTO = ("filesystem", "sqlite", "postgres")


@dataclass(frozen=True)
class Shared:
    """What a run showed; ``logged``: how often the log names each published file that it does not name
    once.
    """

    states: list[JobState]
    rows: Counter[Row]
    left: list[str]
    logged: dict[str, int]
    kills: int


def share(
    plans: Plans, seed: int, jobs: int, kills: int = 6, owner_of: Callable[[int], str] = "job {}".format
) -> Shared:
    """Run so many jobs over one table to their ends, each killed at points and moments drawn from the seed,
    ``kills`` times in all.

    ``owner_of``: the identity a job draws at its first start; the negative control gives all the same.
    """
    for path in plans.out.rglob("*"):
        if path.is_file():
            path.unlink()
    random = Random(seed)
    simulations = []
    for number in range(jobs):
        before, after = random.choice(PARALLELISM)
        made = SharedSimulation(random.randrange(1 << 30), plans, before, after, random.random() < 0.5)
        made.draw_owner = lambda number=number: owner_of(number)  # type: ignore[misc]
        simulations.append(made)
    due = {point: random.randint(1, 3) for point in random.sample(POINTS, kills)}
    killed = 0

    def act(name: str) -> None:
        nonlocal killed
        due[name] -= 1
        if due[name] == 0:
            killed += 1
            raise ProcessKilled

    with armed(dict.fromkeys(due, act)):
        for _ in range(STEPS):
            running = [simulation for simulation in simulations if not simulation.ended]
            if not running:
                break
            random.choice(running).advance()
    return Shared(
        [simulation.master.state for simulation in simulations],
        written(plans.out),
        unpublished(plans.out),
        misnamed(plans.out, "*.jsonl"),
        killed,
    )


class SharedSimulation(SweptSimulation):
    """One job among others: it goes on by one step when it is its turn."""

    def __init__(self, seed: int, plans: Plans, before: int, after: int, unaligned: bool) -> None:
        super().__init__(seed, plans, before, after, unaligned)
        self._begun = False

    @property
    def ended(self) -> bool:
        """Whether the job has ended."""
        return self._begun and self.master.state.terminal

    def advance(self) -> None:
        """Take a step; a process that is killed in it, also while it starts, is started again at its next
        turn.
        """
        try:
            if self._begun:
                self._step()
            else:
                self._boot()
                self._begun = True
        except ProcessKilled:
            self.graph = self._plans.graph(self._after)
            self._begun = False


def misnamed(out: Path, files: str) -> dict[str, int]:
    """Return how often the log of a directory names each of its published files and each it names, where
    that is not once.
    """
    log = CommitLog(out)
    named = Counter(file.path for number in log.numbers() for file in log.read(number).files)
    there = {
        path.relative_to(out).as_posix()
        for path in out.rglob(files)
        if ".penstock" not in str(path.relative_to(out))
    }
    return {
        name: named[name] for name in sorted(there | named.keys()) if named[name] != 1 or name not in there
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=40, help="of simulated jobs")
    parser.add_argument("--jobs", type=int, default=3, help="processes that write to one table")
    parser.add_argument("--kills", type=int, default=6, help="of each process")
    parser.add_argument("--rows", type=int, default=6_000, help="of each process")
    parser.add_argument("--rate", type=int, default=1_500)
    parser.add_argument("--into", nargs="+", default=list(INTO), choices=INTO)
    parser.add_argument("--only", choices=("simulation", "processes"))


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    root: Path = arguments.directory
    if arguments.only != "processes":
        write_input(root, arguments.seed)
        plans = Plans(root, root / "planned")
        for seed in range(arguments.seed, arguments.seed + arguments.seeds):
            jobs = 2 + seed % 3
            shared = share(plans, seed, jobs)
            verdict.check(
                not faults(shared, expected(root), jobs),
                f"seed {seed}, {jobs} jobs: {faults(shared, expected(root), jobs)}",
            )
            verdict.coverage["simulated kills"] += shared.kills
            verdict.faults += [f"seed {seed}: killed"] * shared.kills
        plans.close()
        verdict.least["simulated kills"] = 4 * arguments.seeds
    if arguments.only != "simulation":
        for kind in arguments.into:
            in_processes(kind, arguments, verdict)


def faults(shared: Shared, of_one: Counter[Row], jobs: int) -> list[str]:
    """Return in what a run differs from what it should have shown."""
    wanted = Counter({row: count * jobs for row, count in of_one.items()})
    facts = {
        f"the jobs are {shared.states}": set(shared.states) != {JobState.FINISHED},
        f"{(wanted - shared.rows).total()} rows lost, {(shared.rows - wanted).total()} doubled": shared.rows
        != wanted,
        f"left over: {shared.left}": bool(shared.left),
        f"named other than once in the log: {shared.logged}": bool(shared.logged),
    }
    return [sentence for sentence, is_so in facts.items() if is_so]


class Table:
    """The table all processes write to, seen from outside."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind, self.out = kind, root / "out"
        self._place = Place(kind, root) if kind in KINDS else None
        if self._place is not None:
            self._place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")

    def script(self, rows: int, rate: int) -> str:
        """Return the statements of each job: it writes the numbers below ``rows``."""
        files = f"WITH ('connector' = 'filesystem', 'path' = '{self.out}', 'format' = 'json', 'sink.rolling.rows' = '40')"
        return SCRIPT.format(
            rows=rows,
            rate=rate,
            splits=SPLITS,
            options=files if self._place is None else self._place.options("out"),
        )

    def numbers(self) -> Counter[int]:
        """Return how often each number is there."""
        if self._place is not None:
            return Counter(row[0] for row in self._place.ask("SELECT k FROM out"))
        return Counter(
            json.loads(line)["k"]
            for path in self.out.glob("part-*")
            for line in path.read_text(encoding="utf-8").splitlines()
        )

    def left(self) -> list[str]:
        """Return what is left staged or is not named once in the log."""
        if self._place is not None:
            return [f"{count} transactions" for count in [self._place.staged()] if count]
        return [
            *unpublished(self.out),
            *(f"{name} named {count} times" for name, count in misnamed(self.out, "*.jsonl").items()),
        ]


def in_processes(kind: str, arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Run the jobs as processes of one script in working directories of their own, each killed again and
    again as it stands.
    """
    root = arguments.directory / kind
    table, random = _made(kind, root), Random(arguments.seed)
    homes = [root / f"home{number}" for number in range(arguments.jobs)]
    counts: Counter[str] = Counter()

    def see_through(home: Path, seed: int) -> None:
        job, moments = JobProcess(home, table.script(arguments.rows, arguments.rate), JOB), Random(seed)
        home.mkdir()
        try:
            for _ in range(arguments.kills):
                job.start(parallelism=moments.choice((1, 2)))
                with suppress(AssertionError):  # it has ended before it could be killed
                    job.await_checkpoint()
                    job.await_that(lambda: job.newest % 7 == moments.randrange(7))
                counts["processes killed"] += job.kill()
            job.start(parallelism=moments.choice((1, 2)))
            verdict.check(job.wait() == 0, f"{kind}: {home.name}: {job.told[-1500:]}")
        finally:
            job.reap()

    threads = [threading.Thread(target=see_through, args=(home, random.randrange(1 << 30))) for home in homes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found, wanted = table.numbers(), Counter(dict.fromkeys(range(arguments.rows), arguments.jobs))
    verdict.check(
        found == wanted, f"{kind}: {(wanted - found).total()} rows lost, {(found - wanted).total()} doubled"
    )
    verdict.check(not table.left(), f"{kind}: left over are {table.left()[:5]}")
    verdict.coverage += Counter({f"{kind}: {name}": count for name, count in counts.items()})
    verdict.faults += [f"{kind}: {name}" for name in counts.elements()]
    verdict.least[f"{kind}: processes killed"] = arguments.jobs
    verdict.figures[kind] = {
        "rows": wanted.total(),
        "lost": (wanted - found).total(),
        "doubled": (found - wanted).total(),
    }


def _made(kind: str, root: Path) -> Table:
    root.mkdir()
    with suppress(sqlite3.OperationalError):
        return Table(kind, root)
    raise AssertionError(f"no table of {kind} can be made")
