"""What tests of database files share: a file of each kind that runs in this process."""

from __future__ import annotations

from pathlib import Path

from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, STRING
from penstock.engine.connectors.database.connect import opened_for_writing
from penstock.engine.connectors.database.database import Database, Select, WritableDatabase

SCHEMA = Schema((Field("k", BIGINT), Field("v", STRING)))


def table(path: Path, kind: str, *, name: str = "out", key: bool = True) -> CatalogTable:
    options = {"connector": kind, "table-name": name, "path": str(path)}
    return CatalogTable(name, SCHEMA, SCHEMA, options, primary_key=("k",) if key else ())


def writable(path: Path, kind: str, *, key: bool = True) -> WritableDatabase:
    """Return a connection to a new file with a table ``out`` of a key and a text."""
    database = opened_for_writing(table(path, kind))
    database.run(f"CREATE TABLE out (k BIGINT{' PRIMARY KEY' if key else ''}, v VARCHAR)")
    return database


def rows_in(database: Database) -> list[tuple[int | None, str | None]]:
    """Return the rows of the table, sorted by key."""
    batches = database.rows(Select("out", SCHEMA.fields))
    rows = [(row["k"], row["v"]) for batch in batches for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row[0] is None, row[0] or 0))
