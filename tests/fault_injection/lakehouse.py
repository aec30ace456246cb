"""The card of lakehouse tables: a job that reads one table as a stream of versions and writes another dies at
each step of its sink; a stranger writes to the same table all the while, and may compact it.

Between deaths the parallelism goes from 1 to 2 to 3. With worker processes a worker and the coordinator die in
turn, at moments drawn from the seed. Pass: DuckDB counts every number once in the files that the library names,
and the stranger's rows are there. The job is alone with its epochs: no step fails by itself, for a commit that
fails is one of the steps at which it dies.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import time
from collections import Counter
from contextlib import nullcontext
from itertools import cycle
from pathlib import Path
from random import Random

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.killing import Kills
from tests.fault_injection.lakehouse_tables import (
    INTO,
    JOB,
    SERVER_STEPS,
    LakehouseTable,
    compacting,
    table_of,
)
from tests.fault_injection.verdict import Verdict

# a moment of a commit: between two steps, such as while the library writes files
ANY = "moment"
STEPS = ("S1", "S3", "C8", "C11", "S4", "L1", "L2", "S6", "S7", "R2", "R2b", ANY)
RESTORING = ("R2", "R2b")
PARALLELISM = (1, 2, 3)
STRANGER = -1
# a commit takes 0.05 to 0.3 s
_MOMENT_S = 0.4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=20_000, help="into each table")
    parser.add_argument("--into", nargs="+", default=list(INTO), choices=INTO)
    parser.add_argument(
        "--steps", nargs="+", default=(), choices=(*STEPS, *SERVER_STEPS), help="at which it dies (all)"
    )
    parser.add_argument("--kills", type=int, default=0, help="so many for each table (0: each step once)")
    parser.add_argument("--rate", type=int, default=4_000, help="rows a second")
    parser.add_argument("--ckpt", default="200 ms")
    parser.add_argument("--hits", type=int, default=4, help="it dies at a hit of a step up to this one")
    parser.add_argument("--compact", action="store_true", help="a stranger compacts the table all the while")
    parser.add_argument("--deployment", default="embedded", choices=("embedded", "processes"))
    parser.add_argument(
        "--forgetful",
        action="store_true",
        help="the negative control: a target that does not know which epochs it has",
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    for kind in arguments.into:
        _into(kind, arguments, verdict)


def _into(kind: str, arguments: argparse.Namespace, verdict: Verdict) -> None:
    root: Path = arguments.directory / kind
    root.mkdir()
    table = table_of(kind, root)
    with table.served(), compacting(table) if arguments.compact else nullcontext(Counter[str]()) as compacted:
        _try_out(table, arguments, verdict)
    verdict.coverage += Counter({f"{kind}: {what}": count for what, count in compacted.items()})
    if arguments.compact:
        verdict.least[f"{kind}: compactions by a stranger"] = 1


def _try_out(table: LakehouseTable, arguments: argparse.Namespace, verdict: Verdict) -> None:
    kind, root, random = table.kind, table.root, Random(arguments.seed)
    table.write_input(arguments.rows)
    settings = (f"deployment={arguments.deployment}",)
    job = JobProcess(root, table.script(arguments.rate), JOB, arguments.ckpt, settings)
    if arguments.forgetful:
        job.module = "tests.fault_injection.forgetful_target"
    kills: Counter[str] = Counter()
    try:
        if arguments.deployment == "processes":
            strangers = _kill_processes(job, table, arguments, random, kills)
            code = _wait(job)
        else:
            strangers, code = _kill_at_steps(job, table, arguments, random, kills)
    finally:
        job.reap()
    verdict.check(code == 0, f"{kind}: exit code {code}\n{job.told[-1500:]}")
    lost, doubled, others = table.judged(arguments.rows)
    verdict.check(not lost, f"{kind}: {lost} of {arguments.rows} are lost")
    verdict.check(not doubled, f"{kind}: {doubled} are there twice")
    verdict.check(others == strangers, f"{kind}: {others} of a stranger's {strangers} rows are there")
    _count(kind, kills, arguments, verdict)
    verdict.figures[kind] = {
        "rows": arguments.rows,
        "lost": lost,
        "doubled": doubled,
        "kills": kills.total(),
        "versions": table.versions(),
    }


def _count(kind: str, kills: Counter[str], arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Count the kills. A job that came to its end before its step is none: too few make the run invalid."""
    verdict.faults += [f"{kind}: {step} kill" for step in kills.elements()]
    verdict.coverage += Counter({f"{kind}: {step} kill": count for step, count in kills.items()})
    verdict.coverage[f"{kind}: kills"] = kills.total()
    verdict.least[f"{kind}: kills"] = arguments.kills
    if arguments.deployment == "embedded":
        verdict.least |= {
            f"{kind}: {step} kill": 1 for step in set(_steps(kind, arguments, Random(arguments.seed)))
        }


