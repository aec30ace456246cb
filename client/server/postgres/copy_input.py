"""COPY .. FROM STDIN: the client's bytes become rows that an INSERT reads while they come."""

from __future__ import annotations

import io
import itertools
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.types import (
    Array,
    Binary,
    DataType,
    DayTimeInterval,
    Map,
    Row,
    String,
    YearMonthInterval,
)
from penstock.client.server.postgres import backend_messages as backend
from penstock.client.server.postgres.copy_options import CopyOptions, CopyStatement
from penstock.client.server.postgres.executions import Execution
from penstock.engine.api.threads import EngineThread

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.client.server.postgres.wire_session import WireSession

_BUFFERED_BYTES = 8 << 20
"""Bytes that wait for the INSERT: a client that sends faster is not read meanwhile."""
_BLOCK_BYTES = 1 << 20
_NUMBERS = itertools.count(1)
_UNESCAPED = (("\\t", "\t"), ("\\n", "\n"), ("\\r", "\r"), ("\\b", "\b"), ("\\f", "\f"))


class ByteQueue(io.RawIOBase):
    """Bytes from one thread to another; ``append`` waits while too many are buffered."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self._buffer = bytearray()
        self._is_complete = False
        self._is_abandoned = False
        self._error: PenstockError | None = None

    def readable(self) -> bool:
        return True

    def append(self, data: bytes) -> None:
        """Append bytes; they are dropped once nobody reads them any more."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._buffer) < _BUFFERED_BYTES or self._is_abandoned)
            if not self._is_abandoned:
                self._buffer += data
                self._changed.notify_all()

    def complete(self, error: PenstockError | None = None) -> None:
        """End the bytes, with an error that the reader raises."""
        with self._changed:
            self._is_complete, self._error = True, error
            self._changed.notify_all()

    def abandon(self) -> None:
        """Stop buffering: the INSERT has ended."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()

    def readinto(self, target: object) -> int:
        view = memoryview(target)  # type: ignore[arg-type]
        with self._changed:
            self._changed.wait_for(lambda: self._buffer or self._is_complete)
            if self._error is not None:
                raise self._error
            count = min(len(view), len(self._buffer))
            view[:count] = self._buffer[:count]
            del self._buffer[:count]
            self._changed.notify_all()
            return count


class CopyInput(Execution):
    """One COPY .. FROM STDIN. Its INSERT runs in a thread of its own and reads what ``append`` is given."""

    def __init__(self, copy: CopyStatement, session: WireSession) -> None:
        super().__init__("COPY")
        self._options = copy.options
        self._bytes = ByteQueue()
        self._error: PenstockError | None = None
        self._written = 0
        connection = session.server_session.connection
        table = connection.session.catalog.table(copy.table)
        self._kinds = _column_types(table.schema, copy)
        self._count = len(self._kinds)
        _refuse_formats(copy.options, self._kinds)
        self._name = f"copy_{next(_NUMBERS)}"
        names = [f"c{i}" for i in range(self._count)]
        schema = pa.schema([(name, pa.string()) for name in names])
        reader = pa.RecordBatchReader.from_batches(schema, self._batches(names))
        # a stream: read by our own runtime as it comes, and by no backend that loads it first
        connection.register(self._name, reader, stream=True)
        casts = ", ".join(_cast(f"c{i}", kind) for i, kind in enumerate(self._kinds))
        into = f"{copy.table} ({', '.join(copy.columns)})" if copy.columns else copy.table
        self._sql = f"INSERT INTO {into} SELECT {casts} FROM {self._name}"
        self._connection = connection
        self._cursor = session.new_cursor()
        self._thread = EngineThread(target=self._insert, name=f"penstock-{self._name}")
        self._thread.start()

    def response(self) -> bytes:
        """Return the message that asks for the rows."""
        return backend.copy_response(b"G", self._count, binary=self._options.is_binary)

    def append(self, data: bytes) -> None:
        """Take bytes, waiting while the INSERT is behind."""
        self._bytes.append(data)

    def finish(self) -> int:
        """End the rows and wait for the INSERT; return how many it has written. Raises its error."""
        self._bytes.complete()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._written

    def fail(self, reason: str) -> PenstockError:
        """Give up: the INSERT fails, and nothing of it is committed. Return the error to send."""
        error = PenstockError(
            "CLI-6264",
            f"COPY from the client failed: {reason[:200]}",
            hint="send the rows again; none of them were written",
            kind=Kind.EXTERNAL,
            sqlstate="57014",
        )
        self._bytes.complete(error)
        self._cursor.cancel()
        self._thread.join()
        return error

    def _insert(self) -> None:
        try:
            self._cursor.execute(self._sql)
            self._written = self._cursor.rowcount
        except PenstockError as error:
            self._error = error
        finally:
            self._bytes.abandon()
            self._connection.unregister(self._name)

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows as texts, as they come."""
        options, is_csv = self._options, self._options.form == "csv"
        try:
            reader = csv.open_csv(
                pa.PythonFile(io.BufferedReader(self._bytes, _BLOCK_BYTES), mode="r"),
                csv.ReadOptions(
                    use_threads=False,
                    block_size=_BLOCK_BYTES,
                    column_names=names,
                    skip_rows=int(options.header),
                ),
                csv.ParseOptions(
                    delimiter=options.delimiter,
                    quote_char=options.quote if is_csv else False,
                    escape_char=options.escape if is_csv and options.escape != options.quote else False,
                    double_quote=is_csv,
                    newlines_in_values=is_csv,
                    ignore_empty_lines=self._count > 1,
                ),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=[options.null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in reader:
                yield batch if is_csv else _unescaped(batch)
        except pa.ArrowInvalid as error:
            # no rows at all
            if "Empty CSV" in str(error):
                return
            raise PenstockError(
                "CLI-6265",
                f"the rows of COPY cannot be read: {str(error)[:300]}",
                hint=f"{self._count} columns, {options.form}, delimiter {options.delimiter!r}",
                kind=Kind.EXTERNAL,
                sqlstate="22P04",
            ) from error


def _column_types(schema: object, copy: CopyStatement) -> list[DataType]:
    fields = {field.name.lower(): field.type for field in schema}  # type: ignore[attr-defined]
    names = [name.strip('"`').lower() for name in copy.columns] or list(fields)
    # a name that is no column: the INSERT says so, with the nearest one
    return [fields.get(name, String()) for name in names]


def _cast(column: str, kind: DataType) -> str:
    match kind:
        case String():
            return column
        case Array() | Map() | Row():
            return f"from_json({column}, '{kind}')"
        case Binary():
            # \x00ff
            return f"unhex(substr({column}, 3))"
    return f"CAST({column} AS {kind})"


def _refuse_formats(options: CopyOptions, kinds: list[DataType]) -> None:
    refused = [kind for kind in kinds if isinstance(kind, DayTimeInterval | YearMonthInterval)]
    if options.is_binary or refused:
        what = "the binary format is" if options.is_binary else f"columns of {refused[0]} are"
        raise PenstockError(
            "CLI-6265",
            f"{what} not read by COPY FROM STDIN",
            hint="write COPY .. FROM STDIN (FORMAT csv), or INSERT .. SELECT",
            sqlstate="0A000",
        )


def _unescaped(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return texts of the text format without its escapes. A zero byte, which no text has, marks a backslash
    meanwhile.
    """
    columns = [_without_escapes(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _without_escapes(texts: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring(texts, "\\")).as_py():
        return texts
    for escape, plain in (("\\\\", "\0"), *_UNESCAPED, ("\\", ""), ("\0", "\\")):
        texts = pc.replace_substring(texts, escape, plain)
    return texts
