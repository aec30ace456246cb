"""Weighted rows: equal rows of a batch made one (``consolidate``), and a multiset of rows kept up to date
(Fold).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.row_pieces import LIMITS, batches_of, take_rows
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels.arrow_views import words
from penstock.engine.kernels.nested_text import canonical_text, comparable


def summed(rows: pa.Table, weights: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """Return the distinct rows whose weights do not sum to zero, in the order they first came, and the
    sums.
    """
    group, count = group_numbers(rows)
    sums = np.zeros(count, np.int64)
    # add.at, not +=: a row may be there many times
    np.add.at(sums, group, weights)
    first = np.full(count, len(group), np.int64)
    np.minimum.at(first, group, np.arange(len(group)))
    nonzero = np.flatnonzero(sums)
    # in the order of first arrival, not of the numbers, which follow the values
    nonzero = nonzero[np.argsort(first[nonzero], kind="stable")]
    return take_rows(rows, first[nonzero]), sums[nonzero]


# entries buffered beside the last sum before they are summed again
_BUFFERED_ENTRIES = 1 << 20
_WITH_LARGE_OFFSETS = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


class IdSums:
    """The sums of changes by row id. Its memory grows with the ids, however often each is named."""

    def __init__(self) -> None:
        self._ids: list[np.ndarray] = []
        self._changes: list[np.ndarray] = []
        self._summed = self._entries = 0

    def add(self, ids: np.ndarray, changes: np.ndarray) -> None:
        """Add changes; an id may be named more than once."""
        self._ids.append(ids)
        self._changes.append(changes)
        self._entries += ids.size
        if self._entries > 2 * self._summed + _BUFFERED_ENTRIES:
            # summing once there is more than twice as much as after the last sum keeps the work linear
            rows, sums = self.sums()
            self._ids, self._changes, self._summed, self._entries = [rows], [sums], rows.size, rows.size

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct ids, ascending, and the sum of each one's changes."""
        if not self._ids:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        rows, inverse = np.unique(np.concatenate(self._ids), return_inverse=True)
        sums = np.zeros(rows.size, np.int64)
        np.add.at(sums, inverse, np.concatenate(self._changes))
        return rows, sums


def group_numbers(rows: pa.Table) -> tuple[np.ndarray, int]:
    """Return a number per row, equal for rows equal in all columns (NULL equals NULL, NaN equals NaN,
    -0.0 equals 0.0), and how many numbers there are.
    """
    number = np.zeros(rows.num_rows, np.int64)
    count = 1 if rows.num_rows else 0
    for column in rows.columns:
        code, codes = (
            _codes(column.combine_chunks()) if column.nbytes <= LIMITS.array_bytes else _large_codes(column)
        )
        # numbers are made dense after each column: the product stays below rows * codes and cannot overflow
        _, number = np.unique(number * codes + code, return_inverse=True)
        count = int(number.max()) + 1 if len(number) else 0
    return number, count


def _codes(column: pa.Array) -> tuple[np.ndarray, int]:
    """Return a small number per value and the count of numbers. Nested values are compared part by part, maps
    in any order of their entries.
    """
    # maps are equal in any order of their entries, so they are compared by canonical text
    if pa.types.is_nested(column.type) and "map<" in str(column.type):
        column = canonical_text(column)
    if pa.types.is_nested(column.type):
        parts = _parts(column)
        number, count = group_numbers(parts)
        return number, count
    encoded = comparable(column).dictionary_encode(null_encoding="encode")
    return words(encoded.indices), max(1, len(encoded.dictionary))


def _large_codes(column: pa.ChunkedArray) -> tuple[np.ndarray, int]:
    """Return a small number per value of a column that no array can hold, and the count of numbers."""
    if pa.types.is_nested(column.type):
        column = pa.chunked_array([canonical_text(chunk) for chunk in column.chunks])
    # the dictionary is one for all chunks: its texts need offsets of 64 bits
    column = column.cast(_WITH_LARGE_OFFSETS.get(column.type, column.type))
    encoded = column.dictionary_encode(null_encoding="encode")
    code = np.concatenate([words(chunk.indices) for chunk in encoded.chunks])
    return code, max(1, len(encoded.chunk(0).dictionary))