def _steps(kind: str, arguments: argparse.Namespace, random: Random) -> list[str]:
    """Return the steps at which the job dies: each once, or all of them again and again in another order."""
    every = (*STEPS, *SERVER_STEPS) if kind.startswith("iceberg-rest") else STEPS
    steps = list(arguments.steps or every)
    if not arguments.kills:
        return steps
    orders = (random.sample(steps, len(steps)) for _ in range(-(-arguments.kills // len(steps))))
    return [step for order in orders for step in order][: arguments.kills]


def _kill_at_steps(
    job: JobProcess,
    table: LakehouseTable,
    arguments: argparse.Namespace,
    random: Random,
    kills: Counter[str],
) -> tuple[int, int]:
    """Kill the job at each step; return how many rows a stranger wrote, and the last exit code."""
    parallelism, strangers, code = cycle(PARALLELISM), 0, 0
    for step in [*_steps(table.kind, arguments, random), None]:
        hit = 1 if step is None or step in RESTORING else random.randint(1, arguments.hits)
        job.failpoints = "" if step in (None, ANY, *SERVER_STEPS) else f"{step}=kill@{hit}"
        if step in SERVER_STEPS:
            table.kill_at(step, hit, job.kill)
        job.start(parallelism=next(parallelism))
        if step == ANY:
            _kill_at_a_moment(job, random)
        code = _wait(job)
        if step is not None and code == -signal.SIGKILL:
            kills[step] += 1
        if code not in (0, -signal.SIGKILL):
            break
        # the table is there once a job has begun to write
        if table.exists():
            strangers += 1
            table.write_as_a_stranger(STRANGER - strangers)
    return strangers, code


def _wait(job: JobProcess) -> int:
    """Wait for a process's end as long as its checkpoints get on: an upsert of Iceberg may take seconds."""
    while True:
        newest = job.newest
        try:
            return job.wait()
        except subprocess.TimeoutExpired:
            if job.newest == newest:
                raise


def _kill_at_a_moment(job: JobProcess, random: Random) -> None:
    newest = job.newest
    while job.alive and job.newest <= newest + 1:
        time.sleep(0.002)
    time.sleep(random.random() * _MOMENT_S)
    if job.alive:
        job.kill()


def _kill_processes(
    job: JobProcess,
    table: LakehouseTable,
    arguments: argparse.Namespace,
    random: Random,
    kills: Counter[str],
) -> int:
    """Kill a worker and the coordinator in turn; return how many rows a stranger wrote."""
    parallelism, strangers = cycle(PARALLELISM), 0

    def restart() -> None:
        nonlocal strangers
        job.start(parallelism=next(parallelism))
        if table.exists():
            strangers += 1
            table.write_as_a_stranger(STRANGER - strangers)

    targets = ("worker", "coordinator")
    killing = Kills(arguments.kills or len(targets), 0.5, 0.5, random, targets, least_rows=0)
    killing.run(job, restart)
    for target in targets:
        kills[target] += killing.coverage[f"kills of the {target}"]
    return strangers
