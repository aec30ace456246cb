"""Rows in pieces: how many bytes rows are, and where to cut them. No piece is too large to be emitted, or for
an array of Arrow.

Arrow addresses text, bytes and lists by 32-bit offsets: one array has at most 2 GiB of text, or as many
items. What may become longer is stored and emitted as several batches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.arrow_numpy import array_of


@dataclass
class Limits:
    """Upper limits of sizes; one row is never cut. ``array_bytes``: of rows concatenated as one batch.
    ``piece_rows`` and ``piece_bytes``: of what an operator emits at once.

    ``merged_pairs``: pairs of a window and a slice merged at once. ``batch_bytes``: of a batch that an
    operator processes at once. ``chunk_bytes``: of the chunks of stored rows. ``value_bytes``: of one value
    that an aggregate makes of many.
    """

    array_bytes: int = 2**31 - 1
    piece_rows: int = 1 << 16
    piece_bytes: int = 32 << 20
    merged_pairs: int = 1 << 20
    batch_bytes: int = 64 << 20
    chunk_bytes: int = 256 << 20
    value_bytes: int = 2**31 - 1


LIMITS = Limits()
Made = TypeVar("Made")
# tests of types with offsets of 32 bits, and of 64
_OFFSETS = (pa.types.is_string, pa.types.is_binary, pa.types.is_list, pa.types.is_map)
_LARGE_OFFSETS = (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_large_list)


class TooLarge(PenstockError):
    """RUN-2023: rows or values are too large for one batch of Arrow arrays."""

    def __init__(self, size: int) -> None:
        message = f"{size:,} bytes of rows are wanted at once, {LIMITS.array_bytes:,} fit into one batch"
        super().__init__(
            "RUN-2023",
            message,
            hint="let fewer, or shorter, values be together: of one key, one window or one LIMIT",
            sqlstate="54000",
        )


def is_capacity(error: BaseException) -> bool:
    """Return whether Arrow failed because one array cannot hold the result. Kernels report it in three
    ways.
    """
    return isinstance(error, pa.ArrowCapacityError) or (
        isinstance(error, pa.ArrowInvalid)
        and any(words in str(error) for words in ("offset overflow", "overflowed binary array capacity"))
    )


def in_halves(make: Callable[[np.ndarray], Made], positions: np.ndarray) -> list[Made]:
    """Return what ``make`` returns for positions: for all at once, or where that is too large, for each
    half.
    """
    try:
        return [make(positions)]
    except (TooLarge, pa.ArrowException) as error:
        if positions.size < 2 or not (isinstance(error, TooLarge) or is_capacity(error)):
            raise
        middle = positions.size // 2
        return in_halves(make, positions[:middle]) + in_halves(make, positions[middle:])


def row_sizes(rows: pa.RecordBatch, positions: np.ndarray | None = None) -> np.ndarray:
    """Return about how many bytes rows are, those at ``positions`` (``None``: all), without reading the
    values.
    """
    first = np.arange(rows.num_rows) if positions is None else positions
    widths = [_fixed_width(column.type) for column in rows.columns]
    sizes = np.full(first.size, sum(width for width in widths if width is not None))
    for column, width in zip(rows.columns, widths, strict=True):
        if width is None:
            sizes += _bytes_before(column, first + 1) - _bytes_before(column, first)
    return sizes


def widest_row(rows: pa.RecordBatch) -> int:
    """Return an upper bound of the bytes of a row: the sum of each column's largest value. It is cheap, for
    every batch needs it.
    """
    return sum(map(_widest, rows.columns)) if rows.num_rows else 0


@functools.lru_cache(maxsize=1024)
def _fixed_width(kind: pa.DataType) -> int | None:
    """Return the bytes of a value, ``None`` where they depend on the value. Stored, for Arrow's tests of a
    type take longer than all else here, and every batch needs them.
    """
    if pa.types.is_struct(kind) or any(test(kind) for test in (*_OFFSETS, *_LARGE_OFFSETS)):
        return None
    try:
        # numbers and times, rounded up for BOOLEAN
        return -(-kind.bit_width // 8)
    except ValueError:  # the type of NULL alone has no width
        return 0


def _widest(column: pa.Array) -> int:
    kind = column.type
    if (width := _fixed_width(kind)) is not None:
        return width
    # the longest text, and 4 bytes for its offset
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)
        return 4 + int((offsets[1:] - offsets[:-1]).max())
    # an ARRAY, MAP or ROW: its items count; text with offsets of 64 bits
    ends = _bytes_before(column, np.arange(len(column) + 1))
    return int((ends[1:] - ends[:-1]).max())


def _bytes_before(array: pa.Array, at: np.ndarray) -> np.ndarray:
    """Return how many bytes the values before each position are."""
    kind = array.type
    if (width := _fixed_width(kind)) is not None:
        return width * at
    # ROW: the sum of its fields
    if pa.types.is_struct(kind):
        return sum(
            (_bytes_before(array.field(i), at) for i in range(kind.num_fields)),
            start=np.zeros(at.size, np.int64),
        )
    # text and lists: the offset of a value is the number of bytes, or items, before it
    large = any(test(kind) for test in _LARGE_OFFSETS)
    inside = _offsets(array, np.dtype(np.int64 if large else np.int32))[at]
    return 4 * at + (_bytes_before(array.values, inside) if pa.types.is_nested(kind) else inside)


def _offsets(array: pa.Array, dtype: np.dtype) -> np.ndarray:
    if not len(array):
        return np.zeros(1, np.int64)
    return np.frombuffer(array.buffers()[1], dtype, len(array) + 1, array.offset * dtype.itemsize).astype(
        np.int64
    )


def cut(sizes: np.ndarray, most_rows: int, most_size: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces of at most ``most_rows`` rows and ``most_size`` in all. A row that is larger
    is a piece of its own.
    """
    ends, first = np.cumsum(sizes), 0
    while first < sizes.size:
        before = int(ends[first - 1]) if first else 0
        # as many rows as fit, at least one
        last = int(np.searchsorted(ends, before + most_size, side="right"))
        last = min(max(last, first + 1), first + most_rows, sizes.size)
        yield first, last
        first = last


