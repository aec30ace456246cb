"""``python -m bench.operators.runtime_filters``: a stream of ten million rows joined with a hundred keys of a hundred
thousand, with and without its filter.

Times are from the statement to the end of a job that has given all its rows, of jobs that take turns. Spread:
each key stands everywhere, so all rows are read; in order: rows of one key stand together, as where files are
written by day, so row groups of Parquet are passed over.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import penstock

KEYS = 100_000
CHOSEN = 100


def stream(folder: Path, rows: int, form: str, ordered: bool) -> Path:
    """Write the stream, once, and return its directory."""
    directory = folder / f"{'in-order' if ordered else 'spread'}-{rows}-{form}"
    if directory.exists():
        return directory
    numbers = np.random.default_rng(7)
    keys = numbers.integers(0, KEYS, rows)
    made = pa.table(
        {"k": np.sort(keys) if ordered else keys, "v": np.arange(rows), "x": numbers.random(rows).round(6)}
    )
    directory.mkdir(parents=True)
    for part in range(4):
        piece = made.slice(part * rows // 4, (part + 1) * rows // 4 - part * rows // 4)
        if form == "parquet":
            pq.write_table(piece, directory / f"{part}.parquet", row_group_size=100_000)
        else:
            pyarrow.csv.write_csv(piece, directory / f"{part}.csv")
    return directory


def took(
    directory: Path, form: str, filtered: bool, parallelism: int
) -> tuple[float, list[tuple[int, float]]]:
    """Return how long the join took, in seconds, and what it gave."""
    settings = {
        "execution.runtime-mode": "streaming",
        "parallelism.default": str(parallelism),
        "optimizer.runtime-filters": str(filtered).lower(),
    }
    with penstock.connect(settings=settings) as connection:
        options = f"'connector' = 'filesystem', 'path' = '{directory}', 'format' = '{form}', 'source.replay' = 'true'"
        connection.execute(f"CREATE TABLE events (k BIGINT, v BIGINT, x DOUBLE) WITH ({options})")
        connection.register(
            "dims",
            pa.table({"k": np.arange(CHOSEN) + KEYS // 2, "name": [f"n{i % 7}" for i in range(CHOSEN)]}),
        )
        started_s = time.perf_counter()
        rows = connection.execute(
            "SELECT d.name, COUNT(*), SUM(e.v) FROM events AS e JOIN dims AS d ON e.k = d.k GROUP BY d.name"
        ).fetchall()
        return time.perf_counter() - started_s, sorted(rows)


def main() -> None:
    """Print seconds with and without the filter, and their ratio, of the best of so many runs."""
    parser = argparse.ArgumentParser(prog="python -m bench.operators.runtime_filters", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument(
        "--folder", type=Path, default=Path("out/bench/runtime-filters"), help="where the rows are kept"
    )
    arguments = parser.parse_args()
    for form in ("parquet", "csv"):
        for ordered in (False, True):
            directory = stream(arguments.folder, arguments.rows, form, ordered)
            took(directory, form, True, arguments.parallelism)  # nothing is compiled while it is timed
            runs = [
                [took(directory, form, filtered, arguments.parallelism) for filtered in (True, False)]
                for _ in range(arguments.runs)
            ]
            assert all(answer == runs[0][0][1] for run in runs for _, answer in run), "the answers differ"
            with_s, without_s = (min(run[which][0] for run in runs) for which in (0, 1))
            place = "in order" if ordered else "spread"
            print(
                f"{form}, {place}: {with_s:.2f} s with, {without_s:.2f} s without the filter: {without_s / with_s:.1f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
