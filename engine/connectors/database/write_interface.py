"""What sinks ask of a database besides the interface of reading: transactions, and rows put in, replaced
and deleted in bulk.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from penstock.engine.connectors.database.database import Database


class WritableDatabase(Database, Protocol):
    """A connection that may write. Rows come as batches whose columns bear the names of the table's."""

    bytes_type: str

    def transaction(self) -> AbstractContextManager[None]:
        """Everything inside happens or nothing does; the database's errors come out as ours."""

    def run(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, its placeholders ``?``, and return its rows."""

    def locked(self, text: str) -> str:
        """Return a SELECT that keeps others from changing what it finds until the transaction ends."""

    def insert(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows."""

    def replace(self, table: str, keys: Sequence[str], rows: pa.RecordBatch) -> None:
        """Add rows, each in place of the one of its key, if there is one."""

    def delete(self, table: str, keys: pa.RecordBatch) -> None:
        """Delete the rows of these keys."""


def insert_text(table: str, names: Sequence[str], source: str) -> str:
    """Return INSERT of quoted names from what follows the columns."""
    return f"INSERT INTO {table} ({', '.join(names)}) {source}"


def conflict_text(names: Sequence[str], keys: Sequence[str]) -> str:
    """Return what makes an INSERT replace the row of a key."""
    others = [name for name in names if name not in keys]
    action = (
        f"UPDATE SET {', '.join(f'{name} = EXCLUDED.{name}' for name in others)}" if others else "NOTHING"
    )
    return f" ON CONFLICT ({', '.join(keys)}) DO {action}"
