"""The card of recovery time: the job of the alerts is killed again and again, and what follows each time is
measured.

An outage is the time from the kill to the first checkpoint completed after it: until then nothing new is
committed. Pass: every event is counted once and no alert is raised, for the log has no errors; with
``--strict`` outages must be short as well.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

from tests.fault_injection.alerts import JOB, judge
from tests.fault_injection.automaton import expected_alerts, make_events, script, write_events
from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.killing import Kills, quantile
from tests.fault_injection.verdict import Verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=int, default=30_000, help="events a second")
    parser.add_argument("--keys", type=int, default=10_000, help="entities with state: some 100 bytes each")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--ckpt", default="500 ms")
    parser.add_argument(
        "--most", type=float, default=3.0, help="seconds the p95 of outages may take with --strict"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="outages over --most fail the run: for a machine that has nothing else to do",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=0,
        help="worker processes, one of which is killed each time (0: the one process of all)",
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    root: Path = arguments.directory
    seconds = int(arguments.kills * (arguments.every + 4)) + 10
    events = make_events(arguments.rate * seconds, arguments.keys, arguments.seed)
    write_events(events, root / "events", arguments.rate)
    settings = ("deployment=processes",) if arguments.workers else ()
    job = JobProcess(
        root, script(root, "lag", arguments.rate), JOB, interval=arguments.ckpt, settings=settings
    )
    target = "worker" if arguments.workers else "coordinator"
    kills = Kills(arguments.kills, arguments.every, 0.5, Random(arguments.seed), (target,), verdict.coverage)
    parallelism = arguments.workers or 2
    try:
        kills.run(job, lambda: job.start(parallelism=parallelism))
        job.kill()
        job.script = script(root, "lag", 0)
        job.start(parallelism=parallelism)
        verdict.check(job.wait() == 0, f"the job has not ended well:\n{job.told[-2000:]}")
    finally:
        job.reap()
    verdict.faults += kills.faults
    judge(verdict, root, expected_alerts(events), len(events.entity), first_too=True)
    verdict.least = {"kills": arguments.kills}
    parts = {"outage": kills.outages_s, **kills.splits_s}
    verdict.figures |= {
        f"{name} p{share} s": quantile(spent, share / 100)
        for name, spent in parts.items()
        for share in (50, 95)
    }
    p95 = quantile(kills.outages_s, 0.95)
    if arguments.strict:
        verdict.check(
            p95 <= arguments.most, f"95 of 100 outages took up to {p95} s, more than {arguments.most} s"
        )
