"""Cells: the values of one column as bytes of PostgreSQL, and rows put together from columns of cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.kernels.arrow_views import string_parts, validity
from penstock.engine.kernels.postgres_rows import write_bytes, write_fields

MOST_BYTES = (1 << 31) - 64
"""Lengths of the protocol are integers of 32 bits with a sign; a message has some bytes before its row."""


def check_bytes(most: int) -> None:
    """Raise CLI-6268 for a value or row that is longer than the protocol can say: a client would read its
    bytes as messages.
    """
    if most > MOST_BYTES:
        raise PenstockError(
            "CLI-6268",
            f"a row takes {most:,} bytes as PostgreSQL writes it, and may have {MOST_BYTES:,}",
            hint="select fewer of its columns, or a part of the long value by SUBSTRING",
            sqlstate="54000",
        )


@dataclass
class WireCells:
    """The bytes of a column's values: ``data[starts[i] : starts[i] + lengths[i]]``; length -1 is NULL."""

    starts: np.ndarray
    lengths: np.ndarray
    data: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def sizes(self) -> np.ndarray:
        """The bytes of each value, 0 for NULL."""
        return np.maximum(self.lengths, 0).astype(np.int64)


def fixed_cells(data: np.ndarray, width: int, array: pa.Array) -> WireCells:
    """Return cells of one width, NULL where the array has one."""
    count = len(array)
    return WireCells(
        np.arange(count, dtype=np.int64) * width,
        nulls_as_minus_one(np.full(count, width, np.int32), array),
        np.ascontiguousarray(data).view(np.uint8).reshape(-1),
    )


def text_cells(texts: pa.Array) -> WireCells:
    """Return the cells of a string or binary array."""
    offsets, data = string_parts(texts)
    starts = offsets.astype(np.int64)
    lengths = np.diff(starts).astype(np.int32)
    return WireCells(starts[:-1], nulls_as_minus_one(lengths, texts), data)


def nulls_as_minus_one(lengths: np.ndarray, array: pa.Array) -> np.ndarray:
    """Return the lengths of an array's values, -1 where one is NULL."""
    if not array.null_count:
        return lengths
    return np.where(validity(array).astype(bool), lengths, np.int32(-1)).astype(np.int32)


def constant_cells(piece: bytes, count: int) -> WireCells:
    """Return one piece of text for each row."""
    return WireCells(np.zeros(count, np.int64), np.full(count, len(piece), np.int32), as_bytes(piece))


def as_bytes(piece: bytes) -> np.ndarray:
    """Return bytes as an array; of none one byte, which no cell reads."""
    return np.frombuffer(piece or b"\0", np.uint8)


def joined(pieces: list[WireCells], null: WireCells | None = None) -> WireCells:
    """Return the pieces of each row one behind the other; NULL where ``null`` is."""
    sizes = sum(piece.sizes for piece in pieces)
    assert isinstance(sizes, np.ndarray)
    check_bytes(int(sizes.max(initial=0)))
    starts = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()) or 1, np.uint8)
    at = starts.copy()
    for piece in pieces:
        write_bytes(out, at, piece.starts, piece.lengths, piece.data)
    lengths = sizes.astype(np.int32)
    return WireCells(
        starts, lengths if null is None else np.where(null.lengths < 0, np.int32(-1), lengths), out
    )


def fields_of(columns: list[WireCells], prefix: bytes, size_at: int | None, count: int) -> WireCells:
    """Return rows of length-prefixed fields behind a prefix. ``size_at``: where in the prefix the row's size
    is written, counted from there on, as PostgreSQL's messages have it.
    """
    sizes = np.full(count, len(prefix), np.int64)
    for column in columns:
        sizes += 4 + column.sizes
    check_bytes(int(sizes.max(initial=0)))
    starts = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()) or 1, np.uint8)
    heads = starts[:, None] + np.arange(len(prefix))
    out[heads] = np.frombuffer(prefix, np.uint8)
    if size_at is not None:
        size_bytes = (sizes - size_at).astype(">i4").view(np.uint8).reshape(count, 4)
        out[heads[:, size_at : size_at + 4]] = size_bytes
    at = starts + len(prefix)
    for column in columns:
        write_fields(out, at, column.starts, column.lengths, column.data)
    return WireCells(starts, sizes.astype(np.int32), out)


def field_of(cells: WireCells) -> bytes:
    """Return the field of a single value: its length and its bytes."""
    length, start = int(cells.lengths[0]), int(cells.starts[0])
    return length.to_bytes(4, "big", signed=True) + cells.data[start : start + max(length, 0)].tobytes()


def single_cells(row: bytes) -> WireCells:
    """Return a single row as cells."""
    return WireCells(np.zeros(1, np.int64), np.array([len(row)], np.int32), as_bytes(row))


def total_bytes(rows: WireCells) -> memoryview:
    """Return the bytes of rows that lie one behind the other."""
    return rows.data.data[: int(rows.sizes.sum())]
