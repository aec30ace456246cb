"""MATCH_RECOGNIZE over Arrow tables in memory: M rows/s, by kind of pattern and number of partitions."""

from __future__ import annotations

import time

import numpy as np

ROWS = 2_000_000
_V = "MEASURES FIRST(S.price) AS a, LAST(U.price) AS b AFTER MATCH SKIP TO LAST U PATTERN (S D+ U+)"
_PATTERNS = {
    "V, conditions of rows alone": f"{_V} DEFINE D AS D.price < PREV(D.price), U AS U.price > PREV(U.price)",
    "V, conditions over the match": f"{_V} DEFINE D AS D.price < LAST(price, 1), U AS U.price > LAST(D.price)",
    "running sum": "MEASURES SUM(A.price) AS a, COUNT(*) AS b PATTERN (A+ B) DEFINE A AS SUM(A.price) < 3000",
    "rare match within a minute": "MEASURES LAST(A.price) AS a, COUNT(*) AS b PATTERN (A C*? B) WITHIN INTERVAL '1' MINUTE"
    " DEFINE A AS A.price > 990, B AS B.price < 10",
}


def report(runs: int) -> None:
    """Print one line per pattern and number of partitions: the best of some runs."""
    import pyarrow as pa

    import penstock

    print(f"{'MATCH_RECOGNIZE, 1 slot':50} {'M rows/s':>9}")
    for partitions in (100, 100_000):
        chance = np.random.default_rng(5)
        times = pa.array(np.datetime64("2024-01-01", "us") + np.arange(ROWS) * np.timedelta64(10, "ms"))
        ticks = pa.table(
            {
                "symbol": chance.integers(0, partitions, ROWS),
                "price": chance.integers(0, 1000, ROWS),
                "ts": times,
            }
        )
        with penstock.connect() as connection:
            connection.execute("SET 'execution.runtime-mode' = 'streaming'")
            connection.register("ticks", ticks, time_column="ts", delay=5)
            connection.execute(
                "CREATE TEMPORARY TABLE sink (symbol BIGINT, a BIGINT, b BIGINT) WITH ('connector' = 'blackhole')"
            )
            for name, clauses in _PATTERNS.items():
                query = f"INSERT INTO sink SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts {clauses})"
                best = min(_seconds(connection, query) for _ in range(runs + 1))
                print(f"{f'{name}, {partitions:,} partitions':50} {ROWS / best / 1e6:9.2f}", flush=True)


def _seconds(connection: object, query: str) -> float:
    start = time.perf_counter()
    job = connection.execute(query).job  # type: ignore[attr-defined]
    job.wait()
    if job.error is not None:
        raise job.error
    return time.perf_counter() - start
