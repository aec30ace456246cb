"""``penstock serve`` as a process that can be killed, ended in order and started again over its state, and the
five jobs that it runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.client.execution.recorded_jobs import RecordedJob, recorded_jobs
from penstock.client.session import Session
from tests.harness.patience import await_that
from tests.harness.server_process import end_with_this_process

ROOT = Path(__file__).resolve().parents[2]
# jobs by the directory of their sink; each query has an answer that a bounded backend computes as well
QUERIES = {
    "numbers": "SELECT n, n * 2 AS x FROM numbers_in",
    "filtered": "SELECT n, k AS x FROM keyed_in WHERE MOD(n, 3) = 0",
    "windows": "SELECT COUNT(*) AS n, SUM(price) AS x FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(datetime), "
    "INTERVAL '1' SECOND)) GROUP BY window_start, window_end",
    "joined": "SELECT a.n AS n, b.k AS x FROM numbers_in AS a JOIN keyed_in AS b ON a.n = b.n",
    "united": "SELECT n, 1 AS x FROM numbers_in UNION ALL SELECT n, 2 AS x FROM keyed_in",
}
SETTINGS = {"bounded.backend": "duckdb"}
# below the 300 s after which pytest ends a test that hangs
_END_S = 120.0


def tables(rows: int, rate: int) -> list[str]:
    """Return the statements of the tables that the jobs read; a rate of 0 reads as fast as it goes."""
    limit = f", 'rows-per-second' = '{rate}'" if rate else ""
    sequence = "'fields.n.kind' = 'sequence', 'fields.n.start' = '1'"
    return [
        f"CREATE TABLE numbers_in (n BIGINT) WITH ('connector' = 'datagen', {sequence}, "
        f"'number-of-rows' = '{rows}'{limit})",
        f"CREATE TABLE keyed_in (n BIGINT, k BIGINT) WITH ('connector' = 'datagen', {sequence}, "
        f"'fields.k.min' = '1', 'fields.k.max' = '9', 'seed' = '7', 'number-of-rows' = '{rows}'{limit})",
        "CREATE TABLE bids (price BIGINT, datetime TIMESTAMP(3), WATERMARK FOR datetime AS datetime) WITH "
        f"('connector' = 'nexmark', 'table' = 'bid', 'events.num' = '{rows}', 'event-rate' = '50'{limit})",
    ]


def sink(name: str, root: Path) -> str:
    """Return the statement of the table that a job writes."""
    path = root / "out" / name
    return (
        f"CREATE TABLE {name} (n BIGINT, x BIGINT) "
        f"WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{path}')"
    )


def expected(rows: int) -> dict[str, Counter[tuple[int, ...]]]:
    """Return the rows of each job, computed by DuckDB."""
    session = Session({**SETTINGS, "execution.runtime-mode": "batch"})
    try:
        for statement in tables(rows, 0):
            session.execute(statement)
        return {
            name: Counter(tuple(row.values()) for row in session.execute(query).final_rows().to_pylist())
            for name, query in QUERIES.items()
        }
    finally:
        session.close()


@dataclass
class ServerProcess:
    """A server with its five jobs below ``root``. ``flags`` are further words of the command line."""

    root: Path
    rows: int
    rate: int
    flags: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    starts: int = 0

    @property
    def state(self) -> Path:
        """Its --state."""
        return self.root / "state"

    @property
    def log(self) -> Path:
        """The log of the server that was started last."""
        return self.root / f"server-{self.starts}.log"

    @property
    def stacks(self) -> Path:
        """Where its threads are, of servers that did not end."""
        return self.root / "stacks.txt"

    def script(self) -> str:
        """Return what is run once."""
        inserts = [f"INSERT INTO {name} {query}" for name, query in QUERIES.items()]
        made = [*tables(self.rows, self.rate), *(sink(name, self.root) for name in QUERIES), *inserts]
        view = "CREATE MATERIALIZED VIEW counted AS SELECT k, COUNT(*) AS c FROM keyed_in GROUP BY k"
        return ";\n".join([*made, view]) + ";\n"

    def start(self) -> subprocess.Popen[bytes]:
        """Start a server beside those that run."""
        self.starts += 1
        self.root.mkdir(parents=True, exist_ok=True)
        init = self.root / "init.sql"
        init.write_text(self.script(), encoding="utf-8")
        settings = {
            **SETTINGS,
            "execution.checkpointing.interval": "200 ms",
            "restart-strategy.delay": "20 ms",
        }
        words = [word for key, text in settings.items() for word in ("--set", f"{key}={text}")]
        flags = ("--state", str(self.state), "--init", str(init), "--log-file", str(self.log), *self.flags)
        environment = {"PYTHONPATH": str(ROOT), "PENSTOCK_CONFIG": "/nonexistent", "PYTHONFAULTHANDLER": "1"}
        with self.stacks.open("ab") as stacks:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "penstock.repl.cli", "serve", *flags, *words],
                cwd=self.root,
                env={**os.environ, **environment},
                stdout=subprocess.DEVNULL,
                stderr=stacks,
            )
        end_with_this_process(self.process.pid)
        return self.process

    def await_ready(self) -> None:
        """Wait until the server that was started last accepts clients."""
        process = self.process
        assert process is not None
        await_that(lambda: self.events("ready") or process.poll() is not None, "the start", 0.02)
        assert process.poll() is None, self.log.read_text()

    @property
    def cpu_s(self) -> float:
        """The processor time of the server so far: on a shared machine the clock says little."""
        assert self.process is not None
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """Kill the server."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """End the server in order; return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        # one that does not end is a failure of its own, which says where its threads are
        try:
            return self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(_END_S)
            stacks = self.stacks.read_text(encoding="utf-8")
            told = f"{self.log.read_text(encoding='utf-8')[-4_000:]}\n{stacks}"
            raise AssertionError(f"the server did not end:\n{told}") from None

    def hurry(self) -> None:
        """Let the sources of a server that has ended emit as fast as they can from now on."""
        path = self.state / "_server" / "catalog.json"
        content = path.read_text(encoding="utf-8")
        path.write_text(content.replace(f"'rows-per-second' = '{self.rate}'", "'rows-per-second' = '0'"))

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of a name in the log of the server that was started last."""
        if not self.log.exists():
            return []
        # a line may be half written
        lines = self.log.read_text(encoding="utf-8").split("\n")[:-1]
        return [event for line in lines if (event := json.loads(line))["event"] == name]

    def jobs(self) -> list[RecordedJob]:
        """Return the jobs that its state records."""
        return recorded_jobs(self.state)

    @property
    def finished(self) -> bool:
        """Whether all five jobs have ended."""
        return sum(job.finished for job in self.jobs()) == len(QUERIES)

    def checkpoint_times(self) -> dict[str, float]:
        """Return when each unfinished job has published its newest checkpoint."""
        times = {}
        for job in self.jobs():
            current = self.state / job.job_id / "CURRENT"
            if not job.finished:
                times[job.job_id] = current.stat().st_mtime if current.exists() else 0.0
        return times

    def await_checkpoints(self) -> float:
        """Wait until every job that runs has a checkpoint of this server; return the seconds of the last."""
        began_s = time.time()
        await_that(
            lambda: all(at_s > began_s for at_s in self.checkpoint_times().values()),
            "a checkpoint each",
            0.02,
        )
        return max([at_s - began_s for at_s in self.checkpoint_times().values()], default=0.0)

    def written(self) -> dict[str, Counter[tuple[int, ...]]]:
        """Return the rows that each job has published."""
        found = {}
        for name in QUERIES:
            rows: Counter[tuple[int, ...]] = Counter()
            for path in (self.root / "out" / name).glob("*.csv"):
                lines = path.read_text().splitlines()[1:]
                rows.update(tuple(map(int, line.split(","))) for line in lines)
            found[name] = rows
        return found
