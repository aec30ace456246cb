"""A Python source and a Python sink in one job: killed with ``kill -9`` in the middle and run again, and in worker
processes. Each row is in the target once.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.patience import PATIENCE_S, await_that

ROWS = 3000
MODULE = '''
import sqlite3, time
from pathlib import Path

import penstock
import pyarrow as pa


@penstock.source(splits=lambda: ["s-0", "s-1", "s-2"])
def rows(split, position, options):
    """Stops in the middle until the file ``gate`` is there."""
    at = position or 0
    while at < 1000:
        if at >= 500:
            while not Path(options["gate"]).exists():
                time.sleep(0.01)
        yield pa.record_batch({"n": [int(split[-1]) * 1000 + n for n in range(at, at + 10)]}), at + 10
        at += 10


@penstock.sink
class Store:
    def __init__(self, options, schema):
        self.database = sqlite3.connect(options["path"], timeout=60, isolation_level=None)
        self.database.execute("PRAGMA synchronous = OFF")
        self.database.execute("CREATE TABLE IF NOT EXISTS stored (n)")
        self.database.execute("CREATE TABLE IF NOT EXISTS epochs (writer PRIMARY KEY, epoch)")

    def last_committed(self, writer):
        found = self.database.execute("SELECT epoch FROM epochs WHERE writer = ?", [writer]).fetchone()
        return found[0] if found else 0

    def commit(self, writer, epoch, batches):
        self.database.execute("BEGIN IMMEDIATE")
        for batch in batches:
            self.database.executemany("INSERT INTO stored VALUES (?)", zip(batch.column(0).to_pylist()))
        self.database.execute("INSERT OR REPLACE INTO epochs VALUES (?, ?)", [writer, epoch])
        self.database.execute("COMMIT")
'''
SCRIPT = """
    SET 'python.modules' = 'company_rows';
    SET 'deployment' = '{deployment}';
    SET 'parallelism.default' = '{parallelism}';
    SET 'execution.checkpointing.interval' = '30 ms';
    SET 'pipeline.name' = 'company';
    CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'python', 'name' = 'company_rows.rows',
        'scan.bounded' = 'true', 'option.gate' = '{folder}/gate');
    CREATE TABLE stored (n BIGINT) WITH ('connector' = 'python', 'name' = 'company_rows.Store',
        'option.path' = '{folder}/stored.db');
    INSERT INTO stored SELECT n FROM numbers;
"""


def start(folder: Path, deployment: str, parallelism: int) -> subprocess.Popen[str]:
    (folder / "company_rows.py").write_text(MODULE, encoding="utf-8")
    script = SCRIPT.format(folder=folder, deployment=deployment, parallelism=parallelism)
    (folder / "job.sql").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "penstock", "run", "job.sql", "--state", "state"]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
    )


def stored(folder: Path) -> list[int]:
    path = folder / "stored.db"
    if not path.exists():
        return []
    with sqlite3.connect(path, timeout=60) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE name = 'stored'").fetchall()
        return [n for (n,) in database.execute("SELECT n FROM stored ORDER BY n")] if tables else []


def ends_well(job: subprocess.Popen[str]) -> None:
    output, _ = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0, output


def test_a_job_that_is_killed_goes_on_with_another_parallelism(tmp_path: Path) -> None:
    job = start(tmp_path, "embedded", 2)
    # all that comes before the gate is committed, and a checkpoint has it
    await_that(lambda: len(stored(tmp_path)) >= ROWS // 2 or job.poll() is not None)
    assert job.poll() is None, job.communicate()[0]
    job.send_signal(signal.SIGKILL)
    job.communicate()
    (tmp_path / "gate").touch()
    ends_well(start(tmp_path, "embedded", 3))
    assert stored(tmp_path) == list(range(ROWS))


@pytest.mark.at_length
def test_worker_processes_import_the_module(tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    ends_well(start(tmp_path, "processes", 2))
    assert stored(tmp_path) == list(range(ROWS))
