"""``python -m bench.state.running_aggregate``: a running COUNT and SUM by key from Parquet, beside DuckDB's batch
answer on one thread, by the number of keys. First run, warm runs (the best) and the peak of memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench.nexmark_sides import Timed, compile_modules, interleaved, into_blackhole

FILES = 4
ROWS_PER_GROUP = 250_000
_SELECT = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM events GROUP BY k"


def main() -> None:
    """Print a row for each number of keys."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.running_aggregate", description=__doc__)
    parser.add_argument("--keys", type=int, action="append", help="keys (1000, 100000 and 10000000)")
    parser.add_argument("--rows", type=int, default=12_000_000, help="rows (12000000)")
    parser.add_argument("--runs", type=int, default=3, help="warm runs (3)")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"), help="where the rows are kept")
    arguments = parser.parse_args()
    compile_modules()
    print(f"{arguments.rows:,} rows, M rows a second of processor time; peak memory in MB")
    print(f"{'keys':>12} {'':8} {'first':>8} {'warm':>8} {'memory':>8}")
    for turn, keys in enumerate(arguments.keys or (1_000, 100_000, 10_000_000)):
        folder = written(arguments.folder.resolve(), keys, arguments.rows)
        report(keys, arguments.rows, interleaved(_requests(folder), arguments.runs, turn))


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


@contextmanager
def prepared(query: str, folder: Path, form: str, slots: int) -> Iterator[Callable[[], None]]:
    """Declare the table, and yield what runs the aggregate from submit to the end of the job."""
    import penstock

    with penstock.connect() as connection:
        connection.execute("SET 'execution.runtime-mode' = 'streaming'")
        connection.execute(f"SET 'parallelism.default' = '{slots}'")
        connection.execute(
            "CREATE TEMPORARY TABLE events (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', "
            f"'path' = '{folder}', 'format' = '{form}', 'source.replay' = 'true')"
        )
        yield into_blackhole(connection, query)


def _requests(folder: Path) -> dict[str, dict[str, Any]]:
    ours = {"bench": "bench.state.running_aggregate", "query": _SELECT, "folder": str(folder)}
    views = [f"CREATE VIEW events AS FROM '{folder}/*.parquet'"]
    return {
        "ours": {"side": "ours", "slots": 1, "form": "parquet", **ours},
        "duckdb": {"side": "duckdb", "views": views, "select": _SELECT},
    }


def report(keys: int, rows: int, timed: dict[str, list[Timed]]) -> None:
    """Print our figures, DuckDB's, and their ratio."""
    figures = []
    for side in ("ours", "duckdb"):
        first, *warm = timed[side]
        best = min(run.cpu_s for run in warm)
        figures.append((rows / first.cpu_s / 1e6, rows / best / 1e6, warm[-1].peak_mb))
        print(f"{keys:12,} {side:8} {figures[-1][0]:8.1f} {figures[-1][1]:8.1f} {figures[-1][2]:8.0f}")
    ratios = [ours / other for ours, other in zip(*figures, strict=True)]
    print(f"{'':12} {'ratio':8} {ratios[0]:7.2f}x {ratios[1]:7.2f}x {ratios[2]:7.2f}x", flush=True)


if __name__ == "__main__":
    main()
