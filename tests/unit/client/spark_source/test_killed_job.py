"""A job killed with kill -9 between its commits while Spark streams what it commits: every row once, in
whole commits.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.connectors.filesystem.commit_log import CommitLog
from tests.harness.length import of_length
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.server_process import end_with_this_process

KILLS = of_length(1, 3)
ROWS = of_length(500, 2_000)
# so slowly that no machine is at the end when the job is to be killed
SLOWLY, QUICKLY = of_length(25, 50), 2_000
SCRIPT = """
SET 'execution.checkpointing.interval' = '50 ms';
CREATE TABLE s (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{rows}', 'rows-per-second' = '{rate}', 'fields.id.kind' = 'sequence');
CREATE TABLE out (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet');
INSERT INTO out SELECT id FROM s;
"""


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    session = SESSIONS.new("UTC")
    penstock.register_spark(session)
    yield session


def until(reached: Callable[[], bool], what: str) -> None:
    await_that(reached, what)


def started(directory: Path, rate: int) -> subprocess.Popen[bytes]:
    script = directory / "job.sql"
    script.write_text(SCRIPT.format(rows=ROWS, rate=rate, out=directory / "out"))
    words = [
        sys.executable,
        "-m",
        "penstock",
        "run",
        str(script),
        "--state",
        str(directory / "state"),
        "-p",
        "2",
    ]
    job = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end_with_this_process(job.pid)
    return job


def kill_behind(log: CommitLog, job: subprocess.Popen[bytes]) -> None:
    """Kill the job when it has committed twice more."""
    before = max(0, log.last())
    until(lambda: log.last() >= before + 2, "the job goes on")
    job.send_signal(signal.SIGKILL)
    assert job.wait() == -signal.SIGKILL, "it was killed before its end"


@pytest.mark.spark
@pytest.mark.longer
def test_every_row_once(spark: Any, tmp_path: Path) -> None:
    out, sink = tmp_path / "out", tmp_path / "sink"
    log = CommitLog(out)
    job = started(tmp_path, SLOWLY)
    try:
        until(lambda: log.last() >= 1, "the first commit")
        frame = spark.readStream.format("penstock").option("maxRowsPerTrigger", "200").load(str(out))
        stream = (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "offsets"))
            .start(str(sink))
        )
        kill_behind(log, job)
        for _ in range(KILLS - 1):
            job = started(tmp_path, SLOWLY)
            kill_behind(log, job)
        job = started(tmp_path, QUICKLY)
        assert job.wait(PATIENCE_S) == 0
        stream.processAllAvailable()
        stream.stop()
    finally:
        job.kill()
    ids = sorted(spark.read.parquet(str(sink)).toArrow().column("id").to_pylist())
    assert ids == list(range(ROWS))
    named = [file.path for number in log.numbers() for file in log.read(number).files]
    assert sorted(named) == sorted(path.name for path in out.glob("part-*")), "the log names every file once"
    sizes = [log.read(number).rows for number in log.numbers()]
    assert sum(sizes) == ROWS == sum(pq.read_metadata(out / name).num_rows for name in named)
    batches = [progress["numInputRows"] for progress in stream.recentProgress if progress["numInputRows"]]
    assert all(rows <= max(200, *sizes) for rows in batches) and len(batches) > 1
