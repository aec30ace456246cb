"""Join of two streams with distinct BIGINT keys: ``python -m bench.operators.join [--rows 1000000 10000000]``.

Rows of both sides per second of processor time from Parquet, first run and warm, and the peak of memory, beside
DuckDB's batch join on one thread. A new process for each side and size; runs alternate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.nexmark_sides import Timed, compile_modules, interleaved, into_blackhole

_SIDES = ("l", "r")
_SELECT = "SELECT l.k, l.v, r.v AS w FROM l JOIN r ON l.k = r.k"
_ROWS_AT_ONCE = 1 << 20
# between one key and the next: dense keys are found in an array, others by their hash
_SPREADS = (1, 1_000)


def written(folder: Path, rows: int, spread: int) -> Path:
    """Return a folder with one file for each side: as many keys, each a multiple of ``spread``, in an order of its
    own, and a number.
    """
    target = folder / f"join-{rows}-{spread}"
    for seed, side in enumerate(_SIDES):
        path = target / side / "part-0.parquet"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        keys = np.random.default_rng(seed).permutation(rows)
        begun = path.with_suffix(".inprogress")
        pq.write_table(pa.table({"k": keys * spread, "v": keys * 3}), begun, row_group_size=_ROWS_AT_ONCE)
        begun.rename(path)
    return target


@contextmanager
def prepared(query: str, folder: Path, form: str, slots: int) -> Iterator[Callable[[], None]]:
    """Declare both tables, and yield what runs the join from submit to the end of the job, result into a
    blackhole.
    """
    import penstock

    with penstock.connect() as connection:
        connection.execute("SET 'execution.runtime-mode' = 'streaming'")
        connection.execute(f"SET 'parallelism.default' = '{slots}'")
        for side in _SIDES:
            connection.execute(
                f"CREATE TABLE {side} (k BIGINT, v BIGINT) WITH ('connector' = 'filesystem', "
                f"'path' = '{folder / side}', 'format' = '{form}')"
            )
        yield into_blackhole(connection, query)


def _requests(folder: Path) -> dict[str, dict[str, Any]]:
    ours = {"bench": "bench.operators.join", "query": _SELECT, "folder": str(folder), "form": "parquet"}
    views = [f"CREATE VIEW {side} AS FROM '{folder / side}/*.parquet'" for side in _SIDES]
    return {
        "ours": {"side": "ours", "slots": 1, **ours},
        "duckdb": {"side": "duckdb", "views": views, "select": _SELECT},
    }


def line(rows: int, spread: int, timed: dict[str, list[Timed]]) -> str:
    """Return the figures of one size: M rows/s warm (the least time) and first, MB of memory."""
    figures = []
    for side in ("ours", "duckdb"):
        first, *warm = timed[side]
        rates = [2 * rows / 1e6 / seconds for seconds in (min(run.cpu_s for run in warm), first.cpu_s)]
        figures.append(f"{rates[0]:9.2f} {rates[1]:9.2f} {warm[-1].peak_mb:9,.0f}")
    return f"{rows:>12,} {spread:>6,} {figures[0]}   {figures[1]}"


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000], help="of each side")
    parser.add_argument("--runs", type=int, default=2, help="warm runs a side (2)")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"), help="where the rows are kept")
    arguments = parser.parse_args()
    compile_modules()
    print(
        f"{'rows a side':>12} {'apart':>6} {'warm':>9} {'first':>9} {'MB':>9}   {'DuckDB':>9} {'first':>9} {'MB':>9}"
    )
    sizes = [(rows, spread) for rows in arguments.rows for spread in _SPREADS]
    for turn, (rows, spread) in enumerate(sizes):
        folder = written(arguments.folder.resolve(), rows, spread)
        print(line(rows, spread, interleaved(_requests(folder), arguments.runs, turn)), flush=True)


if __name__ == "__main__":
    main()
