"""The card of lakehouse tables: a job that reads one table as a stream of versions and writes another dies at
each step of its sink; a stranger writes to the same table all the while.

Between deaths the parallelism goes from 1 to 2 to 3. Pass: DuckDB counts every number once in the files that
the library names, and the stranger's rows are there. The job is alone with its epochs: no step fails by
itself, for a commit that fails is one of the steps at which it dies.
"""

from __future__ import annotations

import argparse
import signal
from collections import Counter
from itertools import cycle
from pathlib import Path
from random import Random

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.lakehouse_tables import INTO, JOB, table_of
from tests.fault_injection.verdict import Verdict

STEPS = ("S1", "S3", "S4", "S6", "S7", "R2", "R2b")
PARALLELISM = (1, 2, 3)
STRANGER = -1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=20_000, help="into each table")
    parser.add_argument("--into", nargs="+", default=list(INTO), choices=INTO)
    parser.add_argument("--steps", nargs="+", default=list(STEPS), choices=STEPS, help="at which it dies")
    parser.add_argument("--rate", type=int, default=4_000, help="rows a second")
    parser.add_argument("--ckpt", default="200 ms")
    parser.add_argument("--hits", type=int, default=4, help="it dies at a hit of a step up to this one")
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
    table, random = table_of(kind, root), Random(arguments.seed)
    table.write_input(arguments.rows)
    job = JobProcess(root, table.script(arguments.rate), JOB, arguments.ckpt)
    if arguments.forgetful:
        job.module = "tests.fault_injection.forgetful_target"
    kills: Counter[str] = Counter()
    parallelism, strangers = cycle(PARALLELISM), 0
    try:
        for step in [*arguments.steps, None]:
            hit = 1 if step is None or step.startswith("R") else random.randint(1, arguments.hits)
            job.failpoints = "" if step is None else f"{step}=kill(times=1)@{hit}"
            job.start(parallelism=next(parallelism))
            code = job.wait()
            if step is not None and code == -signal.SIGKILL:
                kills[step] += 1
            if not verdict.check(
                code in (0, -signal.SIGKILL), f"{kind}: exit code {code} before {step}\n{job.told[-1500:]}"
            ):
                return
            # the table is there once a job has begun to write
            if table.exists():
                strangers += 1
                table.write_as_a_stranger(STRANGER - strangers)
    finally:
        job.reap()
    lost, doubled, others = table.judged(arguments.rows)
    verdict.check(not lost, f"{kind}: {lost} of {arguments.rows} are lost")
    verdict.check(not doubled, f"{kind}: {doubled} are there twice")
    verdict.check(others == strangers, f"{kind}: {others} of a stranger's {strangers} rows are there")
    verdict.faults += [f"{kind}: {step} kill" for step in kills.elements()]
    verdict.coverage += Counter({f"{kind}: {step} kill": count for step, count in kills.items()})
    verdict.least |= {f"{kind}: {step} kill": 1 for step in arguments.steps}
    verdict.figures[kind] = {
        "rows": arguments.rows,
        "lost": lost,
        "doubled": doubled,
        "kills": kills.total(),
        "versions": table.versions(),
    }
