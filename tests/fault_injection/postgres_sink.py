"""The card of the PostgreSQL sink: a job that appends to one table and upserts into another is killed at each
step of its commits. The server is restarted in order, and killed with all its processes.

Between deaths the parallelism goes from 3 to 1 to 2. Pass: each number is there once, none that was read is
ever gone, and the counts are right. ``--hasty`` is the negative control: commits before the checkpoint.
"""

from __future__ import annotations

import argparse
import signal
from itertools import cycle
from random import Random

import psycopg

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.verdict import Verdict
from tests.harness.patience import await_that
from tests.harness.postgres_server import PostgresServer, kill_server, logical_server, restart_server

JOB = "into-postgres-1"
STEPS = ("S1", "S3", "C8", "C11", "S4", "S5", "S6", "S7", "R2", "R2b")
# At which hit the job dies. The first checkpoint of a process may be one without rows, and other files than
# manifests pass C8 too. What is restored is restored once.
HITS = {"R2": (1, 1), "R2b": (1, 1), "C8": (6, 16)}
SERVER = {"restart": restart_server, "crash": kill_server}
PARALLELISM = (3, 1, 2)
GROUPS = 20
_TABLES = """
DROP TABLE IF EXISTS appended, counted, penstock_epochs;
CREATE TABLE appended (n bigint, v text);
CREATE TABLE counted (k bigint PRIMARY KEY, total bigint);
"""
# group 0 enters the result and leaves it again: its row is deleted
_SCRIPT = """
SET 'pipeline.name' = 'into-postgres';
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{rows}', 'splits' = '3',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '0'{pace});
CREATE TABLE appended (n BIGINT, v STRING) WITH ({sink}, 'table-name' = 'appended');
CREATE TABLE counted (k BIGINT, total BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({sink}, 'table-name' = 'counted');
EXECUTE STATEMENT SET BEGIN
INSERT INTO appended SELECT n, CAST(n AS STRING) FROM numbers;
INSERT INTO counted SELECT n % {groups}, COUNT(*) FROM numbers GROUP BY n % {groups}
  HAVING n % {groups} > 0 OR COUNT(*) < 5;
END;
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rate", type=int, default=1_000, help="rows a second, until the last start")
    parser.add_argument("--steps", nargs="+", default=[*STEPS, *SERVER], choices=[*STEPS, *SERVER])
    parser.add_argument(
        "--kills", type=int, default=0, help="so many in all, each step in turn (0: each once)"
    )
    parser.add_argument("--ckpt", default="100 ms")
    parser.add_argument(
        "--hasty",
        action="store_true",
        help="the negative control: commit what is not in a complete checkpoint",
    )


class WrittenTables:
    """The tables of the job, seen from outside. ``wrong`` collects what was found."""

    def __init__(self, server: PostgresServer, rows: int) -> None:
        self._server, self._rows = server, rows
        self._seen: set[int] = set()
        self.wrong: list[str] = []
        with psycopg.connect(server.url, autocommit=True) as there:
            there.execute(_TABLES)

    def script(self, rate: int) -> str:
        """Return the job's statements; ``rate``: rows a second, 0 for no limit."""
        sink = f"'connector' = 'postgres', 'url' = '{self._server.url}'"
        pace = f", 'rows-per-second' = '{rate}'" if rate else ""
        return _SCRIPT.format(rows=self._rows, pace=pace, sink=sink, groups=GROUPS)

    def read(self) -> int:
        """Read what is committed: no number is there twice, none that was seen is gone. Return how many."""
        with psycopg.connect(self._server.url) as there:
            found = [number for (number,) in there.execute("SELECT n FROM appended").fetchall()]
        doubled, gone = len(found) - len(set(found)), self._seen - set(found)
        self._seen = set(found)
        if doubled or gone:
            self.wrong.append(f"{doubled} numbers are there twice, {len(gone)} that were seen are gone")
        return len(found)

    def check_all(self) -> None:
        """Check the end: every number is there once, and each group has its count."""
        there = self.read()
        if self._seen != set(range(self._rows)):
            self.wrong.append(f"{self._rows - there} of {self._rows} numbers are lost")
        with psycopg.connect(self._server.url) as connection:
            totals = dict(connection.execute("SELECT k, total FROM counted").fetchall())
        if totals != {group: len(range(group, self._rows, GROUPS)) for group in range(1, GROUPS)}:
            self.wrong.append(f"the counts are wrong: {sorted(totals.items())[:4]} ..")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    random = Random(arguments.seed)
    turns = cycle(arguments.steps)
    steps = [next(turns) for _ in range(arguments.kills or len(arguments.steps))]
    tables = WrittenTables(logical_server(), arguments.rows)
    settings = ("restart-strategy.type=fixed-delay", "restart-strategy.attempts=100000")
    job = JobProcess(arguments.directory, tables.script(arguments.rate), JOB, arguments.ckpt, settings)
    if arguments.hasty:
        job.module = "tests.fault_injection.hasty_commits"
    parallelism, read = cycle(PARALLELISM), []
    try:
        for step in [*steps, None]:
            code = _one_run(job, step, next(parallelism), random, tables)
            if step is not None and code == -signal.SIGKILL:
                verdict.coverage["kills"] += 1
                verdict.coverage[f"{step} kill"] += 1
                verdict.faults.append(f"{step} kill")
            read.append(tables.read())
            if not verdict.check(
                code in (0, -signal.SIGKILL), f"exit code {code} at {step}\n{job.told[-1500:]}"
            ):
                break
        tables.check_all()
    finally:
        job.reap()
    verdict.wrong += tables.wrong[:5]
    # a job that comes to its end before its step is no kill: too few rows make the run invalid
    verdict.least = {f"{step} kill": 1 for step in set(steps)} | {"kills": len(steps)}
    verdict.figures |= {"rows": arguments.rows, "kills": verdict.coverage["kills"], "read after each": read}


def _one_run(
    job: JobProcess, step: str | None, parallelism: int, random: Random, tables: WrittenTables
) -> int:
    """Start the job and let it die at a step, or after the server has; ``None``: let it come to its end."""
    job.failpoints = ""
    if step is None:
        job.script = tables.script(0)
    elif step not in SERVER:
        job.failpoints = f"{step}=kill@{random.randint(*HITS.get(step, (2, 6)))}"
    job.start(parallelism=parallelism)
    if step not in SERVER:
        return job.wait()
    newest = job.newest
    job.await_that(lambda: job.newest > newest + 2)
    SERVER[step]()
    newest = job.newest
    await_that(lambda: job.newest > newest + 2 or not job.alive, "checkpoints after the server's restart")
    # it may have come to its end meanwhile
    if job.alive:
        job.kill()
    return job.wait()
