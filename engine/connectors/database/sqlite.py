"""SQLite files, through the driver of Python's standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import DataType, Date, Decimal, String, is_integer, is_timestamp
from penstock.engine.connectors.database.database import (
    BATCH_ROWS,
    PLACEHOLDER,
    Select,
    conflict_text,
    failed,
    insert_text,
    quoted,
    quoted_table,
    select_text,
    shown,
)
from penstock.engine.connectors.database.row_conversion import rows_of

# SQLite itself waits so long for a locked file
BUSY_S = 30.0
# what is wrong with a row, as other databases name it
_SQLSTATES = {
    sqlite3.SQLITE_CONSTRAINT: "23000",
    sqlite3.SQLITE_MISMATCH: "22000",
    sqlite3.SQLITE_TOOBIG: "22001",
}
_MAX_VALUES = 30_000  # SQLite takes 32,766


class SqliteFile:
    """One connection to a file. SQLite stores any value in any column, so the column's declared type here
    decides how a value is read.
    """

    bytes_type = "BLOB"

    def __init__(self, path: str, *, writes: bool = False) -> None:
        """``writes``: open for writing, and create the file if there is none. DAT-4701 when it cannot be
        opened.
        """
        self.path = path
        if not writes and not Path(path).is_file():
            raise PenstockError(
                "DAT-4701",
                f"there is no SQLite file {path}",
                hint="give the path of the file",
                kind=Kind.EXTERNAL,
                sqlstate="08001",
            )
        # a read-only connection must not create the file
        mode = "rwc" if writes else "ro"
        try:
            uri = f"file:{quote(str(Path(path).absolute()))}?mode={mode}"
            self.connection = sqlite3.connect(
                # isolation_level None: transactions begin only where we say BEGIN
                uri,
                uri=True,
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            # connect() opens nothing: this read shows whether the file is a database
            self.connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        except sqlite3.Error as error:
            raise _failed(f"the SQLite file {path} cannot be opened", error, "DAT-4701") from error

    def columns(self, table: str) -> dict[str, str]:
        rows = self._ask("SELECT name, type FROM pragma_table_info(?)", [table])
        return dict(rows)

    def tables(self) -> list[str]:
        return [
            name
            for (name,) in self._ask(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name", []
            )
        ]

    def text(self, select: Select) -> str:
        return shown(*select_text(select, "?", _item), "?")

    def rows(self, select: Select) -> Iterator[pa.RecordBatch]:
        text, values = select_text(select, "?", _item)
        try:
            cursor = self.connection.execute(text, values)
            while rows := cursor.fetchmany(BATCH_ROWS):
                yield rows_of(rows, select.fields, select.table)
        except sqlite3.Error as error:
            raise self.failure(f"the rows of {select.table} cannot be read", error) from error

    def look_up(self, select: Select, keys: pa.RecordBatch) -> pa.RecordBatch:
        # as many keys a statement as its limit of values allows
        step = max(1, _MAX_VALUES // keys.num_columns)
        rows: list[tuple[Any, ...]] = []
        for start in range(0, keys.num_rows, step):
            rows += self._select_matching(select, keys.slice(start, step))
        return rows_of(rows, select.fields, select.table)

    def _select_matching(self, select: Select, keys: pa.RecordBatch) -> list[tuple[Any, ...]]:
        text, values = select_text(select, "?", _item)
        names = ", ".join(map(quoted, keys.schema.names))
        # WHERE (k1, k2) IN (VALUES (?, ?), (?, ?))
        row = f"({', '.join('?' * keys.num_columns)})"
        text += (
            f"{' AND' if select.conditions else ' WHERE'} ({names}) IN (VALUES "
            f"{', '.join([row] * keys.num_rows)})"
        )
        columns = [parameters(column) for column in keys.columns]
        return self._ask(text, [*values, *(value for one in zip(*columns, strict=True) for value in one)])

    def pushes(self, kind: DataType, operator: str) -> bool:
        return (
            # Only these compare as ours do: dates, times and decimals are texts here.
            operator.startswith("IS ")
            or is_integer(kind)
            or (isinstance(kind, String) and operator in ("=", "IN"))
        )

    def close(self) -> None:
        self.connection.close()

    def failure(self, what: str, error: sqlite3.Error) -> PenstockError:
        """Return a driver error as a PenstockError; a locked file is transient."""
        return _failed(what, error, "DAT-4705")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        # takes the write lock now rather than at the first write
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.rollback()
            raise

    def run(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._ask(text, list(values))

    def change(self, text: str, values: Sequence[Any]) -> int:
        try:
            return self.connection.execute(text.replace(PLACEHOLDER, "?"), list(values)).rowcount
        except sqlite3.Error as error:
            raise self.failure(f"the SQLite file {self.path} does not take the change", error) from error

    def locked(self, text: str) -> str:
        return text

    def insert(self, table: str, rows: pa.RecordBatch) -> None:
        # executemany reads an iterator: rows are made one at a time, in the driver's loop
        self._many(_insert(table, rows), rows)

    def replace(self, table: str, keys: Sequence[str], rows: pa.RecordBatch) -> None:
        self._many(
            _insert(table, rows)
            + conflict_text(list(map(quoted, rows.schema.names)), list(map(quoted, keys))),
            rows,
        )

    def delete(self, table: str, keys: pa.RecordBatch) -> None:
        self._many(
            f"DELETE FROM {quoted_table(table)} WHERE "
            f"{' AND '.join(f'{quoted(name)} = ?' for name in keys.schema.names)}",
            keys,
        )

    def _many(self, text: str, rows: pa.RecordBatch) -> None:
        try:
            self.connection.executemany(text, zip(*map(parameters, rows.columns), strict=True))
        except sqlite3.Error as error:
            raise self.failure(f"the SQLite file {self.path} takes no rows", error) from error

    def _ask(self, text: str, values: list[Any]) -> list[tuple[Any, ...]]:
        try:
            return self.connection.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise self.failure(f"the SQLite file {self.path} does not answer", error) from error


def _failed(what: str, error: sqlite3.Error, code: str) -> PenstockError:
    number = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # none when it is the driver's own
    # the low byte is the primary code; extended codes say more in the others
    transient = number & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    state = getattr(error, "sqlite_errorname", type(error).__name__)
    return failed(
        what,
        error,
        str,
        state=state,
        sqlstate="55P03" if transient else _SQLSTATES.get(number & 0xFF, "58000"),
        code=code,
        transient=transient,
        hint="correct 'path': it is the file of the database" if code == "DAT-4701" else None,
    )


def _insert(table: str, rows: pa.RecordBatch) -> str:
    names = list(map(quoted, rows.schema.names))
    return insert_text(quoted_table(table), names, f"VALUES ({', '.join('?' * len(names))})")


def _item(field: Field) -> str:
    textual = is_timestamp(field.type) or isinstance(field.type, Date | Decimal | String)
    return f"CAST({quoted(field.name)} AS TEXT)" if textual else quoted(field.name)


def parameters(column: pa.Array) -> list[Any]:
    """Return values as SQLite stores them: dates, times and decimals as texts, booleans as 0 and 1."""
    kind = column.type
    # an instant is written at UTC with a Z
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return [
            None if text is None else f"{text}Z"
            for text in column.cast(pa.timestamp("us")).cast(pa.string()).to_pylist()
        ]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_decimal(kind):
        return column.cast(pa.string()).to_pylist()
    return column.cast(pa.int8()).to_pylist() if pa.types.is_boolean(kind) else column.to_pylist()
