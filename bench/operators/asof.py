"""ASOF JOIN of one key: processor time by the number of rows, with and without the rule ``nearest_rows``.

``python -m bench.operators.asof [--rows 1000 2000 4000] [--long 50000 200000] [--by text|decimal]``: rows of both
sides in order of time, and rows that are corrected: those of a GROUP BY. ``--long`` are sizes for the rule
alone. Last the same join of bounded tables by DuckDB, and with ``--spark`` by Spark; the rule is
``nearest_rows_on_backends`` there. By texts or decimals of 30 digits only streams are run, and the rule is
``nearest_values``.
"""

from __future__ import annotations

import argparse
import time
from decimal import Decimal

import numpy as np
import pyarrow as pa

from penstock.client.session import Session

_RIGHT = {"appended": "q", "corrected": "(SELECT k, t, MAX(p) AS p FROM q GROUP BY k, t)"}
_LIMIT_S = 3_600
# the column t as a value of another type, in the same order
_VALUES = {
    "time": lambda times: pa.array(times, pa.timestamp("us")),
    "text": lambda times: pa.array([f"at {number:012d}" for number in times]),
    "decimal": lambda times: pa.array([Decimal(int(n)) * 10**15 for n in times], pa.decimal128(30, 2)),
}


def run(
    rows: int, right: str, batch_rows: int, rule: bool, backend: str | None = None, by: str = "time"
) -> tuple[float, list[tuple[object, ...]]]:
    """Return the time of a join, of the processor but for Spark's, and its rows in order."""
    dice = np.random.default_rng(1)
    times = np.arange(rows) * 1000 + dice.integers(0, 900, rows)
    settings = {"execution.runtime-mode": "streaming", "execution.batch.max-rows": str(batch_rows)}
    if backend is not None:
        settings = {"bounded.backend": backend}
    if not rule:
        of_stream = "nearest_rows" if by == "time" else "nearest_values"
        settings["optimizer.disabled-rules"] = "nearest_rows_on_backends" if backend else of_stream
    session = Session(settings)
    for name, shift, value in (("l", 0, "id"), ("q", 500, "p")):
        columns = {
            "k": np.ones(rows, np.int32),
            "t": _VALUES[by](times + shift),
            value: np.arange(rows),
        }
        session.register(name, pa.table(columns), stream=backend is None)
    query = f"SELECT l.id, b.p FROM l ASOF JOIN {_RIGHT[right]} AS b ON l.k = b.k AND l.t >= b.t"
    # Spark computes in a process of its own, of which only the wall clock tells
    clock = time.perf_counter if backend == "spark" else time.process_time
    began = clock()
    found = session.execute(query).final_rows(_LIMIT_S)
    took = clock() - began
    session.close()
    return took, sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 2000, 4000])
    parser.add_argument("--long", type=int, nargs="*", default=[50_000, 200_000])
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--by", choices=list(_VALUES), default="time")
    arguments = parser.parse_args()
    by = arguments.by
    # the first run compiles or loads kernels
    for right in _RIGHT:
        run(100, right, 100, rule=True, by=by)
        run(100, right, 100, rule=False, by=by)
        for rows in arguments.rows:
            (nearest, some), (pairs, others) = (
                run(rows, right, 500, rule=rule, by=by) for rule in (True, False)
            )
            assert some == others, "the rule changes the rows"
            print(f"{right}, {rows:,} rows a side: {nearest:.2f} s, as a Top-1 over pairs {pairs:.2f} s")
        for rows in arguments.long:
            print(
                f"{right}, {rows:,} rows a side: {run(rows, right, 5000, rule=True, by=by)[0]:.2f} s",
                flush=True,
            )
    backends = ["duckdb", *(["spark"] if arguments.spark else [])] if by == "time" else []
    for backend in backends:
        run(100, "appended", 500, rule=True, backend=backend)
        for rows in (*arguments.rows, *arguments.long):
            took = [f"{run(rows, 'appended', 500, rule=True, backend=backend)[0]:.2f} s"]
            if rows in arguments.rows:
                pairs = run(rows, "appended", 500, rule=False, backend=backend)
                took.append(f"as a Top-1 over pairs {pairs[0]:.2f} s")
            print(f"{backend}, {rows:,} rows a side: {', '.join(took)}", flush=True)


if __name__ == "__main__":
    main()
