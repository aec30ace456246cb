"""The interface of databases: tell a table's columns, give rows of a SELECT in batches, give the rows of
some keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import DataType
from penstock.planner.expressions.nodes import LiteralValue

BATCH_ROWS = 32_768


@dataclass(frozen=True)
class Condition:
    """``column operator values``: one of ``= <> < <= > >=`` with one value, ``IN`` with some, ``IS NULL``
    and ``IS NOT NULL`` with none.
    """

    column: Field
    operator: str
    values: tuple[LiteralValue, ...] = ()


@dataclass(frozen=True)
class Select:
    """Columns of a table, of the rows for which all conditions hold. ``table`` is the name as the database
    has it, perhaps ``schema.table``.
    """

    table: str
    fields: tuple[Field, ...]
    conditions: tuple[Condition, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        return Schema(self.fields).to_arrow()


class Database(Protocol):
    """One connection to a database; used by one thread at a time, but not always the same."""

    def columns(self, table: str) -> dict[str, str]:
        """Return the columns of a table in order, each with the name of its type; none when there is no
        such table.
        """

    def tables(self) -> list[str]:
        """Return the names of the tables there are."""

    def text(self, select: Select) -> str:
        """Return the SQL that is sent, values in their places."""

    def rows(self, select: Select) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one state of the table."""

    def look_up(self, select: Select, keys: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows whose columns of the keys' names equal some row of ``keys``, none of which is
        NULL; distinct keys.
        """

    def pushes(self, kind: DataType, operator: str) -> bool:
        """Whether a comparison of a column of this type is the same there as here, or keeps more rows."""

    def close(self) -> None:
        """Let go of the connection; what runs on it ends with an error."""


def failed(
    what: str,
    error: BaseException,
    told: Callable[[str], str],
    *,
    state: str,
    sqlstate: str = "58000",
    code: str = "DAT-4705",
    transient: bool = False,
) -> PenstockError:
    """Return an error of a database as ours: what was done, and what the database says.

    ``told`` takes out what nobody should read, ``state`` is what the database calls the error, ``transient``:
    it may be gone at the next try.
    """
    said = told(" ".join(str(error).split()))[:300] or type(error).__name__
    return PenstockError(
        code, what, detail=f"{state}: {said}", kind=Kind.EXTERNAL, retriable=transient, sqlstate=sqlstate
    )
