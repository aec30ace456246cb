"""Row kinds: a changelog batch as single changes. An update of a key is a pair -U, +U; other rows are +I
and -D.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, texts
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import group_numbers, summed

OP_FIELD = pa.field("op", pa.string())
OPS = ("+I", "-U", "+U", "-D")
# positions in OPS
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


def change_rows(batch: Batch, upsert_key: tuple[int, ...] | None) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return every change of a batch as a row of its own, and its op as an index into ``OPS``. A weight of n
    becomes n rows.

    A -1 and a +1 of one upsert key become ``-U`` and ``+U``, side by side. Within one key deletions precede
    insertions. Changes that cancel within the batch are left out. Without a key there are only ``+I`` and
    ``-D``, in the batch's order.
    """
    # an insert-only batch
    if batch.weights is None:
        return batch.rows, np.full(batch.num_rows, INSERT, np.int8)
    # no key: an update is a deletion and an insertion
    if upsert_key is None:
        positions = np.repeat(np.arange(batch.num_rows), np.abs(batch.weights))
        return batch.rows.take(array_of(positions)), np.where(
            batch.weights[positions] > 0, INSERT, DELETE
        ).astype(np.int8)
    rows, weights = batch.rows, batch.weights
    group, count = _keys(rows, upsert_key)
    if _passing(group, count, weights > 0):
        # summing the weights cancels what comes and goes again within the batch
        table, weights = summed(pa.Table.from_batches([rows]), weights)
        rows = table.combine_chunks().to_batches()[0] if table.num_rows else rows.slice(0, 0)
        group, count = _keys(rows, upsert_key)
    return _paired(rows, weights, group, count)


def keyed_rows(
    batch: Batch, upsert_key: tuple[int, ...] | None, upserts: bool
) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return the changes of a batch for a table that replaces rows by key: rows, and which are deletions.

    Of an update there is the new row only, or the old one as a deletion before it. ``upserts``: rows come in
    the order of their changes and without old ones, so their weights say which are deletions, and are no sum.
    """
    if upserts:
        deleted = np.zeros(batch.num_rows, np.bool_) if batch.weights is None else batch.weights < 0
        return batch.rows, deleted
    rows, ops = change_rows(batch, upsert_key)
    return rows, (ops == DELETE) | (ops == UPDATE_BEFORE)


def _keys(rows: pa.RecordBatch, key: tuple[int, ...]) -> tuple[np.ndarray, int]:
    return group_numbers(pa.Table.from_batches([rows]).select(list(key)))


def _passing(group: np.ndarray, count: int, added: np.ndarray) -> bool:
    """Whether changes of one key may cancel: it has several insertions, or several deletions, or an insertion
    before a deletion.
    """
    come, go = np.bincount(group[added], minlength=count), np.bincount(group[~added], minlength=count)
    # two insertions of one key: one of them may be retracted within the batch
    if (come > 1).any() or (go > 1).any():
        return True
    # by key: the position of its insertion; one before the key's deletion is what the deletion may retract
    came = np.full(count, len(group))
    came[group[added]] = np.flatnonzero(added)
    return bool((came[group[~added]] < np.flatnonzero(~added)).any())


def _paired(
    rows: pa.RecordBatch, weights: np.ndarray, group: np.ndarray, count: int
) -> tuple[pa.RecordBatch, np.ndarray]:
    positions = np.repeat(np.arange(len(weights)), np.abs(weights))
    added, group = weights[positions] > 0, group[positions]
    first = np.full(count, len(group), np.int64)
    np.minimum.at(first, group, np.arange(len(group)))
    # keys by their first change; within a key deletions (False) first
    order = np.lexsort((added, first[group]))
    positions, added, group = positions[order], added[order], group[order]
    both = np.zeros(count, np.int8)
    np.bitwise_or.at(both, group, np.where(added, 1, 2).astype(np.int8))
    # 1 + 2: the key has an insertion and a deletion, which are an update
    updated = both[group] == 3
    op = np.where(
        updated, np.where(added, UPDATE_AFTER, UPDATE_BEFORE), np.where(added, INSERT, DELETE)
    ).astype(np.int8)
    return rows.take(array_of(positions)), op


def with_op_column(rows: pa.RecordBatch, ops: np.ndarray) -> pa.RecordBatch:
    """Return rows with their ops as a first column ``op``."""
    named = texts(list(OPS)).take(array_of(ops))
    return pa.RecordBatch.from_arrays([named, *rows.columns], schema=pa.schema([OP_FIELD, *rows.schema]))


def without_op_column(rows: pa.RecordBatch, names: list[str]) -> Batch:
    """Return rows that ``with_op_column`` made as changes of weight +1 and -1, their columns named anew."""
    gives = pc.is_in(rows.column(0), value_set=texts([OPS[INSERT], OPS[UPDATE_AFTER]]))
    weights = np.where(gives.to_numpy(zero_copy_only=False), 1, -1)
    return Batch(pa.RecordBatch.from_arrays(rows.columns[1:], names=names), weights)
