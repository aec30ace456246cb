"""The target over a user's sink: its forms, its optional methods, what it must return; and exactly once when
its outcome is unknown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.catalog.python_connectors import ProgramConnectors
from penstock.catalog.types import BIGINT
from penstock.client.session import Session
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.operator import Services
from penstock.engine.connectors.python.lookup import PythonConnectors
from penstock.engine.connectors.python.sink import PythonTarget
from penstock.engine.deploy.worker.python_modules import import_by_name
from tests.harness.reading import table_of

WRITER = EpochWriter("owner", "op", 0)


class Store:
    """Rows and epochs in one SQLite file. With option ``fails`` the first commit of each epoch raises after it
    is done.
    """

    def __init__(self, options: dict[str, str], schema: pa.Schema) -> None:
        self.names = schema.names
        self.fails = "fails" in options
        self.forgets = "forgets" in options
        self.database = sqlite3.connect(options["path"], timeout=30, isolation_level=None)
        self.database.execute("PRAGMA synchronous = OFF")
        self.database.execute("CREATE TABLE IF NOT EXISTS stored (op, n, c)")
        self.database.execute("CREATE TABLE IF NOT EXISTS epochs (writer PRIMARY KEY, epoch)")

    def last_committed(self, writer: str) -> int:
        found = self.database.execute("SELECT epoch FROM epochs WHERE writer = ?", [writer]).fetchone()
        return 0 if found is None or self.forgets else found[0]

    def commit(self, writer: str, epoch: int, batches: Iterable[pa.RecordBatch]) -> None:
        self.database.execute("BEGIN IMMEDIATE")
        known = [writer, epoch]
        again = self.database.execute("SELECT 1 FROM epochs WHERE writer = ? AND epoch = ?", known).fetchone()
        for batch in batches:
            columns = [column.to_pylist() for column in batch.columns]
            while len(columns) < 3:
                columns.insert(0, [None] * batch.num_rows)
            self.database.executemany("INSERT INTO stored VALUES (?, ?, ?)", zip(*columns, strict=True))
        self.database.execute("INSERT OR REPLACE INTO epochs VALUES (?, ?)", [writer, epoch])
        self.database.execute("COMMIT")
        if self.fails and not again:
            raise ConnectionResetError("the answer was lost")

    def close(self) -> None:
        self.database.close()


store = penstock.sink(Store)


def target(options: dict[str, str], sink: Any = store) -> PythonTarget:
    program = ProgramConnectors()
    program.register(sink, "store")
    table = table_of({"n": BIGINT}, {"connector": "python", "name": "store", **options})
    services = Services(PythonConnectors(program, list, import_by_name))
    return PythonTarget(SimpleNamespace(table=table, schema=table.schema, services=services))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "form"),
    [
        ({}, StagedForm.INSERTS),
        ({"changelog.mode": "upsert"}, StagedForm.UPSERTS),
        ({"changelog.mode": "retract"}, StagedForm.CHANGES),
    ],
)
def test_the_form_is_that_of_the_table(tmp_path: Path, mode: dict[str, str], form: StagedForm) -> None:
    made = target({"option.path": str(tmp_path / "s"), **mode})
    assert made.form is form
    # the optional methods are not there
    made.fence([WRITER])
    made.retire(WRITER)
    assert made.last_committed(WRITER) == 0
    made.commit(WRITER, 3, [])
    assert made.last_committed(WRITER) == 3
    made.close()


def test_an_epoch_is_a_number() -> None:
    @penstock.sink
    class Wrong:
        def __init__(self, options: object, schema: object) -> None:
            pass

        def last_committed(self, writer: str) -> None:
            return None

        def commit(self, writer: str, epoch: int, batches: object) -> None:
            raise KeyError("x")

    made = target({}, Wrong)
    with pytest.raises(PenstockError, match="DAT-5604"):
        made.last_committed(WRITER)
    with pytest.raises(PenstockError, match=r"Python sink Wrong: commit failed with KeyError: 'x' \(line "):
        made.commit(WRITER, 1, [])


def run(path: Path, query: str, columns: str, options: str = "") -> list[tuple[Any, ...]]:
    settings = {
        "execution.runtime-mode": "streaming",
        "table.dml-sync": "true",
        "parallelism.default": "2",
        "execution.checkpointing.interval": "20 ms",
        "execution.batch.max-rows": "50",
    }
    session = Session(settings)
    try:
        session.create_connector(store, "store")
        for statement in (
            "CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '2000', "
            "'splits' = '2', 'fields.n.kind' = 'sequence', 'scan.rows-per-second' = '20000')",
            f"CREATE TABLE out ({columns}) WITH ('connector' = 'python', 'name' = 'store', "
            f"'option.path' = '{path}'{options})",
            f"INSERT INTO out {query}",
        ):
            session.execute(statement)
    finally:
        session.close()
    with sqlite3.connect(path) as database:
        return database.execute("SELECT op, n, c FROM stored").fetchall()


@pytest.mark.parametrize("options", ["", ", 'option.fails' = '1'"])
def test_rows_are_there_once_although_answers_are_lost(tmp_path: Path, options: str) -> None:
    rows = run(tmp_path / "s", "SELECT n FROM numbers", "n BIGINT", options)
    assert sorted(row[2] for row in rows) == list(range(2000))


def test_a_sink_that_forgets_its_epochs_has_rows_twice(tmp_path: Path) -> None:
    """The negative control: what keeps rows from being doubled is ``last_committed``."""
    rows = run(
        tmp_path / "s", "SELECT n FROM numbers", "n BIGINT", ", 'option.fails' = '1', 'option.forgets' = '1'"
    )
    assert len(rows) > 2000


def test_changes_by_key(tmp_path: Path) -> None:
    rows = run(
        tmp_path / "s",
        "SELECT n % 5, COUNT(*) FROM numbers GROUP BY n % 5",
        "n BIGINT, c BIGINT, PRIMARY KEY (n) NOT ENFORCED",
        ", 'changelog.mode' = 'upsert'",
    )
    last = {n: count for deleted, n, count in rows if not deleted}
    assert last == dict.fromkeys(range(5), 400)
