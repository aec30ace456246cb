"""The card of alerts: entities follow an automaton, a query raises an alert where one does not, and the job
is killed all the while.

Pass: the alerts are those of a single-threaded reading of the log (none without errors), every event is
counted once, every kill is recovered from. ``--guarantee at-least-once`` and ``none`` are the negative
controls: they must give wrong alerts, or lose events.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from random import Random

from tests.fault_injection.automaton import Alert, expected_alerts, make_events, script, write_events
from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.killing import Kills, quantile
from tests.fault_injection.verdict import Verdict

JOB = "insert-into-alerts-counted-1"
CONTROLS = ("none", "at-least-once")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--variant", choices=("lag", "match"), default="lag")
    parser.add_argument("--rate", type=int, default=30_000, help="events a second")
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=0, help="of events (default: enough for the kills)")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--every", type=float, default=3.0)
    parser.add_argument("--jitter", type=float, default=2.0)
    parser.add_argument("--ckpt", default="1 s")
    parser.add_argument("--error-rate", type=float, default=0.0)
    parser.add_argument(
        "--target",
        default="coordinator",
        help="coordinator, worker, or both with a | between (worker: with --workers)",
    )
    parser.add_argument("--workers", type=int, default=0, help="worker processes (0: all in one process)")
    parser.add_argument("-p", "--parallelism", type=int, default=2)
    parser.add_argument("--guarantee", choices=("exactly-once", *CONTROLS), default="exactly-once")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    root: Path = arguments.directory
    # a slow machine takes longer
    seconds = arguments.seconds or int(arguments.kills * (arguments.every + arguments.jitter)) + 60
    events = make_events(arguments.rate * seconds, arguments.keys, arguments.seed, arguments.error_rate)
    write_events(events, root / "events", arguments.rate)
    settings = ("deployment=processes",) if arguments.workers else ()
    if arguments.guarantee == "at-least-once":
        settings += ("execution.checkpointing.mode=AT_LEAST_ONCE",)
    module = "tests.fault_injection.forgetful" if arguments.guarantee == "none" else "penstock.repl.cli"
    job = JobProcess(root, "", JOB, interval=arguments.ckpt, settings=settings, module=module)
    kills = Kills(
        arguments.kills,
        arguments.every,
        arguments.jitter,
        Random(arguments.seed),
        tuple(arguments.target.split("|")),
        verdict.coverage,
    )
    parallelism = arguments.workers or arguments.parallelism
    try:
        job.script = script(root, arguments.variant, arguments.rate)
        kills.run(job, lambda: job.start(parallelism=parallelism))
        job.kill()
        job.script = script(root, arguments.variant, 0)
        job.start(parallelism=parallelism)
        verdict.check(job.wait() == 0, f"the job has not ended well:\n{job.told[-2000:]}")
    finally:
        job.reap()
    verdict.faults += kills.faults
    judge(verdict, root, expected_alerts(events), len(events.entity), first_too=arguments.variant == "lag")
    least = {
        "kills": 1.0,
        "kills while a checkpoint was under way": 1 / 3,
        "kills just behind a durable checkpoint": 1 / 12,
    }
    verdict.least = {name: int(share * arguments.kills) for name, share in least.items()}
    verdict.figures |= {
        "events": len(events.entity),
        "outage p50 s": quantile(kills.outages_s, 0.5),
        "outage p95 s": quantile(kills.outages_s, 0.95),
    }
    verdict.figures |= {f"{name} p50 s": quantile(spent, 0.5) for name, spent in kills.splits_s.items()}


def judge(verdict: Verdict, root: Path, wanted: Counter[Alert], events: int, *, first_too: bool) -> None:
    """Compare what was written with the log; a pattern of two events cannot tell of an entity's first."""
    wanted = (
        wanted if first_too else Counter({alert: count for alert, count in wanted.items() if alert[1] > 1})
    )
    got = Counter((row["entity"], row["n"]) for row in _rows(root / "alerts"))
    counted = sum(row["n"] for row in _rows(root / "counted"))
    verdict.figures |= {
        "alerts": sum(got.values()),
        "false alerts": sum((got - wanted).values()),
        "events counted": counted,
    }
    verdict.check(
        not got - wanted,
        f"{sum((got - wanted).values())} false alerts, such as {list((got - wanted).items())[:3]}",
    )
    verdict.check(
        not wanted - got,
        f"{sum((wanted - got).values())} alerts are missing, such as {list((wanted - got).items())[:3]}",
    )
    verdict.check(counted == events, f"{counted:,} events counted of {events:,}")


def _rows(directory: Path) -> list[dict[str, int]]:
    return [
        json.loads(line)
        for path in directory.glob("part-*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
