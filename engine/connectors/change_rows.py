"""A changelog batch as single changes with an op: an update of one key is a pair -U, +U; the rest are +I and -D."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.elements import Batch

INSERT, BEFORE, AFTER, DELETE = "+I", "-U", "+U", "-D"


def change_rows(batch: Batch, upsert_key: tuple[int, ...] | None) -> tuple[pa.RecordBatch, np.ndarray]:
    """Return rows and one op per row; a weight of n gives n rows. Within one key of the batch what goes comes before what comes."""
    if batch.weights is None:
        return batch.rows, np.full(batch.num_rows, INSERT)
    order = np.repeat(np.arange(batch.num_rows), np.abs(batch.weights))
    comes = batch.weights[order] > 0
    if upsert_key is None:
        return batch.rows.take(pa.array(order)), np.where(comes, INSERT, DELETE)
    keys = _key_numbers(batch.rows, upsert_key)[order]
    sequence = np.lexsort((order, comes, keys))
    order, comes, keys = order[sequence], comes[sequence], keys[sequence]
    count = int(keys.max()) + 1 if len(keys) else 0
    has_old, has_new = (np.bincount(keys[mask], minlength=count) > 0 for mask in (~comes, comes))
    ops = np.where(comes, np.where(has_old[keys], AFTER, INSERT), np.where(has_new[keys], BEFORE, DELETE))
    return batch.rows.take(pa.array(order)), ops


def _key_numbers(rows: pa.RecordBatch, key: tuple[int, ...]) -> np.ndarray:
    """Return a small number per row, equal where the key columns are, in order of first appearance."""
    if not key:
        return np.zeros(rows.num_rows, np.int64)
    codes = [rows.column(index).dictionary_encode("encode").indices.to_numpy(zero_copy_only=False) for index in key]
    _, first, numbers = np.unique(np.stack(codes, axis=1), axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[numbers.ravel()]
