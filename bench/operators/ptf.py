"""Process table functions over Arrow tables in memory, M rows per second and per cpu-second, beside GROUP BY.

``python -m bench.operators.ptf [--rows 4000000] [--runs 3]``: a count by key that emits each partition's count once a
batch, the same with a timer for each second of event time, one row at a time.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import penstock

_COLUMNS = {"n": "BIGINT"}


@penstock.ptf(_COLUMNS)
class Counting:
    """The count of each partition, once a batch."""

    seen = penstock.value_state("BIGINT")

    def process(self, ctx: Any) -> None:
        """Add the rows of each partition."""
        now = pc.add(pc.fill_null(ctx.state.seen, 0), np.diff(ctx.offsets))
        ctx.state.seen = now
        ctx.emit({"n": now})


@penstock.ptf(_COLUMNS)
class Ticking:
    """The count of each partition, at each second of event time."""

    input = penstock.table_input(requires_time=True)
    seen = penstock.value_state("BIGINT")

    def process(self, ctx: Any) -> None:
        """Add the rows of each partition, and set a timer at the end of their second."""
        ctx.state.seen = pc.add(pc.fill_null(ctx.state.seen, 0), np.diff(ctx.offsets))
        last = ctx.times_us[ctx.offsets[1:] - 1]
        ctx.set_timer((last // 1_000_000 + 1) * 1_000_000)

    def on_timer(self, ctx: Any) -> None:
        """Emit the counts."""
        ctx.emit([ctx.state.seen])


@penstock.ptf(_COLUMNS, mode="row")
class RowByRow:
    """The count of each partition, after each row."""

    seen = penstock.value_state("BIGINT")

    def process(self, ctx: Any, row: dict[str, Any]) -> None:
        """Add one."""
        ctx.state.seen = (ctx.state.seen or 0) + 1
        ctx.emit(ctx.state.seen)


QUERIES = {
    "GROUP BY": ("SELECT k, COUNT(*) AS n FROM t GROUP BY k", 1),
    "count, a batch at a time": ("SELECT k, n FROM Counting(TABLE t PARTITION BY k)", 1),
    "count, a timer each second": (
        "SELECT k, n FROM Ticking(TABLE t PARTITION BY k, on_time => DESCRIPTOR(ts))",
        1,
    ),
    "count, a row at a time": ("SELECT k, n FROM RowByRow(TABLE t PARTITION BY k)", 20),
}


def report(rows: int, runs: int) -> None:
    """Print one line a query and number of keys: the best of some runs."""
    print(f"{'process table functions, 1 slot':45} {'M rows/s':>9} {'M rows/cpu-s':>13}")
    for keys in (100, 100_000):
        for name, (query, fewer) in QUERIES.items():
            count = rows // fewer
            table = pa.table(
                {
                    "k": np.random.default_rng(5).integers(0, keys, count),
                    "ts": np.datetime64("2024-01-01", "us") + np.arange(count) * np.timedelta64(100, "us"),
                }
            )
            with penstock.connect(settings={"execution.runtime-mode": "streaming"}) as connection:
                connection.register("t", table, time_column="ts", delay=1)
                for function in (Counting, Ticking, RowByRow):
                    connection.create_function(function)
                connection.execute(
                    "CREATE TEMPORARY TABLE s (k BIGINT, n BIGINT) WITH ('connector' = 'blackhole')"
                )
                timed = [_seconds(connection, f"INSERT INTO s {query}") for _ in range(runs + 1)]
            wall, cpu = (count / min(one) / 1e6 for one in zip(*timed, strict=True))
            print(f"{f'{name}, {keys:,} keys':45} {wall:9.2f} {cpu:13.2f}", flush=True)


def _seconds(connection: Any, query: str) -> tuple[float, float]:
    """Run a query; return its seconds, and those of the processor."""
    start, used = time.perf_counter(), time.process_time()
    job = connection.execute(query).job
    job.wait()
    if job.error is not None:
        raise job.error
    return time.perf_counter() - start, time.process_time() - used


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.operators.ptf", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of each query (4 million)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each figure (3)")
    given = parser.parse_args()
    report(given.rows, given.runs)
