"""The card of two-phase commit: a job that writes numbers dies at each step of its sink, the other steps fail
now and then; a reader looks on.

Between deaths the parallelism goes from 3 to 1 to 5. Pass: every number is there once, none that was read is
ever gone, nothing is left staged; in the log the numbers of each key are in order. Before that, writers of
each database are driven step by step in one process, through more checkpoints than processes could take.
"""

from __future__ import annotations

import argparse
import signal
from collections import Counter
from itertools import cycle
from random import Random

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.two_phase_job import INTO, JOB, SPLITS, Reader, Target, raised
from tests.fault_injection.verdict import Verdict
from tests.streaming.databases.places import KINDS, Place
from tests.streaming.databases.two_phase import chaos

STEPS = tuple(f"S{number}" for number in range(1, 8))
PARALLELISM = (3, 1, SPLITS)
WRITERS = ("before commit, complete", "lost reply, complete", "S5, complete", "S2, incomplete")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=100_000, help="into each table")
    parser.add_argument("--into", nargs="+", default=list(INTO), choices=INTO)
    parser.add_argument(
        "--steps",
        nargs="+",
        default=list(STEPS),
        choices=STEPS,
        help="at which the process dies, one after the other",
    )
    parser.add_argument("--rate", type=int, default=5_000, help="rows a second")
    parser.add_argument("--ckpt", default="50 ms")
    parser.add_argument(
        "--errors", type=float, default=0.1, help="with which probability each step fails each time"
    )
    parser.add_argument("--only", choices=("writers", "processes"))
    parser.add_argument(
        "--checkpoints", type=int, default=100, help="of the writers that are driven step by step"
    )
    parser.add_argument(
        "--hasty",
        action="store_true",
        help="the negative control: commit what is not in a complete checkpoint",
    )


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    for kind in arguments.into:
        if arguments.only != "processes" and kind in KINDS:
            in_one_process(kind, arguments, verdict)
    if arguments.only != "writers":
        for kind in arguments.into:
            in_processes(kind, arguments, verdict)


def in_one_process(kind: str, arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Drive writers through crashes, lost replies and changes of parallelism."""
    directory = arguments.directory / f"{kind}-writers"
    directory.mkdir()
    place = Place(kind, directory)
    place.run("CREATE TABLE out (k INTEGER, v VARCHAR(20))")
    most = max(1, 2 * arguments.rows // (3 * arguments.checkpoints))
    hit, written = chaos(
        place, arguments.seed, hasty=arguments.hasty, checkpoints=arguments.checkpoints, most=most
    )
    rows = [row[0] for row in place.ask("SELECT k FROM out ORDER BY k")]
    lost, doubled = written - len(set(rows)), len(rows) - len(set(rows))
    verdict.check(rows == list(range(written)), f"{kind}: {lost} lost, {doubled} doubled of {written}")
    verdict.check(place.staged() == 0, f"{kind}: staged rows are left")
    verdict.coverage += Counter({f"{kind} writers: {step}": count for step, count in hit.items()})
    verdict.least |= {f"{kind} writers: {step}": 1 for step in WRITERS}
    verdict.faults += [f"{kind} writers: {step}" for step in hit.elements()]
    verdict.figures[f"{kind} writers"] = {
        "rows": written,
        "lost": lost,
        "doubled": doubled,
        "crashes": hit.total(),
    }


def in_processes(kind: str, arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Kill the job's process at each step, start another one over what it left, and see it to its end."""
    root = arguments.directory / kind
    root.mkdir()
    target, random = Target(kind, root), Random(arguments.seed)
    settings = ("restart-strategy.type=fixed-delay", "restart-strategy.attempts=100000")
    job = JobProcess(root, target.script(arguments.rows, arguments.rate), JOB, arguments.ckpt, settings)
    job.module = "tests.fault_injection.hasty_commits" if arguments.hasty else target.module
    reader, kills, parallelism = Reader(target, arguments.rows), Counter[str](), cycle(PARALLELISM)
    staged = []
    reader.start()
    try:
        for step in [*arguments.steps, None]:
            seed = random.randrange(1_000)
            failing = [
                f"{s}=raise(p={arguments.errors},seed={seed + i})"
                for i, s in enumerate(STEPS)
                if s != step and arguments.errors
            ]
            dying = [] if step is None else [f"{step}=kill@{random.randint(2, 6)}"]
            job.failpoints = ";".join(dying + failing)
            job.start(parallelism=next(parallelism))
            code = job.wait()
            if step is not None and code == -signal.SIGKILL:
                kills[step] += 1
                staged.append(target.staged())
            reader.read()
            if not verdict.check(
                code in (0, -signal.SIGKILL), f"{kind}: exit code {code} before {step}\n{job.told[-1500:]}"
            ):
                break
    finally:
        job.reap()
        reader.stop()
    reader.read()
    verdict.wrong += [f"{kind}: {sentence}" for sentence in reader.wrong[:5]]
    verdict.check(reader.missing == 0, f"{kind}: {reader.missing} of {arguments.rows} are lost")
    verdict.check(target.staged() == 0, f"{kind}: {target.staged()} staged are left")
    errors = raised(job, kills)
    verdict.coverage += Counter({f"{kind}: {step} kill": count for step, count in kills.items()})
    verdict.coverage += Counter({f"{kind}: {step} raise": count for step, count in errors.items()})
    verdict.coverage[f"{kind}: reads that found more"] = reader.counts[
        "reads that found more than the one before"
    ]
    verdict.least |= {f"{kind}: {step} kill": 1 for step in arguments.steps} | {
        f"{kind}: reads that found more": 2
    }
    verdict.faults += [f"{kind}: {step} kill" for step in kills] + [
        f"{kind}: {step} raise" for step in errors.elements()
    ]
    verdict.figures[kind] = {
        "rows": arguments.rows,
        "lost": reader.missing,
        "reads with doubled or missing rows": len(reader.wrong),
        "kills": kills.total(),
        "errors": errors.total(),
        "reads": reader.reads,
        "staged when it died": staged,
    }
