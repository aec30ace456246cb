"""``python -m bench.state.large_checkpoints``: what checkpoints of large state cost: the rate, the longest wait and
the memory, without checkpoints and with them. A count of ten million random keys, or a Nexmark query.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import penstock
from bench import nexmark
from bench.nexmark_events import KINDS, files_ddl, written
from bench.nexmark_sides import peak_mb

_MB = 1 << 20


@dataclass(frozen=True)
class Run:
    """One job: seconds, processor seconds, checkpoints, the longest wait for a snapshot, peak memory, and
    what its checkpoints are on disk at its end.
    """

    seconds: float
    worked_s: float
    checkpoints: int
    wait_ms: float
    peak_mb: float
    kept_mb: float


def run(arguments: argparse.Namespace, interval: str) -> Run:
    """Run the job in a process of its own."""
    command = [sys.executable, "-m", "bench.state.large_checkpoints", "--one", "--interval", interval]
    command += ["--groups", str(arguments.groups), "--rows", str(arguments.rows)]
    command += ["--query", arguments.query, "--folder", str(arguments.folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Run(**json.loads(printed.splitlines()[-1]))


def one(arguments: argparse.Namespace) -> Run:
    """Run the job in this process."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, penstock.connect() as connection:
        settings = {
            "execution.runtime-mode": "streaming",
            "execution.checkpointing.interval": arguments.interval,
            "execution.checkpointing.dir": folder,
        }
        for key, value in settings.items():
            connection.execute(f"SET '{key}' = '{value}'")
        for statement in _tables(arguments):
            connection.execute(statement)
        began, worked = time.perf_counter(), time.process_time()
        select = "SELECT k, COUNT(*) AS n FROM events GROUP BY k"
        if arguments.query:
            select = nexmark.statements(arguments.query)[1]
        job = connection.execute(
            f"CREATE TEMPORARY TABLE sink WITH ('connector' = 'blackhole') AS {select}"
        ).job
        job.wait()
        seconds, worked = time.perf_counter() - began, time.process_time() - worked
        if job.error is not None:
            raise job.error
        metrics = job.metrics()
        wait_ms = max(task.checkpoint_sync_ms for task in metrics.tasks)
        kept = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        return Run(seconds, worked, metrics.checkpoints_completed, wait_ms, peak_mb(), kept / _MB)


def _tables(arguments: argparse.Namespace) -> list[str]:
    """Return what declares the tables: keys at random, or the events of Nexmark in files."""
    if arguments.query:
        files = written(arguments.folder, arguments.rows, forms=("parquet",))
        return [files_ddl(kind, files, "parquet") for kind in KINDS] + nexmark.statements(arguments.query)[0]
    return [
        "CREATE TABLE events (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '0', "
        f"'number-of-rows' = '{arguments.rows}', 'fields.k.min' = '1', 'fields.k.max' = '{arguments.groups}')"
    ]


def main() -> int:
    """Print a row for each run, those without and with checkpoints in turn, and what checkpoints cost."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.large_checkpoints", description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000_000, help="keys of the count (10000000)")
    parser.add_argument("--rows", type=int, default=60_000_000, help="rows or events of a run (60000000)")
    parser.add_argument("--query", default="", help="a query of Nexmark, such as q9 (the count)")
    parser.add_argument("--interval", default="2 s", help="between checkpoints (2 s)")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, in turn; 0: one with them (3)")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/bench"), help="where Nexmark's events are kept (out/bench)"
    )
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(vars(one(arguments))))
        return 0
    what = arguments.query or f"{arguments.groups:,} groups"
    print(f"{what}, {arguments.rows:,} rows, {os.cpu_count()} processors")
    print(
        f"{'checkpoints':12} {'M rows/s':>9} {'M rows/cpu-s':>13} {'longest wait ms':>16} {'peak MB':>8} "
        f"{'taken':>6} {'on disk MB':>11}"
    )
    off, on = [], []
    for number in range(max(1, arguments.pairs)):
        if arguments.pairs:
            off.append(run(arguments, "0"))
            _print("none", off[number], arguments.rows)
        on.append(run(arguments, arguments.interval))
        _print(arguments.interval, on[number], arguments.rows)
    if off:
        cost = 1 - median(r.seconds for r in off) / median(r.seconds for r in on)
        worked = median(r.worked_s for r in on) / median(r.worked_s for r in off) - 1
        memory = median(r.peak_mb for r in on) / median(r.peak_mb for r in off)
        print(
            f"checkpoints cost {cost:.0%} of the rate (medians; processor time {worked:+.0%}), longest wait "
            f"{max(r.wait_ms for r in on):.0f} ms, memory x{memory:.2f}"
        )
    return 0


def _print(name: str, found: Run, rows: int) -> None:
    print(
        f"{name:12} {rows / found.seconds / 1e6:9.2f} {rows / found.worked_s / 1e6:13.2f} "
        f"{found.wait_ms:16.0f} {found.peak_mb:8,.0f} {found.checkpoints:6} {found.kept_mb:11,.0f}",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
