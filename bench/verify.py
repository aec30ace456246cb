"""``python -m bench.verify``: VERIFY over ten million rows that are equal, and over the same with one value
changed in one; time and memory.

The change is planted in what the stream reads: row number 7,654,321 of the rows given has 1 more in its
column ``v``.
"""

from __future__ import annotations

import argparse
import re
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.past import COLUMNS, ROWS, past
from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.filesystem.reader import FilesystemReader

_QUERY = "SELECT k, u, v, ts FROM past WHERE k >= 0"
_given = 0


def plant(number: int) -> None:
    """Change the value of one row that the stream is given, from now on."""
    poll = FilesystemReader.poll

    def changed(reader: FilesystemReader, max_rows: int) -> pa.RecordBatch | None:
        global _given
        rows = poll(reader, max_rows)
        if rows is None:
            return None
        place, _given = number - _given, _given + rows.num_rows
        if 0 <= place < rows.num_rows:
            values = rows.column("v").to_numpy().copy()
            values[place] += 1
            rows = rows.set_column(rows.schema.get_field_index("v"), "v", pa.array(values, pa.int64()))
        return rows

    FilesystemReader.poll = changed  # type: ignore[method-assign,assignment]


def verified(folder: Path, backend: str) -> str:
    """Verify a query whose result is all rows; return what was said in a line, or the difference."""
    import penstock

    with penstock.connect() as connection:
        options = (
            f"'connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet', 'source.replay' = 'true'"
        )
        connection.execute(f"CREATE TEMPORARY TABLE past ({COLUMNS}) WITH ({options})")
        try:
            return str(connection.execute(f"VERIFY {_QUERY} AGAINST BATCH ON {backend}").note)  # type: ignore[attr-defined]
        except penstock.Error as error:
            cause = error.__cause__
            detail = cause.detail if isinstance(cause, PenstockError) else ""
            return re.sub(r"\s+", " ", f"{error} {detail}")[:600]


def main() -> None:
    """Print what VERIFY says of equal rows and of a planted difference, with seconds and the process's
    peak memory.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.verify", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows (10 million)")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/bench"), help="where they are kept (out/bench)"
    )
    parser.add_argument("--backend", default="duckdb", help="duckdb or spark")
    arguments = parser.parse_args()
    source = past(arguments.folder, arguments.rows)
    for planted in (False, True):
        if planted:
            plant(int(np.clip(7_654_321, 0, arguments.rows - 1)))
        started_s = time.perf_counter()
        said = verified(source, arguments.backend)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        took_s = time.perf_counter() - started_s
        print(
            f"{'one row changed' if planted else 'as they are':16} {took_s:6.1f} s, peak {peak_mb:,} MB: {said}",
            flush=True,
        )


if __name__ == "__main__":
    main()