def cut_pairs(count: int, widest: int, sizes: Callable[[], np.ndarray]) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces of ``count`` new rows that may be emitted at once. ``sizes`` is called only
    when a piece of rows of the ``widest`` size would be too much.
    """
    # an upper bound: most pieces need no sizes row by row
    rows = LIMITS.piece_rows
    if min(count, rows) * widest <= LIMITS.piece_bytes:
        return ((first, min(first + rows, count)) for first in range(0, count, rows))
    return cut(sizes(), LIMITS.piece_rows, LIMITS.piece_bytes)


def cut_repeats(counts: np.ndarray, rows: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces of rows that may be emitted at once, each row ``counts`` times."""
    total = int(counts.sum())
    if total <= LIMITS.piece_rows and total * widest_row(rows) <= LIMITS.piece_bytes:
        return iter([(0, rows.num_rows)] if rows.num_rows else [])
    # both limits in one number: a row costs its copies, or more where its bytes would fill a piece sooner
    costs = np.maximum(counts, counts * row_sizes(rows) * LIMITS.piece_rows // LIMITS.piece_bytes)
    return cut(costs, rows.num_rows, LIMITS.piece_rows)


def copies_at_once(weights: np.ndarray, rows: pa.RecordBatch) -> int:
    """Return how many rows may be emitted at once of rows that are each written as often as their weight
    says.
    """
    total = int(np.abs(weights).sum())
    if total * widest_row(rows) <= LIMITS.piece_bytes:
        return LIMITS.piece_rows
    size = int((np.abs(weights) * row_sizes(rows)).sum())
    return max(1, min(LIMITS.piece_rows, LIMITS.piece_bytes * total // size)) if size else LIMITS.piece_rows


def joined(
    batches: Sequence[pa.RecordBatch],
    most_bytes: int | None = None,
    concat: Callable[[Sequence[pa.RecordBatch]], pa.RecordBatch] = pa.concat_batches,
) -> list[pa.RecordBatch]:
    """Return batches end to end as one, or as few of at most so many bytes (``None``: as Arrow can hold)."""
    most_bytes = LIMITS.array_bytes if most_bytes is None else most_bytes
    if len(batches) < 2:
        return list(batches)
    sizes = np.array([batch.nbytes for batch in batches])
    bounds = [(0, len(batches))] if sizes.sum() <= most_bytes else cut(sizes, len(batches), most_bytes)
    return [concat(batches[first:last]) if last - first > 1 else batches[first] for first, last in bounds]


def as_one(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return batches end to end as one, that of no rows when there are none. Raises ``TooLarge``."""
    if (size := sum(batch.nbytes for batch in batches)) > LIMITS.array_bytes:
        raise TooLarge(size)
    return (
        pa.concat_batches(batches)
        if batches
        else pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)
    )


def batches_of(table: pa.Table) -> list[pa.RecordBatch]:
    """Return a table as one batch, none when it is empty, or as few as Arrow can hold it in."""
    return [batch for batch in joined(table.to_batches()) if batch.num_rows]


def take_rows(table: pa.Table, positions: np.ndarray) -> pa.Table:
    """Return the rows at positions, in the order of the positions, which may repeat. The batches are as few
    as Arrow can hold.
    """
    # no more rows than the table has: the result fits too, unless large rows are named often
    if positions.size <= table.num_rows and table.nbytes <= LIMITS.array_bytes:
        return table.take(array_of(positions))
    return pa.Table.from_batches(take_in_pieces(table, positions, LIMITS.chunk_bytes), table.schema)


def take_in_pieces(table: pa.Table, positions: np.ndarray, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows at positions as batches of about ``most_bytes``, in the order of the positions, which
    may repeat. Each batch is made when it is needed.
    """
    batches = [batch for batch in table.to_batches() if batch.num_rows]
    starts = np.cumsum([0] + [batch.num_rows for batch in batches])
    for first, last in _bounds(batches, table.schema, positions, most_bytes):
        wanted = positions[first:last]
        # the usual case needs no order restored: half the time of a large state's snapshot
        if len(batches) == 1:
            yield batches[0].take(array_of(wanted))
            continue
        # the batch of each position; take from each batch once, then restore the order
        batch_of = np.searchsorted(starts, wanted, side="right") - 1
        order = np.argsort(batch_of, kind="stable")
        parts = [
            batches[i].take(array_of(wanted[order[batch_of[order] == i]] - starts[i]))
            for i in np.unique(batch_of)
        ]
        back = np.empty(order.size, np.int64)
        back[order] = np.arange(order.size)
        yield pa.concat_batches(parts).take(array_of(back))


def _bounds(
    batches: Sequence[pa.RecordBatch], schema: pa.Schema, positions: np.ndarray, most_bytes: int
) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces of about ``most_bytes`` of the rows at positions."""
    # numbers and times: all rows have the size of the widest
    if batches and not any(pa.types.is_nested(kind) or _has_offsets(kind) for kind in schema.types):
        rows = max(1, most_bytes // max(widest_row(batches[0]), 1))
        yield from ((first, min(first + rows, positions.size)) for first in range(0, positions.size, rows))
        return
    sizes = np.concatenate([np.zeros(0, np.int64), *map(row_sizes, batches)])
    yield from cut(sizes[positions], positions.size, most_bytes)


def _has_offsets(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (*_OFFSETS, *_LARGE_OFFSETS))


def parts_by_group(table: pa.Table) -> list[pa.Table]:
    """Return a table in parts of about ``LIMITS.chunk_bytes``. Its first column is an ascending key group;
    rows of one group are in one part where they fit.
    """
    if table.nbytes <= LIMITS.chunk_bytes:
        return [table]
    sizes = np.concatenate([row_sizes(batch) for batch in table.to_batches()])
    groups = table.column(0).to_numpy()
    parts, first = [], 0
    while first < table.num_rows:
        _, length = next(cut(sizes[first:], sizes.size, LIMITS.chunk_bytes))
        last = first + length
        # the cut is within a group: move it to the group's begin, unless the group fills the whole part
        if last < table.num_rows and groups[last] == groups[last - 1] and groups[first] < groups[last]:
            last = int(np.searchsorted(groups, groups[last]))
        parts.append(table.slice(first, last - first))
        first = last
    return parts
