"""Rows of COPY .. TO STDOUT, one message a row, in text, csv or binary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.schema import Schema
from penstock.client.server.postgres import backend_messages as backend
from penstock.client.server.postgres.cells import WireCells, joined, text_cells, total_bytes
from penstock.client.server.postgres.copy_options import CopyOptions
from penstock.client.server.postgres.row_output import BINARY, RowEncoder, Send, pieces_of
from penstock.client.server.postgres.text_format import text_printer

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + b"\0\0\0\0" * 2
"""The head of the binary format: no flags, no extension."""
TRAILER = b"\xff\xff"
_ESCAPES = (("\\", "\\\\"), ("\b", "\\b"), ("\f", "\\f"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


class CopyWriter:
    """Writes the rows of one COPY. ``begin`` and ``end`` are what stands before and behind them."""

    def __init__(self, schema: Schema, options: CopyOptions, zone: str) -> None:
        self._schema = schema
        self._options = options
        count = len(schema)
        self._head = SIGNATURE if options.is_binary else b""
        if options.is_binary:
            # CopyData: its tag, its length, then the row's number of fields
            formats, fields = (BINARY,) * count, count.to_bytes(2, "big")
            self._binary = RowEncoder(schema, formats, zone, b"d\0\0\0\0" + fields)
            self._first = RowEncoder(schema, formats, zone, b"d\0\0\0\0" + SIGNATURE + fields)
        self._printers = [text_printer(field.type, zone) for field in schema]

    def begin(self) -> bytes:
        """Return the message that begins the COPY, and its head."""
        head = backend.copy_response(b"H", len(self._schema), binary=self._options.is_binary)
        if self._options.is_binary or not self._options.header:
            return head
        names = pa.RecordBatch.from_arrays(
            [pa.array([field.name], pa.string()) for field in self._schema],
            names=[str(i) for i in range(len(self._schema))],
        )
        return head + bytes(total_bytes(self._lines(names.columns, 1)))

    def send(self, batch: pa.RecordBatch, send: Send) -> None:
        """Send the messages of a batch, piece by piece."""
        if self._options.is_binary:
            # the signature is in the message of the first row, as PostgreSQL sends it
            if self._head and batch.num_rows:
                self._first.send(batch.slice(0, 1), send)
                self._head, batch = b"", batch.slice(1)
            self._binary.send(batch, send)
            return
        for piece in pieces_of(batch):
            texts = [write(column) for write, column in zip(self._printers, piece.columns, strict=True)]
            send(total_bytes(self._lines(texts, piece.num_rows)))

    def end(self) -> bytes:
        """Return what ends the COPY."""
        trailer = backend.copy_data(self._head + TRAILER) if self._options.is_binary else b""
        return trailer + backend.COPY_DONE

    def _lines(self, texts: list[pa.Array], count: int) -> WireCells:
        written = [self._field(text) for text in texts] or [pa.array([""] * count, pa.string())]
        # one cell a column: joined in bytes, because a text of all columns may pass two gigabytes
        comma, end = text_cells(_repeated(self._options.delimiter, count)), text_cells(_repeated("\n", count))
        pieces = [part for text in written for part in (text_cells(text), comma)][:-1]
        lines = joined([*pieces, end])
        return _as_messages(lines)

    def _field(self, texts: pa.Array) -> pa.Array:
        options = self._options
        if options.form == "text":
            # a tab as delimiter has its escape already
            own = () if options.delimiter == "\t" else ((options.delimiter, "\\" + options.delimiter),)
            for plain, escape in (*_ESCAPES, *own):
                texts = _replaced(texts, plain, escape)
            return pc.fill_null(texts, options.null)
        special = [options.delimiter, options.quote, "\n", "\r"]
        needs = pc.equal(texts, options.null)
        for character in special:
            needs = pc.or_(needs, pc.match_substring(texts, character))
        inner = (
            texts if options.escape == options.quote else _replaced(texts, options.escape, options.escape * 2)
        )
        inner = _replaced(inner, options.quote, options.escape + options.quote)
        quoted = pc.binary_join_element_wise(options.quote, inner, options.quote, "")
        return pc.fill_null(pc.if_else(needs, quoted, texts), options.null)


def _replaced(texts: pa.Array, plain: str, replacement: str) -> pa.Array:
    return pc.replace_substring(texts, plain, replacement)


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _as_messages(lines: WireCells) -> WireCells:
    """Return lines as CopyData messages: the length of each counts its own four bytes."""
    count = len(lines)
    heads = np.zeros(count, np.dtype([("tag", "S1"), ("length", ">i4")]))
    heads["tag"], heads["length"] = b"d", lines.lengths + 4
    sizes = np.full(count, heads.itemsize, np.int32)
    starts = np.arange(count, dtype=np.int64) * heads.itemsize
    return joined([WireCells(starts, sizes, heads.view(np.uint8).reshape(-1)), lines])
