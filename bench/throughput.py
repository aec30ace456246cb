"""Rows per second from Parquet, at one slot and at two, beside DuckDB on one thread: interleaved runs,
medians.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from bench.queries import QUESTIONS, Question, events_ddl


def ours_s(files: Path, question: Question, parallelism: int) -> float:
    """Return the seconds from submit to the end of the job, result into a blackhole."""
    import penstock

    with penstock.connect() as connection:
        connection.execute("SET 'execution.runtime-mode' = 'streaming'")
        connection.execute(f"SET 'parallelism.default' = '{parallelism}'")
        connection.execute(events_ddl(str(files), watermark=question.watermark))
        connection.execute(f"CREATE TEMPORARY TABLE sink ({question.sink}) WITH ('connector' = 'blackhole')")
        start = time.perf_counter()
        job = connection.execute(f"INSERT INTO sink {question.ours}").job
        job.wait()
        elapsed = time.perf_counter() - start
        if job.error is not None:
            raise job.error
    return elapsed


def duckdb_s(files: Path, question: Question) -> float:
    """Return the seconds DuckDB takes on one thread to hand out all batches of the answer."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    start = time.perf_counter()
    for _ in connection.sql(question.duckdb.format(files=files)).to_arrow_reader(100_000):
        pass
    return time.perf_counter() - start


def report(files: Path, rows: int, runs: int) -> None:
    """Print one line per question."""
    print(
        f"{'question':38} {'1 slot':>10} {'2 slots':>10} {'scaling':>8} {'DuckDB 1t':>10} {'ratio':>7}   (M rows/s, median of {runs})"
    )
    for question in QUESTIONS:
        one, two, peer = [], [], []
        ours_s(files, question, 1)  # warm: page cache and kernels
        for _ in range(runs):
            one.append(ours_s(files, question, 1))
            peer.append(duckdb_s(files, question))
            two.append(ours_s(files, question, 2))
        a, b, c = (rows / statistics.median(times) / 1e6 for times in (one, two, peer))
        print(f"{question.name:38} {a:10.1f} {b:10.1f} {b / a:7.2f}x {c:10.1f} {a / c:6.2f}x", flush=True)
