"""Rows per second from Parquet at two slots: threads of one process beside two worker processes that are
there already.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.queries import QUESTIONS, Question, events_ddl

if TYPE_CHECKING:
    import penstock


def times_s(
    files: Path, question: Question, settings: Mapping[str, Mapping[str, str]], runs: int
) -> dict[str, list[float]]:
    """Return, for each deployment of ``settings``, the seconds from submit to the end of each job, after a
    first one that starts workers and loads kernels. The deployments take turns, so that what else the machine
    does disturbs them alike.
    """
    with contextlib.ExitStack() as closing:
        connections = {
            kind: closing.enter_context(_connected(files, question, kind, more))
            for kind, more in settings.items()
        }
        for connection in connections.values():
            _job_s(connection, question)
        turns = [
            {kind: _job_s(connection, question) for kind, connection in connections.items()}
            for _ in range(runs)
        ]
    return {kind: [turn[kind] for turn in turns] for kind in settings}


def _connected(
    files: Path, question: Question, deployment: str, settings: Mapping[str, str]
) -> penstock.Connection:
    import penstock

    connection = penstock.connect()
    for key, value in (
        ("execution.runtime-mode", "streaming"),
        ("parallelism.default", "2"),
        ("deployment", deployment),
        *settings.items(),
    ):
        connection.execute(f"SET '{key}' = '{value}'")
    connection.execute(events_ddl(str(files), watermark=question.watermark))
    connection.execute(f"CREATE TEMPORARY TABLE sink ({question.sink}) WITH ('connector' = 'blackhole')")
    return connection


def _job_s(connection: penstock.Connection, question: Question) -> float:
    start = time.perf_counter()
    job = connection.execute(f"INSERT INTO sink {question.ours}").job
    job.wait()
    if job.error is not None:
        raise job.error
    return time.perf_counter() - start


def report(files: Path, rows: int, runs: int) -> None:
    """Print one line per question."""
    print(
        f"{'question':38} {'embedded':>10} {'processes':>10} {'ratio':>7}   (M rows/s at 2 slots, median of {runs})"
    )
    for question in QUESTIONS:
        times = times_s(files, question, {"embedded": {}, "processes": {}}, runs)
        embedded, processes = (
            rows / statistics.median(times[kind]) / 1e6 for kind in ("embedded", "processes")
        )
        print(
            f"{question.name:38} {embedded:10.1f} {processes:10.1f} {processes / embedded:6.2f}x", flush=True
        )
