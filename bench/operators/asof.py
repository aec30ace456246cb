"""ASOF JOIN of one key: processor time by the number of rows, with and without the rule ``nearest_rows``.

``python -m bench.operators.asof [--rows 1000 2000 4000] [--long 50000 200000]``: rows of both sides in order of time, and
rows that are corrected: those of a GROUP BY. ``--long`` are sizes for the rule alone. Last the same join of
bounded tables by DuckDB, and with ``--spark`` by Spark; the rule is ``nearest_rows_on_backends`` there.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

from penstock.client.session import Session

_RIGHT = {"appended": "q", "corrected": "(SELECT k, t, MAX(p) AS p FROM q GROUP BY k, t)"}
_LIMIT_S = 3_600


def run(
    rows: int, right: str, batch_rows: int, rule: bool, backend: str | None = None
) -> tuple[float, list[tuple[object, ...]]]:
    """Return the time of a join, of the processor but for Spark's, and its rows in order."""
    dice = np.random.default_rng(1)
    times = np.arange(rows) * 1000 + dice.integers(0, 900, rows)
    settings = {"execution.runtime-mode": "streaming", "execution.batch.max-rows": str(batch_rows)}
    if backend is not None:
        settings = {"bounded.backend": backend}
    if not rule:
        settings["optimizer.disabled-rules"] = "nearest_rows" + ("_on_backends" if backend else "")
    session = Session(settings)
    for name, shift, value in (("l", 0, "id"), ("q", 500, "p")):
        columns = {
            "k": np.ones(rows, np.int32),
            "t": pa.array(times + shift, pa.timestamp("us")),
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
    arguments = parser.parse_args()
    # the first run compiles or loads kernels
    for right in _RIGHT:
        run(100, right, 100, rule=True)
        run(100, right, 100, rule=False)
        for rows in arguments.rows:
            (nearest, some), (pairs, others) = (run(rows, right, 500, rule=rule) for rule in (True, False))
            assert some == others, "the rule changes the rows"
            print(f"{right}, {rows:,} rows a side: {nearest:.2f} s, as a Top-1 over pairs {pairs:.2f} s")
        for rows in arguments.long:
            print(f"{right}, {rows:,} rows a side: {run(rows, right, 5000, rule=True)[0]:.2f} s", flush=True)
    for backend in ("duckdb", *(["spark"] if arguments.spark else [])):
        run(100, "appended", 500, rule=True, backend=backend)
        for rows in (*arguments.rows, *arguments.long):
            took = [f"{run(rows, 'appended', 500, rule=True, backend=backend)[0]:.2f} s"]
            if rows in arguments.rows:
                pairs = run(rows, "appended", 500, rule=False, backend=backend)
                took.append(f"as a Top-1 over pairs {pairs[0]:.2f} s")
            print(f"{backend}, {rows:,} rows a side: {', '.join(took)}", flush=True)


if __name__ == "__main__":
    main()
