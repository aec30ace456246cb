"""``python -m bench.state.running_aggregate``: a running COUNT and SUM by key from Parquet, beside DuckDB's batch
answer on one thread, by the number of keys. First run, warm runs (the best) and the peak of memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from bench.nexmark_sides import Timed, peak_mb

FILES = 4
ROWS_PER_GROUP = 250_000
_SELECT = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM {} GROUP BY k"


def main() -> int:
    """Print a row for each number of keys."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.running_aggregate", description=__doc__)
    parser.add_argument("--keys", type=int, action="append", help="keys (1000, 100000 and 10000000)")
    parser.add_argument("--rows", type=int, default=12_000_000, help="rows (12000000)")
    parser.add_argument("--runs", type=int, default=3, help="warm runs (3)")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"), help="where the rows are kept")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(**json.loads(arguments.serve))
        return 0
    print(f"{arguments.rows:,} rows, M rows a second of processor time; peak memory in MB")
    print(f"{'keys':>12} {'':8} {'first':>8} {'warm':>8} {'memory':>8}")
    for keys in arguments.keys or (1_000, 100_000, 10_000_000):
        report(written(arguments.folder, keys, arguments.rows), keys, arguments.rows, arguments.runs)
    return 0


def written(folder: Path, keys: int, rows: int) -> Path:
    """Write the rows unless they are there, and return their folder: ``k`` BIGINT, even over the keys, and ``v``
    BIGINT below 1,000.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = folder / f"keys-{keys}-{rows}"
    if (target / "_done").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        rng = np.random.default_rng(number)
        share = rows // FILES
        table = pa.table({"k": rng.integers(0, keys, share), "v": rng.integers(0, 1_000, share)})
        pq.write_table(
            table, target / f"part-{number}.parquet", row_group_size=ROWS_PER_GROUP, compression="snappy"
        )
    (target / "_done").touch()
    return target


def report(folder: Path, keys: int, rows: int, runs: int) -> None:
    """Print our figures, DuckDB's, and their ratio; the two sides alternate."""
    sides = {
        side: subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.state.running_aggregate", "--serve"),
                json.dumps({"side": side, "folder": str(folder)}),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for side in ("ours", "duckdb")
    }
    timed: dict[str, list[Timed]] = {side: [] for side in sides}
    for _ in range(runs + 1):
        for side, process in sides.items():
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            timed[side].append(Timed(**json.loads(process.stdout.readline())))
    figures = []
    for side, process in sides.items():
        process.communicate()
        first, *warm = timed[side]
        best = min(run.cpu_s for run in warm)
        figures.append((rows / first.cpu_s / 1e6, rows / best / 1e6, warm[-1].peak_mb))
        print(
            f"{keys:12,} {side:8} {figures[-1][0]:8.1f} {figures[-1][1]:8.1f} {figures[-1][2]:8.0f}",
            flush=True,
        )
    ratios = [ours / other for ours, other in zip(*figures, strict=True)]
    print(f"{'':12} {'ratio':8} {ratios[0]:7.2f}x {ratios[1]:7.2f}x {ratios[2]:7.2f}x", flush=True)


def serve(side: str, folder: str) -> None:
    """Run once for each line of standard input: the child's side of ``report``. Imports are not counted."""
    with (_duckdb if side == "duckdb" else _ours)(folder) as run:
        for _ in sys.stdin:
            cpu, wall = time.process_time(), time.perf_counter()
            run()
            taken = Timed(time.process_time() - cpu, time.perf_counter() - wall, peak_mb())
            sys.stdout.write(json.dumps(asdict(taken)) + "\n")
            sys.stdout.flush()


@contextmanager
def _duckdb(folder: str) -> Iterator[Callable[[], None]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")

        def run() -> None:
            for _ in connection.sql(_SELECT.format(f"'{folder}/*.parquet'")).to_arrow_reader(100_000):
                pass

        yield run


@contextmanager
def _ours(folder: str) -> Iterator[Callable[[], None]]:
    import penstock

    with penstock.connect() as connection:
        connection.execute("SET 'execution.runtime-mode' = 'streaming'")
        connection.execute(
            "CREATE TEMPORARY TABLE events (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder}', 'format' = 'parquet', 'source.replay' = 'true')"
        )
        connection.execute(
            "CREATE TEMPORARY TABLE sink (k BIGINT, n BIGINT, s BIGINT) WITH ('connector' = 'blackhole')"
        )

        def run() -> None:
            job = connection.execute(f"INSERT INTO sink {_SELECT.format('events')}").job
            job.wait()
            if job.error is not None:
                raise job.error

        yield run


if __name__ == "__main__":
    raise SystemExit(main())
