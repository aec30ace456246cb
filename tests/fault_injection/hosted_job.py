"""A keyed count on workers of Spark, what can happen to it, and whether each row has counted once."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.client.session import Session
from penstock.engine.deploy.coordinator.worker_handle import WorkerProcess, WorkerState
from penstock.engine.job.job import Job
from tests.harness.patience import PATIENCE_S, await_that

KEYS = 7
SETTINGS = {
    "deployment": "spark",
    "spark.executor.memory": "512m",
    "parallelism.default": "2",
    "bounded.backend": "duckdb",
    "table.dml-sync": "false",
    "execution.checkpointing.interval": "200 ms",
    "restart-strategy.delay": "20 ms",
    "restart-strategy.attempts": "100",
}


def numbers_sql(rows: int, rate: int) -> str:
    """Return the table of the numbers from 1."""
    return f"""CREATE TABLE numbers (n BIGINT, at AS TO_TIMESTAMP_LTZ(n, 3), WATERMARK FOR at AS at)
      WITH ('connector' = 'datagen', 'rows-per-second' = '{rate}',
      'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{rows}')"""


def count_sql(out: Path) -> tuple[str, str]:
    """Return the sink of the counts and the insert that fills it: numbers of each key in windows of ten
    seconds, which are 10,000 numbers.
    """
    sink = f"""CREATE TABLE counts (w TIMESTAMP_LTZ(3), k BIGINT, c BIGINT, s BIGINT)
      WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'json')"""
    query = f"""INSERT INTO counts SELECT window_start, n % {KEYS}, COUNT(*), SUM(n)
      FROM TABLE(TUMBLE(TABLE numbers, DESCRIPTOR(at), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, n % {KEYS}"""
    return sink, query


def started(session: Session, out: Path, rows: int, rate: int) -> Job:
    """Start the job and wait until it has a checkpoint."""
    sink, query = count_sql(out)
    session.execute(numbers_sql(rows, rate))
    session.execute(sink)
    job = session.execute(query).job
    assert job is not None
    until(lambda: job.metrics().checkpoints_completed >= 2 and job.metrics().rows_in > 0, job)
    return job


def until(reached: Callable[[], Any], job: Job) -> None:
    """Wait for something while the job runs."""
    await_that(
        lambda: reached() or job.state.terminal,
        lambda: f"what was waited for of {job.state}, {job.last_failure}, {job.metrics().events}",
    )
    assert not job.state.terminal or reached(), f"{job.state}, {job.error}"


def recoveries(job: Job) -> int:
    """Return how often the job has come back."""
    return sum(event.kind == "RUNNING" for event in job.metrics().events)


def outage_s(job: Job, fault: Callable[[], None]) -> float:
    """Do something to the job and return the seconds until all its tasks run again."""
    before, began = recoveries(job), time.monotonic()
    fault()
    until(lambda: recoveries(job) > before, job)
    took = time.monotonic() - began
    completed = job.metrics().checkpoints_completed
    until(lambda: job.metrics().checkpoints_completed > completed, job)
    return took


def let_time_pass(worker: WorkerProcess) -> None:
    """Have the coordinator wait too long for one worker that stands still, without waiting: others need
    not be quick.
    """
    deadline = time.monotonic() + PATIENCE_S
    while worker.state is not WorkerState.LOST:
        assert time.monotonic() < deadline, "the worker is not lost"
        worker._heard_ms = -1e9  # again and again: what it had said may come yet
        time.sleep(0.005)


def stand_still(job: Job, place: int = -1) -> Callable[[], None]:
    """Return the fault of a worker that is stopped for longer than heartbeats may be missing."""

    def fault() -> None:
        assert job.processes is not None
        worker = job.processes.processes()[place]
        os.kill(worker.pid or 0, signal.SIGSTOP)
        let_time_pass(worker)

    return fault


def worker_pid(job: Job, place: int = -1) -> int:
    """Return the process of one of its workers."""
    assert job.processes is not None
    pid = job.processes.processes()[place].pid
    assert pid is not None
    return pid


def executor_of(pid: int) -> int:
    """Return the virtual machine a Python worker belongs to: the parent of the daemon it was forked by."""
    return _parent(_parent(pid))


def _parent(pid: int) -> int:
    return next(
        int(line.split()[1])
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("PPid:")
    )


def kill(pid: int, number: int = signal.SIGKILL) -> Callable[[], None]:
    """Return the fault of a signal."""
    return lambda: os.kill(pid, number)


def drained(job: Job, out: Path) -> list[str]:
    """Stop a job over endless numbers, all windows closed; return what is wrong with what it has written,
    up to the number it stopped at.
    """
    job.stop(drain=True)
    assert job.wait(PATIENCE_S)
    assert job.error is None, job.error
    counted = sum(count * times for (_, _, count, _), times in _written(out).items())
    return wrong_counts(out, counted) if counted else ["nothing was counted"]


def wrong_counts(out: Path, rows: int) -> list[str]:
    """Return what is wrong with what was written, in sentences."""
    found = _written(out)
    counted = sum(count * times for (_, _, count, _), times in found.items())
    summed = sum(total * times for (_, _, _, total), times in found.items())
    windows = Counter((window, key) for window, key, _, _ in found.elements())
    wrong = [
        f"window {window} of key {key} was written {times} times"
        for (window, key), times in windows.items()
        if times > 1
    ]
    if (counted, summed) != (rows, rows * (rows + 1) // 2):
        wrong.append(f"{counted} rows were counted of {rows}, their sum is {summed}")
    return wrong


def _written(out: Path) -> Counter[tuple[str, int, int, int]]:
    found: Counter[tuple[str, int, int, int]] = Counter()
    # the sink keeps notes in a directory of its own
    for path in sorted(path for path in out.glob("*") if path.is_file()):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found[row["w"], row["k"], row["c"], row["s"]] += 1
    return found
