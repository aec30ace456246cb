"""What the interpreter costs per batch: batches of one row through a chain of source, calc and sink, so
rows cost nothing beside it.
"""

from __future__ import annotations

import time

BATCHES = 20_000


def report() -> None:
    """Print microseconds per batch, everything included."""
    import pyarrow as pa

    import penstock

    with penstock.connect() as connection:
        connection.execute("SET 'execution.runtime-mode' = 'streaming'")
        connection.execute("SET 'execution.batch.max-rows' = '1'")
        connection.register("numbers", pa.table({"a": range(BATCHES), "b": range(BATCHES)}))
        connection.execute(
            "CREATE TEMPORARY TABLE sink (a BIGINT, c BIGINT) WITH ('connector' = 'blackhole')"
        )
        times = []
        for _ in range(3):
            start = time.perf_counter()
            job = connection.execute("INSERT INTO sink SELECT a, a + b AS c FROM numbers WHERE a >= 0").job
            job.wait()
            times.append(time.perf_counter() - start)
    print(
        f"{'source -> calc -> sink, 1-row batches':38} {min(times) / BATCHES * 1e6:10.1f} us per batch",
        flush=True,
    )
