"""A table whose rows one commit replaces, and how many rows a statement has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError

Version = int | str
"""What a table has at a moment; another commit makes another version."""
RowReader = Callable[[], Iterator[pa.RecordBatch]]
"""Reads all rows anew by each call."""


@dataclass(frozen=True)
class RowCounts:
    """How many rows a statement has changed."""

    updated: int = 0
    deleted: int = 0
    inserted: int = 0

    @property
    def total(self) -> int:
        """The number that clients show."""
        return self.updated + self.deleted + self.inserted

    def __str__(self) -> str:
        named = (("updated", self.updated), ("deleted", self.deleted), ("inserted", self.inserted))
        parts = [(what, count) for what, count in named if count]
        if not parts:
            return "no row changed"
        first, count = parts[0]
        texts = [f"{count:,} row{'s' if count != 1 else ''} {first}"]
        return ", ".join(texts + [f"{count:,} {what}" for what, count in parts[1:]])


class ReplacedTable(Protocol):
    """A lakehouse table whose rows one commit replaces."""

    def version(self, *, rewrites: bool) -> Version:
        """Return what the table has now. ``rewrites``: the statement reads rows to write them again, so
        columns that the declaration leaves out are refused.
        """

    def overwrite(
        self, statement: str, rows: RowReader, partitions: pa.Table | None, read: Version | None = None
    ) -> None:
        """Replace all rows, or those of some partitions, a row of values for each. ``statement`` is a name
        that no other has: a commit whose outcome was not known is done once. ``read``: the version that the
        rows were computed from; DAT-4618 when the table has another one by now.
        """

    def close(self) -> None:
        """Close what is open."""


def other_version(where: str) -> PenstockError:
    """Return the error of rows that were computed from a version that is not the newest one any more."""
    return PenstockError(
        "DAT-4618",
        f"another writer has changed {where} since this statement began to read it: nothing is replaced",
        hint="run the statement again: it reads the newest rows",
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate="40001",
    )
