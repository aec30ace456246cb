"""Stdout as a table: rows are written as they come, in any format. At least once: a restarted job writes rows
again.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.catalog.connectors.registry import file_format, option, takes_changes, written_changes
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.types import STRING, DataType
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.print_stream import PrintStream, to_stdout, unwritable_stdout
from penstock.engine.api.sink import DirectSink, SinkRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import OP_FIELD, UPDATE_BEFORE, change_rows, with_op_column
from penstock.engine.connectors.filesystem.source import csv_dialect
from penstock.engine.formats.file_task import CsvDialect
from penstock.engine.formats.file_writers import TextLines
from penstock.engine.formats.variant_columns import StoredColumns


class StandardOutputSink(DirectSink):
    """Writes the rows of a job to stdout. Its operator has one subtask, so lines are never mixed."""

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a filesystem sink has a table"
        table = request.table
        self._key = request.upsert_key
        self._with_ops, self._upserts = takes_changes(table), written_changes(table) == "upsert"
        names = [field.name for field in table.physical_fields]
        kind = file_format(table)
        ops = [OP_FIELD.name] * self._with_ops
        kinds: list[DataType] = [*[STRING] * self._with_ops, *(field.type for field in request.schema.fields)]
        self._columns = StoredColumns([*ops, *names], kinds, kind)
        self._output: _Text | _Binary
        if kind in ("parquet", "arrow"):
            self._output = _Binary(kind, self._columns.schema, str(option(table, "sink.parquet.compression")))
        else:
            dialect = csv_dialect(table) if kind == "csv" else CsvDialect()
            in_payload = bool(option(table, "debezium-json.schema-include"))
            self._output = _Text(TextLines(kind, dialect, in_payload), self._columns.schema, request)

    def write(self, batch: Batch) -> None:
        rows = self._changes(batch) if self._with_ops else batch.rows
        if rows.num_rows:
            self._output.write(self._columns.of(rows.columns))

    def end(self) -> None:
        self._output.end()

    def _changes(self, batch: Batch) -> pa.RecordBatch:
        rows, ops = change_rows(batch, self._key)
        if self._upserts:
            # upsert: the +U replaces the row, so the -U is not written
            written = ops != UPDATE_BEFORE
            rows, ops = rows.filter(array_of(written)), ops[written]
        return with_op_column(rows, ops)


class _Text:
    """Lines, through the stream that the session prints to."""

    def __init__(self, lines: TextLines, schema: pa.Schema, request: SinkRequest) -> None:
        self._lines = lines
        try:
            self._write = request.services.get(PrintStream).write
        except KeyError:
            self._write = to_stdout
        # a header also where no row comes
        if head := lines.header(schema.names):
            self._write(head)

    def write(self, rows: pa.RecordBatch) -> None:
        self._write(self._lines.text(rows))

    def end(self) -> None:
        """Every line is written already."""


class _Binary:
    """Bytes of a parquet file or an Arrow stream. DAT-4629 where stdout is a terminal."""

    def __init__(self, kind: str, schema: pa.Schema, codec: str) -> None:
        if sys.stdout.isatty():
            raise PenstockError(
                "DAT-4629",
                f"{kind} is no text, and stdout is a terminal",
                hint=f'send it into a file: penstock -c ".." > rows.{kind}',
                kind=Kind.USER,
            )
        self._parquet = kind == "parquet"
        stream = pa.PythonFile(_Unclosed(), "w")
        self._writer: Any = (
            pq.ParquetWriter(stream, schema, compression=codec)
            if self._parquet
            else pa.ipc.new_stream(stream, schema)
        )

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)

    def end(self) -> None:
        # the footer, without which a parquet file is none
        self._writer.close()
        sys.stdout.buffer.flush()


class _Unclosed:
    """Stdout's bytes as a file that Arrow may close; stdout stays open."""

    closed = False

    def write(self, data: Any) -> int:
        try:
            return sys.stdout.buffer.write(data)
        except OSError as error:
            raise unwritable_stdout(error) from error

    def flush(self) -> None:
        sys.stdout.buffer.flush()

    def close(self) -> None:
        sys.stdout.buffer.flush()
