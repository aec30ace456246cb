"""The interface of databases: tell a table's columns, give rows of a SELECT in batches, give the rows of
some keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

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


ITEM = Callable[[Field], str]


def quoted(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """Return a table's name, perhaps behind its schema's, each part in double quotes."""
    return ".".join(map(quoted, name.split(".")))


def select_text(select: Select, placeholder: str, item: ITEM) -> tuple[str, list[object]]:
    """Return a SELECT with a placeholder per value, and the values. A SELECT of no columns gives one
    constant a row.
    """
    items = ", ".join(map(item, select.fields)) or "1"
    values: list[object] = []
    tests = []
    for condition in select.conditions:
        tests.append(_test(condition, placeholder))
        values += condition.values
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return f"SELECT {items} FROM {quoted_table(select.table)}{where}", values


def _test(condition: Condition, placeholder: str) -> str:
    column = quoted(condition.column.name)
    if condition.operator == "IN":
        return f"{column} IN ({', '.join([placeholder] * len(condition.values))})"
    return f"{column} {condition.operator}{f' {placeholder}' * len(condition.values)}"


def shown(text: str, values: list[object], placeholder: str) -> str:
    """Return a text with its values in their places, for people."""
    pieces = text.split(placeholder)
    words = [_shown(value) for value in values]
    return "".join(piece + word for piece, word in zip(pieces, [*words, ""], strict=True))


def _shown(value: object) -> str:
    if isinstance(value, bool | int | float):
        return str(value).upper()
    return "'" + str(value).replace("'", "''") + "'"


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
