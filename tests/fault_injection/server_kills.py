"""The card of a killed server: five jobs and a view of one server, which is killed at any moment or ended in
order, and started again.

Pass: every job goes on by itself, its output is exactly DuckDB's answer, and each has a checkpoint soon after
the start.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from random import Random

from tests.fault_injection.server_process import QUERIES, ServerProcess, expected
from tests.fault_injection.verdict import Verdict
from tests.harness.patience import await_that

# rows a second of each source: low, so that processes have time to die. A loaded machine needs 15 s a kill
RATE = 100
SECONDS_A_KILL = 15
CHECKPOINT_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of this card."""
    parser.add_argument("--kills", type=int, default=10, help="how often the server is killed")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Kill the server so often, let it finish, and compare."""
    verdict.least = {"kills": arguments.kills}
    server = ServerProcess(Path(arguments.directory), rows_for(arguments.kills), RATE)
    try:
        kill_and_finish(server, arguments.kills, Random(arguments.seed), verdict)
        judge(server, verdict)
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()


def rows_for(kills: int) -> int:
    """Return the rows of each source, so many that its job still runs after the last kill."""
    return RATE * SECONDS_A_KILL * (kills + 1)


def kill_and_finish(server: ServerProcess, kills: int, random: Random, verdict: Verdict) -> None:
    """Kill the server at moments drawn from the seed, every fourth time end it in order; then wait for the
    end of all jobs.
    """
    delays: list[float] = []
    used: list[float] = []
    server.start()
    server.await_ready()
    for number in range(kills):
        if server.finished:
            break
        # before or after the first checkpoint, also while it starts
        if random.random() < 0.7:
            server.await_ready()
            began_s = server.cpu_s
            delays.append(server.await_checkpoints())
            used.append(server.cpu_s - began_s)
            time.sleep(random.random())
        if number % 4 == 3:
            # before it is ready it may not listen to signals yet, and is killed by this one
            is_ready, code = bool(server.events("ready")), server.stop()
            verdict.check(code == 0 or not is_ready, f"the server ended with {code}, not in order")
            verdict.coverage["drains"] += code == 0
        else:
            server.kill()
        verdict.coverage["kills"] += 1
        unfinished = {job.job_id for job in server.jobs() if not job.finished}
        server.start()
        if random.random() < 0.8:
            server.await_ready()
            resumed = {event["job"] for event in server.events("job resumed")}
            verdict.check(resumed == unfinished, f"{sorted(resumed)} resumed, {sorted(unfinished)} had run")
            verdict.check(not server.events("not restored"), f"{server.events('not restored')}")
    server.await_ready()
    verdict.check(server.stop() == 0, "the server did not end in order")
    server.hurry()
    server.start()
    server.await_ready()
    verdict.figures["first checkpoint s"] = [round(delay, 2) for delay in sorted(delays)]
    verdict.figures["processor s until then"] = [round(spent, 2) for spent in sorted(used)]
    slow = [delay for delay in delays if delay > CHECKPOINT_S]
    verdict.figures["later than 5 s"] = len(slow)
    await_that(lambda: server.finished, "the end of all jobs", 0.05)


def judge(server: ServerProcess, verdict: Verdict) -> None:
    """Compare what was written to DuckDB's answer."""
    verdict.check(server.stop() == 0, "the server did not end in order")
    answer, written = expected(server.rows), server.written()
    for name in QUERIES:
        missing, more = answer[name] - written[name], written[name] - answer[name]
        verdict.check(
            not missing and not more,
            f"{name}: {missing.total()} rows are missing and {more.total()} are too many",
        )
        verdict.coverage["rows"] += written[name].total()
