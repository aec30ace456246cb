"""DuckDB files. One process at a time has a file open; within it all connections share it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import DataType, Double, Float, String
from penstock.engine.api.row_pieces import as_one, batches_of
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
from penstock.engine.formats.decoded_batch import empty_columns

_KEYS = "penstock_keys"
_ONE_AT_A_TIME = threading.Lock()  # two that open a file at once may each make it a database of their own
# two seconds in all, for a close that takes long
_CONNECTS, _CONNECT_PAUSE_S = 100, 0.02


class DuckDbFile:
    """One connection to a file. It is opened for writing wherever possible, because all connections of a
    process must have the same mode.
    """

    bytes_type = "BLOB"

    def __init__(self, path: str, *, writes: bool = False) -> None:
        """``writes``: create the file if there is none. BND-5011 without DuckDB, DAT-4701 when it cannot be
        opened.
        """
        try:
            import duckdb
        except ImportError as error:
            raise PenstockError(
                "BND-5011", "DuckDB is not installed", hint="pip install duckdb", kind=Kind.EXTERNAL
            ) from error
        self.path = path
        self._errors = duckdb.Error
        # DuckDB would create the file
        if not writes and not Path(path).is_file():
            raise PenstockError(
                "DAT-4701",
                f"there is no DuckDB file {path}",
                hint="give the path of the file",
                kind=Kind.EXTERNAL,
                sqlstate="08001",
            )
        try:
            # DuckDB refuses a second connection of a process with another mode
            self.connection: Any = _connected(path, read_only=not (writes or os.access(path, os.W_OK)))
            self.connection.execute("SET TimeZone = 'UTC'")
        except duckdb.Error as error:
            raise failed(
                f"the DuckDB file {path} cannot be opened",
                error,
                str,
                state=type(error).__name__,
                code="DAT-4701",
                # another process has the file open: it may close it
                transient="lock" in str(error),
                hint="correct 'path': it is the file of the database, and no other program writes to it",
            ) from error

    def columns(self, table: str) -> dict[str, str]:
        # "main.t" or "t"
        schema, _, name = table.rpartition(".")
        text = (
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = $1 AND schema_name "
            "= $2 AND database_name = current_database()"
        )
        return dict(self._ask(f"{text} ORDER BY column_index", [name, schema or "main"]).fetchall())

    def tables(self) -> list[str]:
        text = (
            "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database() "
            "ORDER BY 1"
        )
        return [name for (name,) in self._ask(text, []).fetchall()]

    def text(self, select: Select) -> str:
        return shown(*select_text(select, "?", _item), "?")

    def rows(self, select: Select) -> Iterator[pa.RecordBatch]:
        text, values = select_text(select, "?", _item)
        try:
            for batch in self.connection.sql(text, params=values).to_arrow_reader(BATCH_ROWS):
                if batch.num_rows:
                    yield exact(batch, select)
        except self._errors as error:
            raise self.failure(f"the rows of {select.table} cannot be read", error) from error

    def look_up(self, select: Select, keys: pa.RecordBatch) -> pa.RecordBatch:
        text, values = select_text(select, "?", _item)
        names = ", ".join(map(quoted, keys.schema.names))
        # keys as an Arrow table, without a copy
        self.connection.register(_KEYS, keys)
        try:
            # WHERE ROW(k1, k2) IN (SELECT ROW(k1, k2) FROM keys); a single key needs no ROW
            row = "" if keys.num_columns == 1 else "ROW"
            text += (
                f"{' AND' if select.conditions else ' WHERE'} {row}({names}) IN (SELECT {row}({names}) "
                f"FROM {_KEYS})"
            )
            table = self.connection.sql(text, params=values).to_arrow_table()
        except self._errors as error:
            raise self.failure(f"{select.table} cannot be looked up", error) from error
        finally:
            self.connection.unregister(_KEYS)
        return as_one([exact(batch, select) for batch in batches_of(table)], select.schema)

    def pushes(self, kind: DataType, operator: str) -> bool:
        # floats are not compared there, and texts only for equality and NULL
        return not isinstance(kind, Float | Double) and (
            not isinstance(kind, String) or operator in ("=", "IN", "IS NULL", "IS NOT NULL")
        )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        # DuckDB reports a conflict at the statement or at COMMIT; both roll back
        self.run("BEGIN")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            with suppress(self._errors):  # a failed COMMIT has ended it already
                self.connection.rollback()
            raise

    def run(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._ask(text, list(values)).fetchall()]

    def change(self, text: str, values: Sequence[Any]) -> int:
        return int(self.run(text.replace(PLACEHOLDER, "?"), values)[0][0])

    def locked(self, text: str) -> str:
        return text

    def insert(self, table: str, rows: pa.RecordBatch) -> None:
        self._put(table, rows, "")

    def replace(self, table: str, keys: Sequence[str], rows: pa.RecordBatch) -> None:
        self._put(table, rows, conflict_text(list(map(quoted, rows.schema.names)), list(map(quoted, keys))))

    def _put(self, table: str, rows: pa.RecordBatch, conflict: str) -> None:
        names = list(map(quoted, rows.schema.names))
        self._over(
            rows,
            insert_text(quoted_table(table), names, f"SELECT {', '.join(names)} FROM {_KEYS}") + conflict,
        )

    def delete(self, table: str, keys: pa.RecordBatch) -> None:
        # DELETE .. USING joins the table with our keys
        same = " AND ".join(f"t.{quoted(name)} = k.{quoted(name)}" for name in keys.schema.names)
        self._over(keys, f"DELETE FROM {quoted_table(table)} AS t USING {_KEYS} AS k WHERE {same}")

    def _over(self, rows: pa.RecordBatch, text: str) -> None:
        """Run a statement over an Arrow table of ours. After a failure the rows stay registered until the
        next call, because an aborted transaction accepts no more statements.
        """
        self.connection.register(_KEYS, rows)
        self._ask(text, [])
        self.connection.unregister(_KEYS)

    def close(self) -> None:
        with _ONE_AT_A_TIME:
            self.connection.close()

    def failure(self, what: str, error: Exception) -> PenstockError:
        """Return a driver error as a PenstockError. A write conflict between two transactions is transient:
        one of them may retry.
        """
        return failed(what, error, str, state=type(error).__name__, transient="onflict" in str(error))

    def _ask(self, text: str, values: list[Any]) -> Any:
        try:
            return self.connection.execute(text, values)
        except self._errors as error:
            raise self.failure(f"the DuckDB file {self.path} does not answer", error) from error


def _connected(path: str, *, read_only: bool) -> Any:
    """Return a connection. While another thread closes the last one, the file is neither open nor free, so
    opening is retried.
    """
    import duckdb

    pause = threading.Event()
    for _ in range(_CONNECTS - 1):
        try:
            with _ONE_AT_A_TIME:
                return duckdb.connect(path, read_only=read_only)
        except duckdb.Error as error:
            # the file is being closed by another thread: try again
            if "already attached" not in str(error):
                raise
            pause.wait(_CONNECT_PAUSE_S)
    with _ONE_AT_A_TIME:
        return duckdb.connect(path, read_only=read_only)


def _item(field: Field) -> str:
    # a column of any type may be declared as STRING
    return f"CAST({quoted(field.name)} AS VARCHAR)" if isinstance(field.type, String) else quoted(field.name)


def exact(batch: pa.RecordBatch, select: Select) -> pa.RecordBatch:
    """Return rows with exactly the types of a SELECT's columns. DAT-4704 names the column whose values do
    not fit.
    """
    # SELECT 1: only the number of rows
    if not select.fields:
        return empty_columns(batch.num_rows)
    arrays = []
    for column, field, declared in zip(batch.columns, select.schema, select.fields, strict=True):
        try:
            arrays.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            message = f"column {field.name} of {select.table} holds what is no {declared.type}"
            hint = "declare it as STRING to see it"
            raise PenstockError(
                "DAT-4704", message, detail=str(error)[:200], hint=hint, kind=Kind.EXTERNAL
            ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=select.schema)
