"""The bench's events: twelve million rows of Parquet in four files, made once from a fixed seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 12_000_000
FILES = 4
KEYS = 100_000
ROWS_PER_GROUP = 250_000
EVENTS_PER_SECOND = 100_000  # of event time


def events(folder: Path) -> Path:
    """Write the events unless they are there, and return their folder.

    Columns: ``ts`` TIMESTAMP(6) ascending with up to 500 ms of disorder, ``k`` BIGINT of 100,000 keys, ``v``
    BIGINT below 1,000, ``x`` DOUBLE. Row i is in file i mod 4 run-wise, so the files are partitions of one
    stream, all covering the whole time span.
    """
    target = folder / f"events-{ROWS}"
    if (target / "_done").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        rows = ROWS // FILES
        rng = np.random.Generator(np.random.PCG64(number))
        step_us = 1_000_000 * FILES // EVENTS_PER_SECOND
        ts = (
            1_700_000_000_000_000 + np.arange(rows, dtype=np.int64) * step_us - rng.integers(0, 500_000, rows)
        )
        table = pa.table(
            {
                "ts": pa.array(ts).cast(pa.timestamp("us")),
                "k": rng.integers(0, KEYS, rows),
                "v": rng.integers(0, 1_000, rows),
                "x": rng.random(rows),
            }
        )
        pq.write_table(
            table, target / f"part-{number}.parquet", row_group_size=ROWS_PER_GROUP, compression="snappy"
        )
    (target / "_done").touch()
    return target
