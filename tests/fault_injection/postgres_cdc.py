"""The card of PostgreSQL changes: a table is copied, and counted by groups, into two others, while its writers
work, the job is killed and the server restarts. With ``--deployment processes`` every other kill is one of a
worker. With ``--mode upsert`` the server logs keys only, and long values come from state.

Pass: at the end the copy and the counts are what the server says of the table. ``--careless`` is the negative
control: changes that the snapshots contain are counted again, or with upserts values that are left out are
empty. So the tables must be wrong.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from functools import partial
from random import Random
from typing import Any

import psycopg

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.killing import workers_of
from tests.fault_injection.verdict import Verdict
from tests.harness.patience import PATIENCE_S
from tests.harness.postgres_server import PostgresServer, logical_server, restart_server

JOB = "cdc-1"
_TABLES = """
CREATE TABLE src (id bigint PRIMARY KEY, g int NOT NULL, n bigint NOT NULL, filler text);
ALTER TABLE src REPLICA IDENTITY {identity};
ALTER TABLE src ALTER filler SET STORAGE EXTERNAL;
INSERT INTO src SELECT i, i % 20, i, repeat('x', CASE WHEN i % 8 = 0 THEN 3000 ELSE 50 END) FROM generate_series(1, {rows}) i;
CREATE TABLE copied (id bigint PRIMARY KEY, g int, n bigint, filler text);
CREATE TABLE counted (g int PRIMARY KEY, c bigint, s bigint);
"""
_SCRIPT = """
CREATE TABLE src (id BIGINT, g INT, n BIGINT, filler STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({source});
CREATE TABLE copied (id BIGINT, g INT, n BIGINT, filler STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ({sink}, 'table-name' = 'copied');
CREATE TABLE counted (g INT, c BIGINT, s BIGINT, PRIMARY KEY (g) NOT ENFORCED) WITH ({sink}, 'table-name' = 'counted');
SET 'pipeline.name' = 'cdc';
EXECUTE STATEMENT SET BEGIN
INSERT INTO copied SELECT id, g, n, filler FROM src;
INSERT INTO counted SELECT g, COUNT(*), SUM(n) FROM src GROUP BY g;
END;
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=int, default=20_000, help="rows at the start")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--restarts", type=int, default=2, help="of the server")
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--rate", type=int, default=5_000, help="rows a second of the snapshot")
    parser.add_argument("--mode", default="all", choices=("all", "upsert"), help="the 'changelog-mode'")
    parser.add_argument("--deployment", default="embedded", choices=("embedded", "processes"))
    parser.add_argument("--careless", action="store_true", help="the negative control")


class Writers:
    """Connections that change the table at random; a lost one is opened again."""

    def __init__(self, server: PostgresServer, count: int, rows: int, seed: int) -> None:
        self._server, self._rows = server, rows
        self._stop = threading.Event()
        self.transactions = 0
        self._threads = [
            threading.Thread(target=self._run, args=(Random(seed + number),)) for number in range(count)
        ]

    def start(self) -> None:
        """Start them."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop them."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, random: Random) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._server.url, autocommit=True) as connection:
                    while not self._stop.is_set():
                        self._write(connection, random)
                        self.transactions += 1
                        time.sleep(0.01)
            except psycopg.Error:
                time.sleep(0.1)

    def _write(self, connection: Any, random: Random) -> None:
        key = random.randint(1, self._rows * 2)
        with connection.transaction():
            for statement in random.sample(
                [
                    f"UPDATE src SET n = n + 1, g = (g + 1) % 20 WHERE id BETWEEN {key} AND {key + 5}",
                    f"DELETE FROM src WHERE id = {key + 7}",
                    f"INSERT INTO src VALUES ({key + 7}, 3, 1, '') ON CONFLICT DO NOTHING",
                    # across the key that the snapshot has reached
                    f"UPDATE src SET id = {random.randint(1, 10**9)}, filler = filler || '' WHERE id = {key + 9}",
                    f"UPDATE src SET filler = repeat('{key % 10}', 2500) WHERE id = {key + 3}",
                    "INSERT INTO src SELECT max(id) + 1, 1, 1, '' FROM src",
                ],
                3,
            ):
                connection.execute(statement)


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    server = logical_server()
    random = Random(arguments.seed)
    with psycopg.connect(server.url, autocommit=True) as there:
        there.execute("DROP TABLE IF EXISTS src, copied, counted; DROP PUBLICATION IF EXISTS penstock_cdc")
        identity = "FULL" if arguments.mode == "all" else "DEFAULT"
        there.execute(_TABLES.format(rows=arguments.rows, identity=identity))
    source = server.options("postgres", "src", "cdc", heartbeat__interval="200 ms")
    source |= {"scan.rows-per-second": str(arguments.rate), "changelog-mode": arguments.mode}
    options = ", ".join(f"'{key}' = '{value}'" for key, value in source.items())
    script = _SCRIPT.format(source=options, sink=f"'connector' = 'postgres', 'url' = '{server.url}'")
    module = "tests.fault_injection.careless" if arguments.careless else "penstock.repl.cli"
    settings = (
        "execution.runtime-mode=streaming",
        "restart-strategy.type=fixed-delay",
        "restart-strategy.attempts=100000",
        f"deployment={arguments.deployment}",
    )
    job = JobProcess(arguments.directory, script, JOB, interval="150 ms", settings=settings, module=module)
    writers = Writers(server, arguments.writers, arguments.rows, arguments.seed)
    restarts = set(random.sample(range(arguments.kills), min(arguments.restarts, arguments.kills)))
    try:
        writers.start()
        job.start()
        for number in range(arguments.kills):
            job.await_checkpoint()
            time.sleep(random.random() * 0.6)
            if number in restarts:
                restart_server()
                verdict.coverage["restarts of the server"] += 1
                job.await_checkpoint()
            # the later half hits the stream
            if number >= arguments.kills // 2:
                job.await_that(lambda: phase(server) == "stream")
            verdict.coverage[f"kills in the {phase(server)}"] += 1
            workers = workers_of(job) if arguments.deployment == "processes" and number % 2 else []
            if workers:
                os.kill(random.choice(workers), signal.SIGKILL)
            else:
                job.kill()
                job.start()
            verdict.coverage["kills of a worker" if workers else "kills of the job's process"] += 1
            verdict.faults.append(f"{number}: killed")
        writers.stop()
        verdict.figures["transactions of the writers"] = writers.transactions
        judge(verdict, server, job, wrong_is_right=arguments.careless)
    finally:
        writers.stop()
        job.reap()
    verdict.least = {"kills in the snapshot": 1, "kills in the stream": 1}
    if arguments.deployment == "processes":
        verdict.least |= {"kills of a worker": 1, "kills of the job's process": 1}


def phase(server: PostgresServer) -> str:
    """Return what the source is doing: the slot is in use once changes are streamed."""
    with psycopg.connect(server.url) as there:
        active = there.execute("SELECT active FROM pg_replication_slots WHERE slot_name = 'cdc'").fetchone()
    return "stream" if active == (True,) else "snapshot"


def rows_of(server: PostgresServer) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Return the rows there should be and those there are."""
    with psycopg.connect(server.url) as there:
        there.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        first, second, third, fourth = (
            there.execute(text).fetchall()
            for text in (
                "SELECT id, g, n, md5(filler) FROM src ORDER BY 1",
                "SELECT id, g, n, md5(filler) FROM copied ORDER BY 1",
                "SELECT g, count(*), sum(n)::bigint FROM src GROUP BY 1 ORDER BY 1",
                "SELECT g, c, s FROM counted ORDER BY 1",
            )
        )
    return first, second, third, fourth


def _is_copied(server: PostgresServer, key: int) -> bool:
    with psycopg.connect(server.url) as there:
        return there.execute("SELECT count(*) FROM copied WHERE id = %s", [key]).fetchone() == (1,)


def judge(verdict: Verdict, server: PostgresServer, job: JobProcess, *, wrong_is_right: bool) -> None:
    """Wait until the job has caught up; then both tables must be right."""
    # the first row may come with a snapshot, also of an attempt that begins only now; the second is written
    # behind that snapshot, so it comes by the stream, behind all changes
    for marker in (10**12, 10**12 + 1):
        with psycopg.connect(server.url, autocommit=True) as there:
            there.execute("INSERT INTO src VALUES (%s, 0, 0, 'the end')", [marker])
        job.await_that(partial(_is_copied, server, marker), PATIENCE_S)
    began = job.newest
    # both sinks commit at one checkpoint, one after the other
    job.await_that(lambda: job.newest >= began + 2)
    there, copied, wanted, counted = rows_of(server)
    verdict.figures["rows at the end"] = len(there)
    wrong = set(wanted) ^ set(counted)
    if wrong_is_right:
        found = {"wrong counts": len(wrong), "wrong rows": len(set(there) ^ set(copied))}
        verdict.figures |= found
        verdict.check(any(found.values()), "the tables are right although the bug is there")
        return
    verdict.check(there == copied, f"{len(set(there) ^ set(copied))} rows of the copy are wrong")
    verdict.check(not wrong, f"{len(wrong)} counts are wrong, such as {sorted(wrong)[:4]}")
