"""The tables of the lakehouse card: numbers in versions of one table go into another; what stands there is
counted by DuckDB in the files that the library names.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from tests.harness.http_server import Answered, Asked
from tests.harness.iceberg_rest import RestCatalog, is_commit, rest_catalog

INTO = ("delta", "delta-upsert", "iceberg", "iceberg-upsert", "iceberg-rest", "iceberg-rest-upsert")
# moments of a commit that the server of a REST catalog sees: the process is dead when its request is done, as
# late as the next run has committed; or it dies when the request is done, before it is answered
LATE, UNANSWERED = "late", "unanswered"
SERVER_STEPS = (LATE, UNANSWERED)
# a next run that does not come to commit is seen elsewhere
_LATEST_S = 60.0
_COMPACT_EVERY_S = 0.3
JOB = "insert-into-o-1"
# versions of the input: a position is a version, a file of it and a row of the file
VERSIONS = 20
KEYS = 500

SCRIPT = """
CREATE TABLE numbers (k BIGINT) WITH ({numbers}, 'monitor-interval' = '100 ms', 'scan.rows-per-second' = '{rate}');
CREATE TABLE o ({columns}) WITH ({out});
INSERT INTO o {query};
"""
APPEND = ("k BIGINT, n BIGINT", "SELECT k, 1 FROM numbers")
# of each key the numbers so far: a lost or doubled row shows in the count
UPSERT = (
    "k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED",
    f"SELECT k % {KEYS}, COUNT(*) FROM numbers GROUP BY k % {KEYS}",
)


@contextmanager
def compacting(table: LakehouseTable) -> Iterator[Counter[str]]:
    """Compact a table again and again until the block ends; count what came of it."""
    done, ended = Counter[str](), threading.Event()

    def compact() -> None:
        while not ended.wait(_COMPACT_EVERY_S):
            if not table.exists():
                continue
            try:
                table.compact()
                done["compactions by a stranger"] += 1
            except Exception as error:  # noqa: BLE001  the libraries' own classes
                done[f"compactions that failed: {type(error).__name__}"] += 1

    thread = threading.Thread(target=compact)
    thread.start()
    try:
        yield done
    finally:
        ended.set()
        thread.join()


def table_of(kind: str, root: Path) -> LakehouseTable:
    """Return the tables of one kind of sink."""
    if kind.startswith("iceberg-rest"):
        return RestTables(kind, root)
    return (IcebergTables if kind.startswith("iceberg") else DeltaTables)(kind, root)


class LakehouseTable:
    """The input and the table ``o`` of one kind of sink, seen from outside."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind = kind
        self.root = root

    @contextmanager
    def served(self) -> Iterator[None]:
        """Run what the tables need, until the block ends."""
        yield

    def kill_at(self, step: str, hit: int, kill: Callable[[], None]) -> None:
        """Have a process killed at the ``hit``-th commit that a server sees."""
        raise NotImplementedError

    def script(self, rate: int) -> str:
        """Return the job's statements."""
        columns, query = UPSERT if self.kind.endswith("upsert") else APPEND
        numbers, out = self.places()
        return SCRIPT.format(rate=rate, columns=columns, query=query, numbers=numbers, out=out)

    def places(self) -> tuple[str, str]:
        """Return the options of the input and of the output."""
        raise NotImplementedError

    def write_input(self, rows: int) -> None:
        """Write the numbers below ``rows``, some in each version."""
        for part in np.array_split(np.arange(rows), VERSIONS):
            self.append("numbers", pa.table({"k": pa.array(part, pa.int64())}))

    def append(self, name: str, rows: pa.Table) -> None:
        """Append rows as another program does."""
        raise NotImplementedError

    def write_as_a_stranger(self, key: int) -> None:
        """Append a row between two versions of the job."""
        self.append("out", pa.table({"k": pa.array([key], pa.int64()), "n": pa.array([1], pa.int64())}))

    def compact(self) -> None:
        """Write the rows of the table anew as another tool does, in one commit; that fails where the job gets
        ahead.
        """
        raise NotImplementedError

    def exists(self) -> bool:
        """Whether the table is made."""
        raise NotImplementedError

    def versions(self) -> int:
        """Return how many versions the table has had."""
        raise NotImplementedError

    def files(self) -> list[str]:
        """Return the data files of the newest version."""
        raise NotImplementedError

    def judged(self, rows: int) -> tuple[int, int, int]:
        """Return how many numbers are lost, how many are there too often, and the rows of strangers."""
        files = self.files()
        counts = dict(
            duckdb.connect()
            .execute("SELECT k, SUM(n)::BIGINT FROM read_parquet($1) WHERE k >= 0 GROUP BY k", [files])
            .fetchall()
        )
        others = (
            duckdb.connect().execute("SELECT COUNT(*) FROM read_parquet($1) WHERE k < 0", [files]).fetchone()
        )
        keys = np.arange(rows) % KEYS if self.kind.endswith("upsert") else np.arange(rows)
        wanted = np.bincount(keys)
        found = np.array([counts.get(key, 0) for key in range(len(wanted))])
        lost, doubled = np.maximum(wanted - found, 0), np.maximum(found - wanted, 0)
        return int(lost.sum()), int(doubled.sum()), int((others or (0,))[0])


