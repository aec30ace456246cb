"""How long a row takes from the moment it is due at the source to the change it makes at the sink, and what
the buffer timeout costs in throughput.

A keyed aggregate at half its peak rate. Each result row carries the number of the newest row in it; numbers
tell when rows were due, so a source that falls behind counts as late, and every row of the stream is
measured, not a sample.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench.latency_notes import FOLDER, noted_at_sink, noted_at_source, notes

if TYPE_CHECKING:
    import penstock

KEYS = 1_000
PEAK_ROWS = 4_000_000
TIMEOUTS_MS = (0, 1, 5, 10, 50, 100)
AIMS_MS = {10: (10.0, 50.0), 0: (3.0, 20.0)}
_QUERY = "SELECT k, c, s, n FROM (SELECT n % {keys} AS k, COUNT(*) AS c, SUM(n) AS s, MAX(n) AS n FROM {events} GROUP BY n % {keys})"
_MEASURED = _QUERY.replace("c, s, n", "c, s, noted_at_sink(n)", 1).replace(
    "FROM {events}", "FROM (SELECT noted_at_source(n) AS n FROM {events})"
)


@dataclass
class Arrivals:
    """When result rows came to the sink, and which numbers they carried. ``began_s``: when row 0 was due,
    from the moments rows left the source.
    """

    rate: int
    keys: int = KEYS
    seen: list[tuple[float, np.ndarray]] = field(default_factory=list)
    began_s: float = float("inf")

    def read(self, folder: Path) -> None:
        """Take what was noted of a job that is over."""
        left, self.seen = notes(folder)
        self.began_s = min(at - int(numbers[0]) / self.rate for at, numbers in left)

    def latencies_ms(self, warm_s: float) -> np.ndarray:
        """Return the latency of every row after the warm-up: of a key's rows, those since its result
        before came with this one.
        """
        newest = np.full(self.keys, -1, np.int64)
        lags = []
        for at, numbers in self.seen:
            keys = numbers % self.keys
            order = np.argsort(numbers)
            last = np.full(self.keys, -1, np.int64)
            last[keys[order]] = numbers[order]
            grown = np.flatnonzero(last > newest)
            counts = (
                last[grown] - np.where(newest[grown] < 0, grown - self.keys, newest[grown])
            ) // self.keys
            back = (
                np.concatenate([np.arange(count) for count in counts.tolist()])
                if grown.size
                else np.zeros(0, np.int64)
            )
            rows = np.repeat(last[grown], counts) - back * self.keys
            newest[grown] = last[grown]
            lags.append((at - self.began_s - rows / self.rate)[rows >= warm_s * self.rate] * 1000)
        return np.concatenate(lags)


def run(
    parallelism: int,
    timeout_ms: int,
    rate: int,
    rows: int,
    settings: Mapping[str, str] | None = None,
    keys: int = KEYS,
) -> tuple[float, Arrivals]:
    """Return the seconds a job over ``rows`` rows takes (``rate`` rows per second, 0: as fast as it can),
    and what came to its sink.
    """
    import penstock

    arrivals = Arrivals(rate, keys)
    wanted = {
        "execution.runtime-mode": "streaming",
        "python.modules": "bench.latency_notes",
        "parallelism.default": str(parallelism),
    }
    wanted |= {"execution.buffer-timeout": f"{timeout_ms} ms", **(settings or {})}
    with tempfile.TemporaryDirectory() as folder, penstock.connect(settings=wanted) as connection:
        os.environ[FOLDER] = folder
        if rate:
            connection.create_function(noted_at_source)
            connection.create_function(noted_at_sink)
        connection.execute(
            "CREATE TEMPORARY TABLE changes (k BIGINT, c BIGINT, s BIGINT, n BIGINT) WITH ('connector' = 'blackhole')"
        )
        if wanted.get("deployment") == "processes":
            # workers are there then, and have loaded what they need
            _insert(connection, "first", parallelism, 0, 1000, keys)
        elapsed = _insert(connection, "events", parallelism, rate, rows, keys)
        if rate:
            arrivals.read(Path(folder))
    return elapsed, arrivals


def _insert(
    connection: penstock.Connection, events: str, parallelism: int, rate: int, rows: int, keys: int
) -> float:
    """Run the query over so many rows of a new table; return the seconds it takes."""
    connection.execute(
        f"CREATE TEMPORARY TABLE {events} (n BIGINT) WITH ('connector' = 'datagen', 'fields.n.kind' = 'sequence', "
        f"'number-of-rows' = '{rows}', 'splits' = '{parallelism}', 'rows-per-second' = '{rate}')"
    )
    start = time.perf_counter()
    query = (_MEASURED if rate else _QUERY).format(keys=keys, events=events)
    job = connection.execute(f"INSERT INTO changes {query}").job
    job.wait()
    elapsed = time.perf_counter() - start
    if job.error is not None:
        raise job.error
    return elapsed


PLACES = (("1 slot", 1, {}), ("2 slots", 2, {}), ("2 workers", 2, {"deployment": "processes"}))
"""Where the tasks run: slots are threads of one process, workers are processes of one slot each."""


def report(runs: int, seconds: float) -> None:
    """Print throughput and latency per buffer timeout, at one slot, at two and in two workers; figures are
    those of the best of the runs.
    """
    print(f"{'keyed aggregate':38} {'peak M/s':>9} {'rate M/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    for place, parallelism, settings in PLACES:
        run(parallelism, 10, 0, 200_000, settings)  # warm: kernels
        for timeout_ms in (10, *(t for t in TIMEOUTS_MS if t != 10)):
            peak = max(
                PEAK_ROWS / run(parallelism, timeout_ms, 0, PEAK_ROWS, settings)[0] for _ in range(runs)
            )
            half = int(peak / 2)
            best = min(
                (_figures(parallelism, timeout_ms, half, seconds, settings) for _ in range(runs)),
                key=lambda figures: figures[1],
            )
            aim = AIMS_MS.get(timeout_ms)
            told = (
                ""
                if aim is None
                else f"   aim {aim[0]:g} / {aim[1]:g}: {'met' if best[0] <= aim[0] and best[1] <= aim[1] else 'NOT MET'}"
            )
            name = f"{place}, buffer timeout {timeout_ms} ms"
            print(
                f"{name:38} {peak / 1e6:9.1f} {half / 1e6:9.1f} {best[0]:8.1f} {best[1]:8.1f} {best[2]:8.1f}{told}",
                flush=True,
            )


def _figures(
    parallelism: int, timeout_ms: int, rate: int, seconds: float, settings: Mapping[str, str]
) -> tuple[float, float, float]:
    warm_s = 1.0
    _, arrivals = run(parallelism, timeout_ms, rate, int(rate * (seconds + warm_s)), settings)
    median, high = np.percentile(lags := arrivals.latencies_ms(warm_s), [50, 99])
    return float(median), float(high), float(lags.max())


def main() -> None:
    """``python -m bench.latency``."""
    import argparse

    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=3, help="runs of each figure, the best of which counts (3)"
    )
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="how long latency is measured in each run (4)"
    )
    arguments = parser.parse_args()
    report(arguments.runs, arguments.seconds)


if __name__ == "__main__":
    main()
