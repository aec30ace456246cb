"""The card of the failpoints: at each step of the protocol the swept job is killed, failed and delayed, in
the simulation and as a process.

Pass: the files are DuckDB's answer, nothing is left over, a process that was killed is followed by one that
completes a checkpoint within seconds.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import time
from itertools import product
from pathlib import Path

from penstock.engine.api.failpoints import POINTS
from penstock.engine.job.job_state import JobState
from tests.fault_injection.job_process import PATIENCE_S, JobProcess
from tests.fault_injection.killing import quantile
from tests.fault_injection.swept import PARALLELISM, RESTORING, Plans, meaningful, sweep
from tests.fault_injection.swept_job import expected, script, unpublished, write_input, written
from tests.fault_injection.verdict import Verdict

DOES = ("kill", "raise", "delay")
JOB = "insert-into-counted-1"
WRITING = ("C6", "C7", "C8", "C9")  # the first files written so are the job's owner and its record
RATE = 150  # rows a second of each table: four seconds without faults


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", nargs="+", default=list(POINTS), choices=list(POINTS), metavar="POINT")
    parser.add_argument("--does", nargs="+", default=list(DOES), choices=DOES)
    parser.add_argument("--only", choices=("simulation", "processes"))
    parser.add_argument("--most", type=float, default=3.0, help="seconds a recovery may take at the median")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    root: Path = arguments.directory
    write_input(root, arguments.seed)
    cases = [
        (point, does) for point, does in product(arguments.points, arguments.does) if meaningful(point, does)
    ]
    if arguments.only != "processes":
        plans = Plans(root, root / "planned")
        for (point, does), parallelism, unaligned in product(cases, PARALLELISM, (False, True)):
            in_simulation(plans, point, does, parallelism, unaligned, arguments.seed, verdict)
        plans.close()
    recoveries: list[float] = []
    if arguments.only != "simulation":
        for number, (point, does) in enumerate(cases):
            in_processes(root, point, does, PARALLELISM[number % 2], verdict, recoveries)
        verdict.check(
            quantile(recoveries, 0.5) <= arguments.most,
            f"recoveries take {quantile(recoveries, 0.5)} s at the median",
        )
        verdict.figures |= {
            "recovery p50 s": quantile(recoveries, 0.5),
            "recovery p95 s": quantile(recoveries, 0.95),
        }
    verdict.least = {f"{point} {does}": 1 for point, does in cases}


def in_simulation(
    plans: Plans,
    point: str,
    does: str,
    parallelism: tuple[int, int],
    unaligned: bool,
    seed: int,
    verdict: Verdict,
) -> None:
    """Run one case in the simulation."""
    swept = sweep(
        plans,
        point,
        does,
        parallelism,
        seed=seed,
        times=2 if (point, does) == ("R2b", "kill") else 1,
        unaligned=unaligned,
    )
    case = f"{point} {does} at parallelism {parallelism[0]} then {parallelism[1]}{', unaligned' if unaligned else ''}"
    verdict.faults.append(f"simulation: {case}")
    verdict.coverage[f"{point} {does}"] += swept.reached
    verdict.check(swept.state is JobState.FINISHED, f"{case}: the job is {swept.state}")
    verdict.check(swept.rows == expected(plans.root), f"{case}: other rows than DuckDB's")
    verdict.check(not swept.left, f"{case}: left over are {swept.left}")


def in_processes(
    root: Path, point: str, does: str, parallelism: tuple[int, int], verdict: Verdict, recoveries: list[float]
) -> None:
    """Run one case as a process of the command line, and after its death another."""
    place = root / "process"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    out, case = (
        place / "out",
        f"{point} {does} as a process at parallelism {parallelism[0]} then {parallelism[1]}",
    )
    settings = (
        "execution.batch.max-rows=50",
        *(("execution.checkpointing.timeout=5 ms",) if point == "C13" else ()),
    )
    job = JobProcess(
        place, script(root, out, rate=RATE, rolling=3), JOB, interval="100 ms", settings=settings
    )
    hit = "@3" if point in WRITING else ""
    job.failpoints = (
        f"{point}={does}({'500 ms, ' if does == 'delay' else ''}times={2 if point == 'R2b' else 1}){hit}"
    )
    if point in RESTORING:
        job.failpoints += ";C11=kill(times=1)@2"
    if point == "C14":
        # so that sinks are still at it when the next checkpoint is due
        job.failpoints += ";S4=delay(300 ms, times=3)"
    verdict.faults.append(case)
    try:
        code = _run_through(job, parallelism, recoveries)
    finally:
        job.reap()
    verdict.coverage[f"{point} {does}"] += (place / "marks" / f"{point}-0").exists()
    verdict.check(code == 0, f"{case}: exit code {code}\n{job.told[-1500:]}")
    verdict.check(written(out) == expected(root), f"{case}: other rows than DuckDB's")
    verdict.check(not unpublished(out), f"{case}: left over are {unpublished(out)}")
    if does == "raise":
        verdict.check(f"failpoint {point}" in job.told, f"{case}: the step is not named:\n{job.told[-1500:]}")


def _run_through(job: JobProcess, parallelism: tuple[int, int], recoveries: list[float]) -> int:
    """Start the job until it ends by itself; measure how long each death keeps it from its next
    checkpoint.
    """
    job.start(parallelism=parallelism[0])
    while (code := job.wait()) == -signal.SIGKILL:
        died_s, newest = time.monotonic(), job.newest
        job.settings = job.settings[:1]
        job.start(parallelism=parallelism[1])
        while job.alive and job.newest == newest and not job.finished:
            assert time.monotonic() < died_s + PATIENCE_S, f"it does not get on:\n{job.told}"
            time.sleep(0.01)
        if job.newest > newest:
            recoveries.append(time.monotonic() - died_s)
    return code
