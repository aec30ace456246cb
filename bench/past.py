"""Ten million rows of a past: ten files of Parquet, made once from a fixed seed, each later in event time
than the one before.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 10_000_000
FILES = 10
COLUMNS = "k BIGINT, u BIGINT, v BIGINT, x DOUBLE, ts TIMESTAMP(3)"
KEYS, USERS = 1_000, 100_000
_STEP_US = 10_000


def past(folder: Path, rows: int = ROWS) -> Path:
    """Write the files unless they are there, and return their folder.

    Columns: ``k`` of 1,000 values, ``u`` of 100,000, ``v`` below 1,000, ``x`` DOUBLE, ``ts`` ten milliseconds
    apart with up to 2 s of disorder.
    """
    target = folder / f"past-{rows}"
    if (target / "_done").exists():
        return target
    target.mkdir(parents=True, exist_ok=True)
    each = rows // FILES
    for number in range(FILES):
        rng = np.random.Generator(np.random.PCG64(number))
        times = (np.arange(each, dtype=np.int64) + number * each) * _STEP_US + rng.integers(
            0, 2_000_000, each
        )
        table = pa.table(
            {
                "k": rng.integers(0, KEYS, each),
                "u": rng.integers(0, USERS, each),
                "v": rng.integers(0, 1_000, each),
                "x": rng.random(each),
                "ts": pa.array(times // 1000 * 1000, pa.timestamp("us")).cast(pa.timestamp("ms")),
            }
        )
        pq.write_table(table, target / f"p{number:02}.parquet", row_group_size=250_000, compression="snappy")
    (target / "_done").touch()
    return target
