"""Rows as messages: DataRow and CopyData, in pieces that bound memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Schema
from penstock.client.server.postgres.binary_format import cell_writer, text_writer
from penstock.client.server.postgres.cells import (
    WireCells,
    check_bytes,
    field_of,
    fields_of,
    single_cells,
    total_bytes,
)
from penstock.client.server.postgres.single_row import binary_cell, text_cell

PIECE_BYTES = 4 << 20
"""Arrow bytes of the rows that are encoded at once: their messages are about as many."""
PIECE_ROWS = 1 << 16
TEXT, BINARY = 0, 1
_FORMATS = frozenset((TEXT, BINARY))

Send = Callable[[bytes | memoryview], None]


def result_formats(asked: Sequence[int], columns: int) -> tuple[int, ...]:
    """Return a format for each column: none asked is text, one is that of all. CLI-6225 for others."""
    formats = tuple(asked) if len(asked) not in (0, 1) else (tuple(asked) or (TEXT,)) * columns
    if len(formats) != columns or not _FORMATS.issuperset(formats):
        raise PenstockError(
            "CLI-6225",
            f"formats {tuple(asked)} do not fit {columns} columns",
            hint="send no format (text), one for all columns, or one for each: 0 is text, 1 is binary",
            sqlstate="08P01",
        )
    return formats


class RowEncoder:
    """Encodes rows of one schema. ``prefix`` begins each row; at ``size_at`` its size is written."""

    def __init__(
        self, schema: Schema, formats: Sequence[int], zone: str, prefix: bytes = b"", size_at: int | None = 1
    ) -> None:
        # DataRow: its tag, its length, its number of fields
        self._prefix = prefix or b"D\0\0\0\0" + len(schema).to_bytes(2, "big")
        self._size_at = size_at
        self._writers = [
            (cell_writer if form == BINARY else text_writer)(field.type, zone)
            for field, form in zip(schema, formats, strict=True)
        ]
        self._single = [
            (binary_cell if form == BINARY else text_cell)(field.type)
            for field, form in zip(schema, formats, strict=True)
        ]

    def rows(self, batch: pa.RecordBatch) -> WireCells:
        """Return the messages of some rows."""
        if batch.num_rows == 1:
            return single_cells(self.row(batch))
        columns = [write(column) for write, column in zip(self._writers, batch.columns, strict=True)]
        return fields_of(columns, self._prefix, self._size_at, batch.num_rows)

    def row(self, batch: pa.RecordBatch) -> bytes:
        """Return the message of a single row."""
        row = bytearray(self._prefix)
        for write_one, write, column in zip(self._single, self._writers, batch.columns, strict=True):
            row += field_of(write(column)) if write_one is None else write_one(column)
        check_bytes(len(row))
        if self._size_at is not None:
            row[self._size_at : self._size_at + 4] = (len(row) - self._size_at).to_bytes(4, "big")
        return bytes(row)

    def send(self, batch: pa.RecordBatch, send: Send) -> None:
        """Send the messages of a batch, piece by piece."""
        if batch.num_rows == 1:
            send(self.row(batch))
            return
        for piece in pieces_of(batch):
            send(total_bytes(self.rows(piece)))


def pieces_of(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield slices of a batch that are small enough to be encoded at once."""
    # a row is not cut
    if batch.num_rows == 1:
        yield batch
        return
    per_row = max(1, batch.nbytes // max(1, batch.num_rows))
    count = max(1, min(PIECE_ROWS, PIECE_BYTES // per_row))
    for first in range(0, batch.num_rows, count):
        yield batch.slice(first, count)
