"""``python -m bench.large_checkpoints``: what checkpoints of ten million groups cost a count by key: the rate,
the longest pause and the memory, without checkpoints and with them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import penstock

_LOOK_S = 0.02
_MB = 1 << 20


@dataclass(frozen=True)
class Run:
    """One job: seconds, processor seconds, checkpoints, the longest wait for a snapshot, peak memory."""

    seconds: float
    worked_s: float
    checkpoints: int
    wait_ms: float
    peak_mb: float


def run(groups: int, rows: int, interval: str) -> Run:
    """Count rows by random keys in a process of its own."""
    command = [sys.executable, "-m", "bench.large_checkpoints", "--groups", str(groups)]
    command += ["--rows", str(rows), "--interval", interval, "--one"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Run(**json.loads(printed.splitlines()[-1]))


def one(groups: int, rows: int, interval: str) -> Run:
    """Count rows by random keys in this process."""
    peak = _Peak()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, penstock.connect() as connection:
        settings = {
            "execution.runtime-mode": "streaming",
            "execution.checkpointing.interval": interval,
            "execution.checkpointing.dir": folder,
        }
        for key, value in settings.items():
            connection.execute(f"SET '{key}' = '{value}'")
        connection.execute(
            "CREATE TABLE events (k BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '0', "
            f"'number-of-rows' = '{rows}', 'fields.k.min' = '1', 'fields.k.max' = '{groups}')"
        )
        connection.execute("CREATE TABLE counts (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole')")
        peak.start()
        began, worked = time.perf_counter(), time.process_time()
        job = connection.execute("INSERT INTO counts SELECT k, COUNT(*) FROM events GROUP BY k").job
        job.wait()
        seconds, worked = time.perf_counter() - began, time.process_time() - worked
        if job.error is not None:
            raise job.error
        metrics = job.metrics()
        wait_ms = max(task.checkpoint_sync_ms for task in metrics.tasks)
        return Run(seconds, worked, metrics.checkpoints_completed, wait_ms, peak.stop() / _MB)


class _Peak(threading.Thread):
    """Looks at the memory of this process until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._ended = threading.Event()
        self._most = 0

    def run(self) -> None:
        while not self._ended.wait(_LOOK_S):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            self._most = max(self._most, pages * resource.getpagesize())

    def stop(self) -> int:
        """Return the most bytes seen."""
        self._ended.set()
        self.join()
        return self._most


def main() -> int:
    """Print a row for each way, interleaved runs, and what checkpoints cost."""
    parser = argparse.ArgumentParser(prog="python -m bench.large_checkpoints", description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000_000, help="keys (10000000)")
    parser.add_argument("--rows", type=int, default=60_000_000, help="rows of a run (60000000)")
    parser.add_argument("--interval", default="2 s", help="between checkpoints (2 s)")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, in turn (3)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(vars(one(arguments.groups, arguments.rows, arguments.interval))))
        return 0
    print(f"{arguments.groups:,} groups, {arguments.rows:,} rows, {os.cpu_count()} processors")
    print(
        f"{'':20} {'M rows/s':>9} {'M rows/cpu-s':>13} {'longest wait ms':>16} {'peak MB':>8} {'checkpoints':>12}"
    )
    off, on = [], []
    for _ in range(arguments.pairs):
        for name, kept, interval in (
            ("without", off, "0"),
            (f"every {arguments.interval}", on, arguments.interval),
        ):
            kept.append(run(arguments.groups, arguments.rows, interval))
            _print(name, kept[-1], arguments.rows)
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
        f"{name:20} {rows / found.seconds / 1e6:9.2f} {rows / found.worked_s / 1e6:13.2f} "
        f"{found.wait_ms:16.0f} {found.peak_mb:8,.0f} {found.checkpoints:12}",
        flush=True,
    )


if __name__ == "__main__":
    raise SystemExit(main())