def _parts(column: pa.Array) -> pa.Table:
    """Return flat columns that determine a nested column: a struct's fields; a list's length and its items by
    position.
    """
    missing = pc.is_null(column)
    if pa.types.is_struct(column.type):
        return pa.table(
            [missing, *column.flatten()], names=[str(i) for i in range(column.type.num_fields + 1)]
        )
    if pa.types.is_map(column.type):
        column = column.cast(
            pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)]))
        )
    length = pc.fill_null(pc.list_value_length(column), 0)
    longest = pc.max(length).as_py() or 0
    # one column per position: as many as the longest list has items
    items = [_item(column, length, position) for position in range(longest)]
    return pa.table([missing, length, *items], names=[str(i) for i in range(longest + 2)])


def _item(column: pa.Array, length: pa.Array, position: int) -> pa.Array:
    """Return the items at one position of the lists, NULL where a list is shorter."""
    starts = column.offsets.slice(0, len(column))
    index = pc.if_else(pc.greater(length, position), pc.add(starts, position), pa.scalar(None, pa.int32()))
    return column.values.take(index)


class Fold:
    """The sum of a changelog: the current rows and their weights. Rows keep the order in which they first
    came.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._folded = pa.Table.from_batches([], schema)
        self._counts = np.empty(0, np.int64)
        self._pending: list[Batch] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        # no weights so far: nothing can cancel out, so nothing is summed
        self._positive = True

    @property
    def nbytes(self) -> int:
        """The bytes of its rows and weights, those that are not summed yet included."""
        return int(self._folded.nbytes + self._counts.nbytes) + self._pending_bytes

    def add(self, batch: Batch) -> None:
        """Add a piece of the changelog. It is summed when there is as much new as old, so the work stays
        linear.
        """
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._pending_bytes += batch.rows.nbytes
        self._positive = self._positive and batch.weights is None
        # the pending rows are as many as the summed ones: each row is summed a constant number of times
        if not self._positive and self._pending_rows > max(100_000, self._folded.num_rows):
            self._consolidate()

    def weighted(self) -> list[Batch]:
        """Return the current rows with their weights, negative ones too. Batches are as few as Arrow can
        hold; no rows are no batch.
        """
        self._consolidate()
        batches, first = [], 0
        for rows in batches_of(self._folded):
            counts = self._counts[first : first + rows.num_rows]
            batches.append(Batch(rows, None if (counts == 1).all() else counts))
            first += rows.num_rows
        return batches

    def rows(self) -> pa.Table:
        """Return the current rows, each repeated by its weight."""
        self._consolidate()
        if (self._counts == 1).all():
            return self._folded
        return take_rows(self._folded, np.repeat(np.arange(len(self._counts)), np.maximum(self._counts, 0)))

    def _consolidate(self) -> None:
        if not self._pending:
            return
        tables = [
            self._folded,
            *(pa.Table.from_batches([batch.rows], self._schema) for batch in self._pending),
        ]
        counts = np.concatenate([self._counts, *(weights_of(batch) for batch in self._pending)])
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        rows = pa.concat_tables(tables)
        if self._positive:
            self._folded, self._counts = rows, counts
        else:
            self._folded, self._counts = summed(rows, counts)


def negated(batch: Batch) -> Batch:
    """Return the batch that retracts a batch: the same rows, each weight negated."""
    return Batch(batch.rows, -weights_of(batch))


def weights_of(batch: Batch) -> np.ndarray:
    """Return the weights of a batch, all +1 when it carries none."""
    return np.ones(batch.num_rows, np.int64) if batch.weights is None else batch.weights
