"""Values of messages in a format of text (json, csv, Debezium's json): read as the lines of a file are."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from penstock.catalog.connectors.message_formats import MessageFormat
from penstock.catalog.schema import Field
from penstock.catalog.types import Variant, holds
from penstock.engine.api.stream_elements import Batch
from penstock.engine.formats.csv import CsvParser
from penstock.engine.formats.debezium import EnvelopeParser
from penstock.engine.formats.decoded_batch import BadRecord, Decoded
from penstock.engine.formats.file_task import CsvDialect, FileTask
from penstock.engine.formats.file_writers import csv_lines, not_text
from penstock.engine.formats.json_text import json_lines
from penstock.engine.formats.line_reader import LineParser, separate
from penstock.engine.formats.messages.message_values import MessageValues, message_values
from penstock.engine.formats.record_blocks import Block
from penstock.engine.formats.variant_columns import stored_column

_BOM = b"\xef\xbb\xbf"
_WHOLE, _NO_RECORD, _OPEN, _SEVERAL = 0, 1, 2, 3  # as engine/kernels/message_frames returns them
Frame = Callable[[MessageValues], tuple[bytes, np.ndarray]]


class TextDeserializer:
    """Decodes text: each value becomes a line, and all lines are parsed in one call.

    ``frame`` makes the lines and says which values are one record. A record that cannot be read is found by
    bisection.
    """

    def __init__(self, parser: LineParser, frame: Frame, quote: bytes | None = None) -> None:
        self._parser = parser
        self._frame = frame
        self._quote = quote

    def deserialize(self, values: pa.Array) -> Decoded:
        messages = message_values(values)
        data, frames = self._frame(messages)
        chosen = np.flatnonzero(frames == _WHOLE)
        bad = [self._bad(messages, i, int(frames[i])) for i in np.flatnonzero(frames != _WHOLE).tolist()]
        records = self._parser.parse(data)
        if records is None or records.num_rows != len(chosen):
            decoded = separate(Block(data, 0), 0, self._quote, self._parser.parse, self._parser.explain)
            assert decoded.ordinals is not None
            # ordinals of lines are positions in ``chosen``
            bad += [self._bad(messages, int(chosen[record.ordinal]), _WHOLE) for record in decoded.bad]
            records, chosen = decoded.rows, chosen[decoded.ordinals]
        bad.sort(key=lambda record: record.ordinal)
        decoded = Decoded(records, 0, messages.count, messages.ordinals(chosen), bad)
        return self._parser.rows_of(decoded)

    def _bad(self, messages: MessageValues, position: int, frame: int) -> BadRecord:
        raw = messages.raw(position)
        if not raw.strip():
            return messages.bad(position, "the message is empty", None, 0)
        if raw.startswith(_BOM):
            return messages.bad(position, "the message begins with a byte order mark", None, 0)
        if self._quote is not None and frame == _SEVERAL:
            return messages.bad(position, "a message is one record, and this one has several lines")
        column, error = self._parser.explain(raw)
        return messages.bad(position, error, column, None if self._quote else json_error_byte(raw))


def json_error_byte(raw: bytes) -> int | None:
    """Return the byte at which a text stops being JSON; ``None`` where it is JSON."""
    try:
        json.loads(raw)
    except UnicodeDecodeError as error:
        return error.start
    except json.JSONDecodeError as error:
        return len(error.doc[: error.pos].encode())
    except (RecursionError, ValueError):
        return 0
    return None


def json_frame(messages: MessageValues) -> tuple[bytes, np.ndarray]:
    """Return the values that are one JSON object as lines, and what each value is."""
    from penstock.engine.kernels.message_frames import json_lines as frame_lines

    lines, frames = _buffers(messages)
    written = frame_lines(messages.data, messages.starts, messages.ends, lines, frames)
    return lines[:written].tobytes(), frames


def debezium_json_deserializer(
    form: MessageFormat, wanted: tuple[Field, ...], declared: tuple[Field, ...]
) -> TextDeserializer:
    """Return the deserializer of Debezium's changes as JSON."""
    in_payload = bool(form.option("debezium-json.schema-include"))
    return TextDeserializer(EnvelopeParser(wanted, declared, in_payload, "message"), json_frame)


