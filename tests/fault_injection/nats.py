"""The card of JetStream: a job from a stream to a stream is killed at each step of a commit, and so is the
server; the parallelism goes from 3 to 1 to 2. Pass: each number is in the stream once, none that was there is
ever gone.
"""

from __future__ import annotations

import argparse
import json
import signal
from collections import Counter
from itertools import cycle
from random import Random

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.verdict import Verdict
from tests.harness.nats_server import NatsProcess, nats_server
from tests.harness.patience import await_that

STEPS = ("S1", "S3", "C8", "C11", "S4", "S5", "S6", "R2", "R2b")
RESTORING = ("R2", "R2b")
SERVER = "server"
PARALLELISM = (3, 1, 2)
JOB = "doubled-1"
SCRIPT = """
SET 'pipeline.name' = 'doubled';
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'nats', 'url' = '{url}', 'stream' = 'numbers',
  'subject' = 'numbers.0;numbers.1;numbers.2', 'scan.bounded.mode' = 'latest',
  'scan.rows-per-second' = '{rate}', 'timeout' = '2 s', 'format' = 'json');
CREATE TABLE doubled (n BIGINT) WITH ('connector' = 'nats', 'url' = '{url}', 'stream' = 'doubled',
  'subject' = 'doubled.new', 'stream.create' = 'true', 'timeout' = '2 s', 'format' = 'json');
INSERT INTO doubled SELECT n * 2 FROM numbers;
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rate", type=int, default=3_000, help="rows a second")
    parser.add_argument("--steps", nargs="+", default=[*STEPS, SERVER], choices=[*STEPS, SERVER])
    parser.add_argument("--kills", type=int, default=0, help="so many in all, at random steps (0: each once)")
    parser.add_argument("--ckpt", default="100 ms")
    parser.add_argument(
        "--hasty",
        action="store_true",
        help="a negative control: commit what is not in a complete checkpoint",
    )
    parser.add_argument(
        "--forgetful", action="store_true", help="a negative control: the stream does not know its epochs"
    )


def fill(server: NatsProcess, rows: int) -> None:
    """Make the stream of numbers, in three subjects."""
    server.create("numbers", "numbers.*")
    for subject in range(3):
        server.publish(f"numbers.{subject}", *(b'{"n":%d}' % n for n in range(subject, rows, 3)))


def copied(server: NatsProcess) -> Counter[int]:
    """Return how often each number is in the stream that the job writes."""
    found = server.stored("doubled", "doubled.>") if server.count("doubled") else []
    return Counter(json.loads(value)["n"] for _, _, value in found)


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    random = Random(arguments.seed)
    steps = list(arguments.steps)
    if arguments.kills:
        steps = [random.choice(steps) for _ in range(arguments.kills)]
    (arguments.directory / "nats").mkdir()
    with nats_server(arguments.directory / "nats") as server:
        fill(server, arguments.rows)
        settings = ("restart-strategy.type=fixed-delay", "restart-strategy.attempts=100000")
        script = SCRIPT.format(url=server.url, rate=arguments.rate)
        job = JobProcess(arguments.directory, script, JOB, arguments.ckpt, settings)
        if arguments.hasty:
            job.module = "tests.fault_injection.hasty_commits"
        if arguments.forgetful:
            job.module = "tests.fault_injection.forgetful_notes"
        try:
            _kill_at(steps, job, server, random, verdict)
        finally:
            job.reap()
        whole = Counter(range(0, 2 * arguments.rows, 2))
        found = copied(server)
        verdict.check(not whole - found, f"{(whole - found).total()} numbers are missing")
        verdict.check(not found - whole, f"{(found - whole).total()} numbers are there too often")
    # a job that comes to its end before its step is no kill: too few rows make the run invalid
    verdict.least = {f"{step} kill": 1 for step in set(steps)} | {
        "kills": arguments.kills,
        "runs that added rows": len(steps) // 3,
    }
    verdict.figures |= {"rows": arguments.rows, "kills": verdict.coverage["kills"]}


def _kill_at(
    steps: list[str], job: JobProcess, server: NatsProcess, random: Random, verdict: Verdict
) -> None:
    parallelism, seen = cycle(PARALLELISM), Counter[int]()
    for step in [*steps, None]:
        job.failpoints = ""
        if step is not None and step != SERVER:
            # the first checkpoints of a process have no rows, and each passes some of the steps several times
            job.failpoints = f"{step}=kill@{1 if step in RESTORING else random.randint(3, 16)}"
        job.start(parallelism=next(parallelism))
        code = _without_server(job, server) if step == SERVER else job.wait()
        if step == SERVER or (step is not None and code == -signal.SIGKILL):
            verdict.coverage[f"{step} kill"] += 1
            verdict.coverage["kills"] += 1
            verdict.faults.append(f"{step} kill")
        found = copied(server)
        doubled = sum(count > 1 for count in found.values())
        verdict.check(not doubled, f"{doubled} numbers are there twice after {step}")
        verdict.coverage["runs that added rows"] += found.total() > seen.total()
        verdict.check(not seen - found, f"{(seen - found).total()} numbers are gone after {step}")
        seen = found
        if not verdict.check(
            code in (0, -signal.SIGKILL), f"exit code {code} before {step}\n{job.told[-1500:]}"
        ):
            break


def _without_server(job: JobProcess, server: NatsProcess) -> int:
    """Kill the server while the job commits, start it again, and kill the job once it has got on."""
    newest = job.newest
    await_that(lambda: job.newest > newest + 3 or not job.alive, "a checkpoint")
    server.kill()
    server.start()
    newest = job.newest
    await_that(lambda: job.newest > newest + 3 or not job.alive, "a checkpoint after the server's restart")
    # it may have come to its end meanwhile
    if job.alive:
        job.kill()
    return job.wait()
