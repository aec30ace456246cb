"""The interfaces of databases that are read and written, and the errors of all of them. Their SQL text is
built here: a SELECT with pushed conditions, an INSERT and its ON CONFLICT clause.
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

# as the readers of files
BATCH_ROWS = 32_768
PLACEHOLDER = "\0"
"""Where a value is in the text of ``change``: no name has this character, as one may have a question mark."""


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
    """A SELECT of a table's columns, with all conditions as conjuncts. ``table`` is the database's own name,
    with or without a schema.
    """

    table: str
    fields: tuple[Field, ...]
    conditions: tuple[Condition, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The schema of its rows."""
        return Schema(self.fields).to_arrow()


class Database(Protocol):
    """One connection to a database. Several threads may use it, one at a time."""

    def columns(self, table: str) -> dict[str, str]:
        """Return the columns of a table in order, each with the name of its type; empty when there is no such
        table.
        """

    def tables(self) -> list[str]:
        """Return the names of all tables."""

    def text(self, select: Select) -> str:
        """Return the SQL that is sent, with the values in place of the placeholders."""

    def rows(self, select: Select) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one consistent state of the table."""

    def look_up(self, select: Select, keys: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows whose key columns equal a row of ``keys``. Keys are distinct and have no NULL."""

    def pushes(self, kind: DataType, operator: str) -> bool:
        """Whether the database's comparison of such columns passes the same rows as ours, or more."""

    def close(self) -> None:
        """Close the connection; a statement that runs on it ends with an error."""


def failed(
    what: str,
    error: BaseException,
    redact: Callable[[str], str],
    *,
    state: str,
    sqlstate: str = "58000",
    code: str = "DAT-4705",
    transient: bool = False,
    hint: str | None = None,
) -> PenstockError:
    """Return a database error as a PenstockError: the failed action, and the database's message.

    The third argument redacts secrets from the message. ``state`` is the error state as the database names
    it. ``transient``: the next attempt may succeed.
    """
    # drivers write messages of several lines
    reason = redact(" ".join(str(error).split()))[:300] or type(error).__name__
    return PenstockError(
        code,
        what,
        detail=f"{state}: {reason}",
        hint=hint,
        kind=Kind.EXTERNAL,
        retriable=transient,
        sqlstate=sqlstate,
    )


ITEM = Callable[[Field], str]


def quoted(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """Return a table's name with its schema, if it has one; each part is in double quotes."""
    return ".".join(map(quoted, name.split(".")))


def select_text(select: Select, placeholder: str, item: ITEM) -> tuple[str, list[object]]:
    """Return a SELECT with a placeholder per value, and the values. A SELECT of no columns returns one
    constant per row.
    """
    # SELECT 1 FROM t: as many rows, no columns
    items = ", ".join(map(item, select.fields)) or "1"
    values: list[object] = []
    tests = []
    for condition in select.conditions:
        tests.append(_test(condition, placeholder))
        # in the order of their placeholders
        values += condition.values
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    return f"SELECT {items} FROM {quoted_table(select.table)}{where}", values


def _test(condition: Condition, placeholder: str) -> str:
    column = quoted(condition.column.name)
    if condition.operator == "IN":
        return f"{column} IN ({', '.join([placeholder] * len(condition.values))})"
    return f"{column} {condition.operator}{f' {placeholder}' * len(condition.values)}"


def shown(text: str, values: list[object], placeholder: str) -> str:
    """Return a text for people, with the values in place of the placeholders."""
    # one piece more than there are values
    pieces = text.split(placeholder)
    words = [_shown(value) for value in values]
    return "".join(piece + word for piece, word in zip(pieces, [*words, ""], strict=True))


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return str(value).upper()
    return "'" + str(value).replace("'", "''") + "'"


class WritableDatabase(Database, Protocol):
    """A connection that may write. Batches use the column names of the table."""

    bytes_type: str

    def transaction(self) -> AbstractContextManager[None]:
        """A transaction around the block: all of it is committed, or none. Database errors are raised as
        PenstockErrors.
        """

    def run(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement with placeholders ``?`` and return its rows."""

    def change(self, text: str, values: Sequence[Any]) -> int:
        """Run an UPDATE or DELETE with a ``PLACEHOLDER`` for each value; return how many rows it changed."""

    def locked(self, text: str) -> str:
        """Return a SELECT that locks the rows it returns until the transaction ends."""

    def insert(self, table: str, rows: pa.RecordBatch) -> None:
        """Insert rows."""

    def replace(self, table: str, keys: Sequence[str], rows: pa.RecordBatch) -> None:
        """Upsert rows: each replaces the row of the same key, if there is one."""

    def delete(self, table: str, keys: pa.RecordBatch) -> None:
        """Delete the rows of these keys."""


def insert_text(table: str, names: Sequence[str], source: str) -> str:
    """Return an INSERT of quoted names; its last part is the source of the rows."""
    return f"INSERT INTO {table} ({', '.join(names)}) {source}"


def conflict_text(names: Sequence[str], keys: Sequence[str]) -> str:
    """Return the ON CONFLICT clause by which an INSERT replaces the row of the same key."""
    # a table of nothing but its key has nothing to update
    others = [name for name in names if name not in keys]
    action = (
        f"UPDATE SET {', '.join(f'{name} = EXCLUDED.{name}' for name in others)}" if others else "NOTHING"
    )
    return f" ON CONFLICT ({', '.join(keys)}) DO {action}"
