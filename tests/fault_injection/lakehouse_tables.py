"""The tables of the lakehouse card: numbers in versions of one table go into another; what stands there is
counted by DuckDB in the files that the library names.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

INTO = ("delta", "delta-upsert")
JOB = "insert-into-o-1"
# versions of the input: a position is a version, a file of it and a row of the file
VERSIONS = 20
KEYS = 500

SCRIPT = """
CREATE TABLE numbers (k BIGINT) WITH ('connector' = 'delta', 'table-path' = '{root}/numbers', 'scan.mode' = 'from-version',
  'scan.version' = '0', 'scan.end-version' = '{last}', 'monitor-interval' = '100 ms', 'scan.rows-per-second' = '{rate}');
CREATE TABLE o ({columns}) WITH ('connector' = 'delta', 'table-path' = '{root}/out');
INSERT INTO o {query};
"""
APPEND = ("k BIGINT, n BIGINT", "SELECT k, 1 FROM numbers")
# of each key the numbers so far: a lost or doubled row shows in the count
UPSERT = (
    "k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED",
    f"SELECT k % {KEYS}, COUNT(*) FROM numbers GROUP BY k % {KEYS}",
)


class LakehouseTable:
    """The input and the table ``o`` of one kind of sink, seen from outside."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind = kind
        self._root = root
        self._out = root / "out"

    def script(self, rate: int) -> str:
        """Return the job's statements."""
        columns, query = UPSERT if self.kind.endswith("upsert") else APPEND
        return SCRIPT.format(root=self._root, last=VERSIONS - 1, rate=rate, columns=columns, query=query)

    def write_input(self, rows: int) -> None:
        """Write the numbers below ``rows``, some in each version."""
        import deltalake

        for part in np.array_split(np.arange(rows), VERSIONS):
            table = pa.table({"k": pa.array(part, pa.int64())})
            deltalake.write_deltalake(str(self._root / "numbers"), table, mode="append")

    def exists(self) -> bool:
        """Whether the table is made."""
        return (self._out / "_delta_log").exists()

    def write_as_a_stranger(self, key: int) -> None:
        """Append a row as another program does, between two versions of the job."""
        import deltalake

        row = pa.table({"k": pa.array([key], pa.int64()), "n": pa.array([1], pa.int64())})
        deltalake.write_deltalake(str(self._out), row, mode="append")

    def judged(self, rows: int) -> tuple[int, int, int]:
        """Return how many numbers are lost, how many are there too often, and the rows of strangers."""
        files = self._files()
        counts = dict(
            duckdb.execute(
                "SELECT k, SUM(n)::BIGINT FROM read_parquet($1) WHERE k >= 0 GROUP BY k", [files]
            ).fetchall()
        )
        others = duckdb.execute("SELECT COUNT(*) FROM read_parquet($1) WHERE k < 0", [files]).fetchone()
        keys = np.arange(rows) % KEYS if self.kind.endswith("upsert") else np.arange(rows)
        wanted = np.bincount(keys)
        found = np.array([counts.get(key, 0) for key in range(len(wanted))])
        lost, doubled = np.maximum(wanted - found, 0), np.maximum(found - wanted, 0)
        return int(lost.sum()), int(doubled.sum()), int((others or (0,))[0])

    def versions(self) -> int:
        """Return the table's version."""
        import deltalake

        return int(deltalake.DeltaTable(str(self._out)).version())

    def _files(self) -> list[str]:
        import deltalake

        return list(deltalake.DeltaTable(str(self._out)).file_uris())
