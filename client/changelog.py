"""Weighted rows as people and programs see them: folded into final rows, or as changes with an op."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.arrays import array_of, texts
from engine.elements import Batch
from engine.kernels.columns import words

OP_FIELD = pa.field("op", pa.string())
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
_OPS = ("+I", "-U", "+U", "-D")


class Fold:
    """The sum of a changelog: rows and how often each is there. Rows keep the order in which they first came."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._folded = pa.Table.from_batches([], schema)
        self._counts = np.empty(0, np.int64)
        self._pending: list[Batch] = []
        self._pending_rows = 0
        self._positive = True

    def add(self, batch: Batch) -> None:
        """Take a piece of the changelog; it is summed when there is as much new as old, so the work stays linear."""
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._positive = self._positive and batch.weights is None
        if not self._positive and self._pending_rows > max(100_000, self._folded.num_rows):
            self._consolidate()

    def rows(self) -> pa.Table:
        """Return the rows that are there now, each as often as its weight says."""
        self._consolidate()
        if (self._counts == 1).all():
            return self._folded
        return self._folded.take(array_of(np.repeat(np.arange(len(self._counts)), np.maximum(self._counts, 0))))

    def _consolidate(self) -> None:
        if not self._pending:
            return
        tables = [self._folded, *(pa.Table.from_batches([batch.rows], self._schema) for batch in self._pending)]
        counts = np.concatenate([self._counts, *(weights_of(batch) for batch in self._pending)])
        self._pending, self._pending_rows = [], 0
        rows = pa.concat_tables(tables)
        if self._positive:
            self._folded, self._counts = rows, counts
        else:
            self._folded, self._counts = summed(rows, counts)


def summed(rows: pa.Table, weights: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """Return the distinct rows whose weights do not sum to zero, in the order they first came, and the sums."""
    group, count = group_numbers(rows)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, group, weights)
    first = np.full(count, len(group), np.int64)
    np.minimum.at(first, group, np.arange(len(group)))
    kept = np.flatnonzero(sums)
    kept = kept[np.argsort(first[kept], kind="stable")]
    return rows.take(array_of(first[kept])), sums[kept]


def group_numbers(rows: pa.Table) -> tuple[np.ndarray, int]:
    """Return a number per row, equal for rows equal in all columns (NULL equals NULL), and how many numbers there are."""
    number = np.zeros(rows.num_rows, np.int64)
    count = 1 if rows.num_rows else 0
    for column in rows.columns:
        code, codes = _codes(column.combine_chunks())
        _, number = np.unique(number * codes + code, return_inverse=True)
        count = int(number.max()) + 1 if len(number) else 0
    return number, count


def _codes(column: pa.Array) -> tuple[np.ndarray, int]:
    """Return a small number per value and the count of numbers; nested values are told apart part by part."""
    if pa.types.is_nested(column.type):
        parts = _parts(column)
        number, count = group_numbers(parts)
        return number, count
    encoded = column.dictionary_encode(null_encoding="encode")
    return words(encoded.indices), max(1, len(encoded.dictionary))


def _parts(column: pa.Array) -> pa.Table:
    """Return flat columns that together say all a nested column says: a struct's fields; a list's length and its items by position."""
    missing = pc.is_null(column)
    if pa.types.is_struct(column.type):
        return pa.table([missing, *column.flatten()], names=[str(i) for i in range(column.type.num_fields + 1)])
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
    length = pc.fill_null(pc.list_value_length(column), 0)
    longest = pc.max(length).as_py() or 0
    items = [_item(column, length, position) for position in range(longest)]
    return pa.table([missing, length, *items], names=[str(i) for i in range(longest + 2)])


def _item(column: pa.Array, length: pa.Array, position: int) -> pa.Array:
    """Return the items at one position of the lists, NULL where a list is shorter."""
    starts = column.offsets.slice(0, len(column))
    index = pc.if_else(pc.greater(length, position), pc.add(starts, position), pa.scalar(None, pa.int32()))
    return column.values.take(index)


def weights_of(batch: Batch) -> np.ndarray:
    """Return the weights of a batch, all +1 when it carries none."""
    return np.ones(batch.num_rows, np.int64) if batch.weights is None else batch.weights


def with_ops(batch: Batch, upsert_key: tuple[int, ...] | None) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return every change of a batch as a row of its own, and its op as an index into ``+I -U +U -D``.

    A -1 and a +1 of one upsert key become ``-U`` and ``+U``, side by side; without a key there are only ``+I`` and ``-D``.
    """
    if batch.weights is None:
        return batch.rows, np.full(batch.num_rows, INSERT, np.int8)
    weights = batch.weights
    positions = np.repeat(np.arange(len(weights)), np.abs(weights))
    added = weights[positions] > 0
    op = np.where(added, INSERT, DELETE).astype(np.int8)
    if upsert_key is not None and len(positions):
        group, count = group_numbers(pa.Table.from_batches([batch.rows]).select(list(upsert_key)))
        group = group[positions]
        first = np.full(count, len(group), np.int64)
        np.minimum.at(first, group, np.arange(len(group)))
        order = np.lexsort((added, first[group]))
        positions, added, group = positions[order], added[order], group[order]
        both = np.zeros(count, np.int8)
        np.bitwise_or.at(both, group, np.where(added, 1, 2).astype(np.int8))
        updated = both[group] == 3
        op = np.where(updated, np.where(added, UPDATE_AFTER, UPDATE_BEFORE), np.where(added, INSERT, DELETE)).astype(np.int8)
    return batch.rows.take(array_of(positions)), op


def change_rows(batch: Batch, upsert_key: tuple[int, ...] | None) -> pa.RecordBatch:
    """Return the changes of a batch with a first column ``op``."""
    rows, op = with_ops(batch, upsert_key)
    ops = texts(list(_OPS)).take(array_of(op.astype(np.int64)))
    return pa.RecordBatch.from_arrays([ops, *rows.columns], schema=change_schema(rows.schema))


def change_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a changelog: ``op``, then the row."""
    return pa.schema([OP_FIELD, *schema])


def new_rows(batch: Batch) -> pa.RecordBatch:
    """Return the rows a batch adds, without those it takes back."""
    if batch.weights is None:
        return batch.rows
    return batch.rows.take(array_of(np.repeat(np.arange(batch.num_rows), np.maximum(batch.weights, 0))))