class DeltaTables(LakehouseTable):
    """Delta tables in two directories."""

    def places(self) -> tuple[str, str]:
        stream = f"'scan.mode' = 'from-version', 'scan.version' = '0', 'scan.end-version' = '{VERSIONS - 1}'"
        numbers, out = (
            f"'connector' = 'delta', 'table-path' = '{self.root}/{name}'" for name in ("numbers", "out")
        )
        return f"{numbers}, {stream}", out

    def append(self, name: str, rows: pa.Table) -> None:
        import deltalake

        deltalake.write_deltalake(str(self.root / name), rows, mode="append")

    def compact(self) -> None:
        self._table.optimize.compact()

    def exists(self) -> bool:
        return (self.root / "out" / "_delta_log").exists()

    def versions(self) -> int:
        return int(self._table.version())

    def files(self) -> list[str]:
        return list(self._table.file_uris())

    @property
    def _table(self) -> Any:
        import deltalake

        return deltalake.DeltaTable(str(self.root / "out"))


class IcebergTables(LakehouseTable):
    """Iceberg tables of one catalog in SQLite."""

    def places(self) -> tuple[str, str]:
        snapshots = self._load("numbers").snapshots()
        stream = (
            f"'scan.mode' = 'from-snapshot', 'scan.snapshot-id' = '{snapshots[0].snapshot_id}', "
            f"'scan.end-snapshot-id' = '{snapshots[-1].snapshot_id}'"
        )
        catalog = ", ".join(f"'{key}' = '{value}'" for key, value in self._options.items())
        numbers, out = (
            f"'connector' = 'iceberg', 'table-name' = 'db.{name}', {catalog}" for name in ("numbers", "out")
        )
        return f"{numbers}, {stream}", out

    def append(self, name: str, rows: pa.Table) -> None:
        catalog = self._catalog
        catalog.create_namespace_if_not_exists("db")
        table = catalog.create_table_if_not_exists(f"db.{name}", rows.schema)
        # a key of the table may not be NULL
        table.append(rows.cast(pa.schema(table.schema().as_arrow())))

    def compact(self) -> None:
        table = self._load("out")
        # the library would write the same rows over those of a later commit
        table.metadata.properties["commit.retry.num-retries"] = "0"
        table.overwrite(table.scan().to_arrow())

    def exists(self) -> bool:
        return bool(self._catalog.table_exists("db.out"))

    def versions(self) -> int:
        return len(self._load("out").snapshots())

    def files(self) -> list[str]:
        return [task.file.file_path.removeprefix("file://") for task in self._load("out").scan().plan_files()]

    def _load(self, name: str) -> Any:
        return self._catalog.load_table(f"db.{name}")

    @property
    def _options(self) -> dict[str, str]:
        return {
            "catalog-type": "sql",
            "uri": f"sqlite:///{self.root}/catalog.db",
            "warehouse": f"file://{self.root}/warehouse",
        }

    @property
    def _catalog(self) -> Any:
        from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog

        return opened_catalog(self._options)


class RestTables(IcebergTables):
    """Iceberg tables of a REST catalog that this process serves."""

    _running: RestCatalog

    @contextmanager
    def served(self) -> Iterator[None]:
        with rest_catalog(self.root / "rest") as self._running:
            yield

    def kill_at(self, step: str, hit: int, kill: Callable[[], None]) -> None:
        commits, died, followed = count(1), threading.Event(), threading.Event()

        def before(asked: Asked) -> None:
            if not is_commit(asked) or died.is_set() or step != LATE or next(commits) != hit:
                return
            died.set()
            kill()
            followed.wait(_LATEST_S)

        def after(asked: Asked, answer: Answered) -> Answered:
            if not is_commit(asked):
                return answer
            if step == UNANSWERED and not died.is_set() and next(commits) == hit:
                died.set()
                kill()
            elif died.is_set():
                followed.set()
            return answer

        self._running.before, self._running.after = before, after

    @property
    def _options(self) -> dict[str, str]:
        return self._running.options
