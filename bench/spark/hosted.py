"""Rows per second from Parquet at two slots: worker processes of our own beside workers on two executors
of Spark, both there already.
"""

from __future__ import annotations

import os
import statistics
from pathlib import Path

from bench.deployment import times_s
from bench.queries import QUESTIONS

SETTINGS = {
    # as many threads of Arrow as our own processes have
    "spark.executorEnv.OMP_NUM_THREADS": str(os.cpu_count()),
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "512m",
    "taskmanager.idle-timeout": "10 min",
}


def report(files: Path, rows: int, runs: int) -> None:
    """Print one line per question."""
    print(
        f"{'question':38} {'processes':>10} {'spark':>10} {'ratio':>7}   (M rows/s at 2 slots, median of {runs})"
    )
    for question in QUESTIONS:
        times = times_s(files, question, {"processes": {}, "spark": SETTINGS}, runs)
        processes, spark = (rows / statistics.median(times[kind]) / 1e6 for kind in ("processes", "spark"))
        print(f"{question.name:38} {processes:10.1f} {spark:10.1f} {spark / processes:6.2f}x", flush=True)
