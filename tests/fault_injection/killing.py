"""Killing a job's processes again and again at moments drawn from a seed, and counting what the kills have
hit.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from penstock.engine.checkpoint.manifest import decode_manifest
from tests.fault_injection.job_process import JobProcess

AIMS = ("any moment", "while a checkpoint is taken", "between a durable checkpoint and its commits")
AIM_S = 3.0
LEAST_ROWS = 300
POLL_S = 0.0005


@dataclass
class Kills:
    """``count`` kills, ``every`` seconds apart (drawn up to ``jitter`` more), each aimed at a moment;
    ``targets``: coordinator, worker. ``least_rows``: of keyed state before each.
    """

    count: int
    every: float
    jitter: float
    random: Random
    targets: tuple[str, ...] = ("coordinator",)
    coverage: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    outages_s: list[float] = field(default_factory=list)
    splits_s: dict[str, list[float]] = field(default_factory=dict)
    least_rows: int = LEAST_ROWS

    def run(self, job: JobProcess, restart: Callable[[], None]) -> None:
        """Start the job, kill and restart it, and leave it running after the last kill."""
        restart()
        for number in range(self.count):
            job.await_checkpoint()
            # or there is little that could be lost
            job.await_that(lambda: job.finished or rows_kept(job.state) >= self.least_rows)
            time.sleep(max(0.0, self.every - 1.0) + self.random.random() * self.jitter)
            aim = AIMS[number % len(AIMS)]
            target = self.targets[number % len(self.targets)]
            self._await_aim(job, aim)
            if job.finished or not job.alive:
                self.faults.append(f"{number}: the job had ended before it could be killed")
                return
            self._count(job, aim, target)
            killed_s = time.monotonic()
            if target == "coordinator":
                job.kill()
                restart()
                self._recovered(job, killed_s)
            else:
                before = job.newest
                os.kill(self.random.choice(workers_of(job)), signal.SIGKILL)
                job.await_that(lambda before=before: job.newest > before + 1)
                self.outages_s.append(time.monotonic() - killed_s)
            self.faults.append(f"{number}: {target} killed at {aim}")

    def _await_aim(self, job: JobProcess, aim: str) -> None:
        deadline, newest = time.monotonic() + AIM_S, job.newest
        while aim != AIMS[0] and time.monotonic() < deadline and job.alive and not job.finished:
            if checkpoint_under_way(job.state) if aim == AIMS[1] else job.newest > newest:
                return
            time.sleep(POLL_S)

    def _count(self, job: JobProcess, aim: str, target: str) -> None:
        self.coverage["kills"] += 1
        self.coverage[f"kills of the {target}"] += 1
        self.coverage["kills while a checkpoint was under way"] += checkpoint_under_way(job.state)
        self.coverage["kills just behind a durable checkpoint"] += aim == AIMS[2]

    def _recovered(self, job: JobProcess, killed_s: float) -> None:
        """Measure what of the outage was what: until the job runs, until it has restored, until it has
        completed a checkpoint.
        """
        started_s = job.started_s
        job.await_that(lambda: job.running)
        running_s = time.monotonic()
        job.await_checkpoint()
        done_s = time.monotonic()
        self.outages_s.append(done_s - killed_s)
        for name, spent_s in (
            ("detect", started_s - killed_s),
            ("restart", running_s - started_s),
            ("restore and first checkpoint", done_s - running_s),
        ):
            self.splits_s.setdefault(name, []).append(spent_s)


def checkpoint_under_way(state: Path) -> bool:
    """Whether parts of a checkpoint that is not complete lie in a job's directory."""
    names = os.listdir(state) if state.is_dir() else []
    newest = max(
        (int(found[1]) for name in names if (found := re.fullmatch(r"chk-(\d+)\.manifest\.json", name))),
        default=0,
    )
    return any(
        name.endswith(".tmp")
        or ((found := re.match(r"\w+-e\d+-a\d+-c(\d+)-", name)) and int(found[1]) > newest)
        for name in names
    )


def rows_kept(state: Path) -> int:
    """Return how many rows of keyed state the newest checkpoint in a job's directory has."""
    newest = max(
        state.glob("chk-*.manifest.json"),
        key=lambda path: int(path.name.split("-")[1].split(".")[0]),
        default=None,
    )
    try:
        tasks = () if newest is None else decode_manifest(newest.name, newest.read_bytes()).tasks
    except FileNotFoundError:  # a newer one has just taken its place
        return 0
    return sum(group.rows for task in tasks for part in task.keyed for group in part.groups)


def workers_of(job: JobProcess) -> list[int]:
    """Return the process ids of a coordinator's children."""
    assert job.process is not None
    pid = job.process.pid
    return [
        int(word)
        for path in Path(f"/proc/{pid}/task").glob("*/children")
        for word in path.read_text().split()
    ]


def quantile(values: list[float], share: float) -> float:
    """Return the value below which a share of the values lies; 0 when there are none."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2) if ordered else 0.0
