"""Writers of files: batches in, one complete file out, flushed to the disk when it is closed."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import zlib
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.formats.debezium import debezium_lines
from penstock.engine.formats.file_task import CsvDialect
from penstock.engine.formats.json_text import json_lines, json_tokens
from penstock.engine.formats.text_conversion import to_text

# a row group ends at whichever comes first, so that a writer's memory is bounded
ROW_GROUP_ROWS = 1 << 18
ROW_GROUP_BYTES = 64 << 20


@dataclass(frozen=True)
class WriteTask:
    """One file to write: ``path`` must not exist yet; ``codec`` compresses text files whole, or the pages of
    parquet.

    For Debezium's JSON the first column is the op of each row, and ``in_payload`` writes the schema beside
    each change.
    """

    path: Path
    schema: pa.Schema
    codec: str | None
    dialect: CsvDialect = field(default_factory=CsvDialect)
    in_payload: bool = False


@dataclass(frozen=True)
class WrittenFile:
    """A complete file: its length in bytes and the CRC-32 of all of them."""

    length: int
    crc32: int


class FileWriter(Protocol):
    """Writes one file."""

    @property
    def bytes(self) -> int:
        """The approximate number of bytes written so far."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows."""

    def finish(self) -> WrittenFile:
        """Complete the file and flush it to the disk. Raises OSError."""

    def discard(self) -> None:
        """Close and delete the file."""


class _SummedFile(io.BufferedWriter):
    """A file that computes the CRC-32 of the bytes written to it."""

    crc32 = 0

    def write(self, data: Any) -> int:
        # summed while writing: the file is not read again for its checksum
        self.crc32 = zlib.crc32(data, self.crc32)
        return super().write(data)


class DurableFile:
    """A file that is flushed to disk when it is complete. ``sink`` accepts its bytes, compressed on request.

    An existing file is overwritten: the caller has reserved the name.
    """

    def __init__(self, path: Path, codec: str | None = None) -> None:
        self._path = path
        self._file = _SummedFile(io.FileIO(path, "wb"))
        raw = pa.PythonFile(self._file, "w")
        # the checksum is that of the compressed bytes, as a reader of the file sees them
        self.sink = raw if codec is None else pa.CompressedOutputStream(raw, codec)

    def finish(self) -> WrittenFile:
        # closing the sink closes the file: the copy is for fsync afterwards
        descriptor = os.dup(self._file.fileno())
        try:
            self.sink.close()
            self._file.close()
            os.fsync(descriptor)
            return WrittenFile(os.fstat(descriptor).st_size, self._file.crc32)
        finally:
            os.close(descriptor)

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # the buffered bytes may not fit on the disk; they are not needed
            self._file.close()
        self._path.unlink(missing_ok=True)


class TextLines:
    """Rows as the lines of csv, of JSON, or of Debezium's JSON. DAT-4607 for BYTES that are no text."""

    def __init__(self, kind: str, dialect: CsvDialect, in_payload: bool) -> None:
        self._kind, self._dialect, self._in_payload = kind, dialect, in_payload

    def header(self, names: Sequence[str]) -> str:
        """Return the line before the rows; empty where there is none."""
        if self._kind != "csv" or not self._dialect.header:
            return ""
        # names are quoted by the rule of values: one may contain the delimiter
        return self._dialect.delimiter.join(_csv_quoted(pa.array(names), self._dialect).to_pylist()) + "\n"

    def text(self, rows: pa.RecordBatch) -> str:
        """Return the lines of rows, each with its line end."""
        try:
            return "".join(self._lines(rows).to_pylist())
        except pa.ArrowInvalid:
            raise not_text(rows, self._kind) from None

    def _lines(self, rows: pa.RecordBatch) -> pa.Array:
        if self._kind == "debezium-json":
            return debezium_lines(rows, self._in_payload)
        return json_lines(rows) if self._kind == "json" else csv_lines(rows, self._dialect)


class TextWriter:
    """Writes csv, json lines, or changes as Debezium's JSON. DAT-4607 for what the encoding cannot hold."""

    def __init__(self, task: WriteTask, kind: str) -> None:
        self._lines = TextLines(kind, task.dialect, task.in_payload)
        self._encoding = task.dialect.encoding
        # incremental: utf-16 has one byte order mark a file
        self._encoder = codecs.getincrementalencoder(self._encoding)()
        self._file = DurableFile(task.path, task.codec)
        self.bytes = 0
        self._put(self._lines.header(task.schema.names))

    def write(self, rows: pa.RecordBatch) -> None:
        self._put(self._lines.text(rows))

    def finish(self) -> WrittenFile:
        return self._file.finish()

    def discard(self) -> None:
        self._file.discard()

    def _put(self, text: str) -> None:
        try:
            data = self._encoder.encode(text)
        except UnicodeEncodeError as error:
            what = error.object[error.start : error.start + 1]
            raise PenstockError(
                "DAT-4607",
                f"the character {what} of a value cannot be written in {self._encoding}",
                hint="write the table in 'csv.encoding' = 'utf-8', which has all characters",
                sqlstate="22021",
            ) from None
        self._file.sink.write(data)
        self.bytes += len(data)


