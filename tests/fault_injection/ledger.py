"""The card of the ledger: transfers between accounts, their balances kept up to date in files: in whatever is
committed they sum to zero.

``--mutant``: rows are published as they come, without waiting for their checkpoint: a reader must see a sum
that is not zero.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from pathlib import Path
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fault_injection.job_process import JobProcess
from tests.fault_injection.killing import Kills, quantile
from tests.fault_injection.verdict import Verdict

JOB = "insert-into-balances-1"
ACCOUNTS = 1_000
READ_S = 0.05
SCRIPT = """
CREATE TABLE transfers (id BIGINT, payer BIGINT, payee BIGINT, amount BIGINT)
WITH ('connector' = 'filesystem', 'path' = '{root}/transfers', 'format' = 'parquet', 'source.replay' = 'true', 'source.rows-per-second' = '{rate}');
CREATE TABLE balances (account BIGINT, balance BIGINT, PRIMARY KEY (account) NOT ENFORCED)
WITH ('connector' = 'filesystem', 'path' = '{root}/balances', 'format' = 'json', 'changelog.mode' = 'upsert', 'sink.rolling.bytes' = '1 gb');
INSERT INTO balances
SELECT account, SUM(delta)
FROM transfers CROSS JOIN UNNEST(ARRAY[ROW(payer, -amount), ROW(payee, amount)]) AS sides (account, delta) GROUP BY account;
"""


class Reader:
    """Reads what is committed, again and again, in a thread of its own: each checkpoint's file holds the
    balances that changed.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.balances: dict[int, int] = {}
        self.reads = 0
        self.wrong: list[str] = []

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read once more, and end."""
        self._stop.set()
        self._thread.join()
        self.read()

    def _run(self) -> None:
        while not self._stop.wait(READ_S):
            self.read()

    def read(self) -> None:
        """Read the files that have come since, in the order of their checkpoints; the sum must be zero
        after each.
        """
        self.reads += 1
        for path in sorted(self._directory.glob("part-*.jsonl")):
            if path.name in self._seen:
                continue
            self._seen.add(path.name)
            for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                self.balances[row["account"]] = row["balance"]
            if total := sum(self.balances.values()):
                self.wrong.append(f"read {self.reads}: the balances sum to {total:,} after {path.name}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=int, default=20_000, help="transfers a second")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--every", type=float, default=3.0)
    parser.add_argument("--jitter", type=float, default=2.0)
    parser.add_argument("--ckpt", default="500 ms")
    parser.add_argument("--mutant", action="store_true")


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    root: Path = arguments.directory
    # a slow machine takes longer for its kills
    seconds = int(arguments.kills * (arguments.every + arguments.jitter)) + 60
    write_transfers(root / "transfers", arguments.rate * seconds, arguments.seed)
    job = JobProcess(root, SCRIPT.format(root=root, rate=arguments.rate), JOB, interval=arguments.ckpt)
    if arguments.mutant:
        job.module = "tests.streaming.three_acts.hasty_sink"
    kills = Kills(
        arguments.kills, arguments.every, arguments.jitter, Random(arguments.seed), coverage=verdict.coverage
    )
    reader = Reader(root / "balances")
    reader.start()
    try:
        kills.run(job, job.start)
        job.kill()
        job.script = SCRIPT.format(root=root, rate=0)
        job.start()
        verdict.check(job.wait() == 0, f"the job has not ended well:\n{job.told[-2000:]}")
        time.sleep(READ_S)
    finally:
        job.reap()
        reader.stop()
    verdict.faults += kills.faults
    verdict.wrong += reader.wrong[:5]
    verdict.check(reader.balances == expected(root / "transfers"), "the balances are not DuckDB's")
    verdict.least = {"kills": arguments.kills, "kills while a checkpoint was under way": arguments.kills // 3}
    verdict.figures |= {
        "reads": reader.reads,
        "reads that did not sum to zero": len(reader.wrong),
        "accounts": len(reader.balances),
    }
    verdict.figures |= {
        "transfers": arguments.rate * seconds,
        "outage p95 s": quantile(kills.outages_s, 0.95),
    }


def write_transfers(directory: Path, rows: int, seed: int) -> None:
    """Write transfers between accounts of which few are in most."""
    random = np.random.default_rng(seed)
    directory.mkdir(parents=True)
    payer = random.zipf(1.1, rows) % ACCOUNTS
    payee = (payer + random.integers(1, ACCOUNTS, rows)) % ACCOUNTS
    table = pa.table(
        {"id": np.arange(rows), "payer": payer, "payee": payee, "amount": random.integers(1, 10_000, rows)}
    )
    pq.write_table(table, directory / "part-0.parquet", row_group_size=8_192)


def expected(directory: Path) -> dict[int, int]:
    """Return the balances DuckDB finds in the log."""
    sides = "SELECT payer AS account, -amount AS delta FROM log UNION ALL SELECT payee, amount FROM log"
    log = f"read_parquet('{directory}/*.parquet')"
    return dict(
        duckdb.connect()
        .execute(
            f"WITH log AS (FROM {log}) SELECT account, SUM(delta)::BIGINT FROM ({sides}) GROUP BY account"
        )
        .fetchall()
    )