def csv_deserializer(
    form: MessageFormat, wanted: tuple[Field, ...], declared: tuple[Field, ...]
) -> TextDeserializer:
    """Return the deserializer of csv records, one a message; values are matched to columns by position."""
    dialect = _dialect(form)
    quote = dialect.quote.encode()

    def frame(messages: MessageValues) -> tuple[bytes, np.ndarray]:
        from penstock.engine.kernels.message_frames import csv_lines as frame_lines

        lines, frames = _buffers(messages)
        written = frame_lines(
            messages.data, messages.starts, messages.ends, np.uint8(quote[0]), lines, frames
        )
        return lines[:written].tobytes(), frames

    task = FileTask(pafs.LocalFileSystem(), "the messages", wanted, declared, dialect=dialect)
    return TextDeserializer(CsvMessages(task), frame, quote)


class CsvMessages(CsvParser):
    """The parser of csv files, with its kernels for plain records tried first."""

    def parse(self, data: bytes) -> pa.RecordBatch | None:
        rows = self.plain(data) if data else None
        return super().parse(data) if rows is None else rows


class JsonSerializer:
    """Encodes rows as JSON objects. DAT-4607 for BYTES that are no text."""

    def __init__(self, fields: tuple[Field, ...]) -> None:
        self._kinds = [field.type for field in fields]
        self._holds_variant = any(holds(kind, Variant) for kind in self._kinds)

    def serialize(self, batch: Batch) -> pa.Array:
        rows = batch.rows
        if self._holds_variant:
            columns = [
                stored_column(column, kind, False)
                for column, kind in zip(rows.columns, self._kinds, strict=True)
            ]
            rows = pa.RecordBatch.from_arrays(columns, names=rows.schema.names)
        return _values(lambda: json_lines(rows), batch.rows, "json")


class CsvSerializer:
    """Encodes rows as csv records. DAT-4607 for BYTES that are no text."""

    def __init__(self, form: MessageFormat) -> None:
        self._dialect = _dialect(form)

    def serialize(self, batch: Batch) -> pa.Array:
        return _values(lambda: csv_lines(batch.rows, self._dialect), batch.rows, "csv")


def _values(lines: Callable[[], pa.Array], rows: pa.RecordBatch, kind: str) -> pa.Array:
    """Return lines as values of messages, without their line ends."""
    try:
        made = lines()
    except pa.ArrowInvalid:
        raise not_text(rows, kind, "a message") from None
    return line_values(made)


def line_values(lines: pa.Array) -> pa.Array:
    """Return lines without their line end, as BINARY."""
    _, offsets, data = lines.buffers()
    if not len(lines):
        return pa.array([], pa.binary())
    bounds = np.frombuffer(offsets, np.int32, len(lines) + 1, lines.offset * 4).astype(np.int64)
    view = np.frombuffer(data, np.uint8)
    kept = np.ones(int(bounds[-1] - bounds[0]), np.bool_)
    # the last byte of each line is its line end
    kept[bounds[1:] - bounds[0] - 1] = False
    text = view[bounds[0] : bounds[-1]][kept]
    moved = (bounds - bounds[0] - np.arange(len(bounds))).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(lines), [None, pa.py_buffer(moved), pa.py_buffer(text)])


def _buffers(messages: MessageValues) -> tuple[np.ndarray, np.ndarray]:
    size = int((messages.ends - messages.starts).sum()) + len(messages)
    return np.empty(size, np.uint8), np.empty(len(messages), np.uint8)


def _dialect(form: MessageFormat) -> CsvDialect:
    return CsvDialect(
        delimiter=str(form.option("csv.delimiter")),
        quote=str(form.option("csv.quote")),
        header=False,
        null_literal=str(form.option("csv.null-literal")),
        multiline=True,
    )