class ParquetWriter:
    """Writes parquet with page checksums, gathering batches to row groups of about 256 k rows."""

    def __init__(self, task: WriteTask) -> None:
        self._schema = task.schema
        self._file = DurableFile(task.path)
        self._writer = pq.ParquetWriter(
            # a reader finds a damaged page by its checksum
            self._file.sink,
            task.schema,
            compression=task.codec or "none",
            write_page_checksum=True,
        )
        self._gathered: list[pa.RecordBatch] = []
        self._rows = 0
        self._gathered_bytes = 0
        self.bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._gathered.append(rows)
        self._rows += rows.num_rows
        # in memory; the file's bytes are fewer once encoded, so files roll earlier than at their limit
        self._gathered_bytes += rows.nbytes
        self.bytes += rows.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._gathered_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def finish(self) -> WrittenFile:
        self._flush()
        self._writer.close()
        return self._file.finish()

    def discard(self) -> None:
        self._gathered = []
        with contextlib.suppress(OSError):  # what it still writes goes into a file that is deleted
            self._writer.close()
        self._file.discard()

    def _flush(self) -> None:
        if self._gathered:
            self._writer.write_table(
                # exactly one row group for what was gathered
                pa.Table.from_batches(self._gathered, self._schema),
                row_group_size=self._rows,
            )
        self._gathered, self._rows, self._gathered_bytes = [], 0, 0


class ArrowWriter:
    """Writes an Arrow IPC file."""

    def __init__(self, task: WriteTask) -> None:
        self._file = DurableFile(task.path)
        self._writer = pa.ipc.new_file(self._file.sink, task.schema)
        self.bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)
        self.bytes += rows.nbytes

    def finish(self) -> WrittenFile:
        self._writer.close()
        return self._file.finish()

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.close()
        self._file.discard()


def open_writer(kind: str, task: WriteTask) -> FileWriter:
    """Return the writer of a format for a new file. Raises OSError."""
    if kind == "parquet":
        return ParquetWriter(task)
    return ArrowWriter(task) if kind == "arrow" else TextWriter(task, kind)


def not_text(rows: pa.RecordBatch, kind: str, holder: str = "a file") -> PenstockError:
    """Return the error for rows with bytes in them that files (or messages) of text cannot hold."""
    name = next(
        (name for name, column in zip(rows.schema.names, rows.columns, strict=True) if not _is_text(column)),
        "?",
    )
    message = (
        f"a value of column {name} is bytes that are no text (UTF-8), which {holder} of {kind} cannot hold"
    )
    return PenstockError(
        "DAT-4607",
        message,
        hint=f"write hex({name}) or base64({name}), or to a table with 'format' = 'parquet'",
        sqlstate="22021",
    )


def _is_text(column: pa.Array) -> bool:
    try:
        json_tokens(column)
    except pa.ArrowInvalid:
        return False
    return True


def csv_lines(rows: pa.RecordBatch, dialect: CsvDialect) -> pa.Array:
    """Return one csv line a row, each with its line end; only texts that need it are quoted, NULL is the
    null literal.
    """
    # column by column: no loop over rows
    columns = []
    for column in rows.columns:
        # only texts can contain a delimiter or quote; numbers and times never need quotes
        plain = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
        texts = _csv_quoted(to_text(column), dialect) if plain else to_text(column)
        columns.append(pc.fill_null(texts, dialect.null_literal))
    return pc.binary_join_element_wise(pc.binary_join_element_wise(*columns, dialect.delimiter), "\n", "")


def _csv_quoted(texts: pa.Array, dialect: CsvDialect) -> pa.Array:
    """Quote texts that contain a delimiter, a quote or a line end, or that could be read as NULL or as an
    absent value.
    """
    # leading and trailing blanks as well: readers may trim them
    special = f"[{_in_brackets(dialect.delimiter)}{_in_brackets(dialect.quote)}\r\n]|^ | $"
    needs = pc.or_(
        pc.match_substring_regex(texts, special), pc.is_in(texts, pa.array(["", dialect.null_literal]))
    )
    # a quote inside is written twice: "a ""b"""
    doubled = pc.replace_substring(texts, dialect.quote, dialect.quote * 2)
    return pc.if_else(needs, pc.binary_join_element_wise(dialect.quote, doubled, dialect.quote, ""), texts)


def _in_brackets(char: str) -> str:
    # these have a meaning inside [..] of a regular expression
    return "\\" + char if char in "\\]^-[" else char
