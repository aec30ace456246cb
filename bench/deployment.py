"""Rows per second from Parquet at two slots: threads of one process beside two worker processes that are there already."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.queries import QUESTIONS, Question, events_ddl

if TYPE_CHECKING:
    import penstock


def times_s(files: Path, question: Question, deployment: str, runs: int, settings: Mapping[str, str] = {}) -> list[float]:
    """Return the seconds from submit to the end of each job, after a first one that starts workers and loads kernels."""
    import penstock

    with penstock.connect() as connection:
        for key, value in (("execution.runtime-mode", "streaming"), ("parallelism.default", "2"), ("deployment", deployment), *settings.items()):
            connection.execute(f"SET '{key}' = '{value}'")
        connection.execute(events_ddl(str(files), watermark=question.watermark))
        connection.execute(f"CREATE TEMPORARY TABLE sink ({question.sink}) WITH ('connector' = 'blackhole')")
        return [_job_s(connection, question) for _ in range(runs + 1)][1:]


def _job_s(connection: penstock.Connection, question: Question) -> float:
    start = time.perf_counter()
    job = connection.execute(f"INSERT INTO sink {question.ours}").job
    job.wait()
    if job.error is not None:
        raise job.error
    return time.perf_counter() - start


def report(files: Path, rows: int, runs: int) -> None:
    """Print one line per question."""
    print(f"{'question':38} {'embedded':>10} {'processes':>10} {'ratio':>7}   (M rows/s at 2 slots, median of {runs})")
    for question in QUESTIONS:
        embedded, processes = (rows / statistics.median(times_s(files, question, kind, runs)) / 1e6 for kind in ("embedded", "processes"))
        print(f"{question.name:38} {embedded:10.1f} {processes:10.1f} {processes / embedded:6.2f}x", flush=True)
