"""Differences of rows: two sets of rows as changes, and which of neighbouring pairs (old, new) differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, is_true, truths
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.batch_concat import all_weights, concat_batches, take_rows_from
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.index.key_index import KeyIndex


def difference(before: Sequence[Batch], after: Sequence[Batch]) -> list[Batch]:
    """Return the changes from the old rows to the new: retractions, then additions; none when nothing
    changed. They are one batch, or as few as Arrow allows.
    """
    if not (before or after):
        return []
    pieces = concat_batches([*before, *after])  # one look-up and one take for both sides, not one for each
    first, net = net_weights(pieces, np.concatenate([-all_weights(before), all_weights(after)]))
    changed = np.flatnonzero(net)
    # Retractions before additions, each in order of first occurrence: a reader never sees two rows of one
    # key.
    changed = changed[np.lexsort((first[changed], net[changed] > 0))]
    weights = net[changed]
    # Only additions of weight 1: an insert-only batch has no array of weights.
    return take_rows_from(pieces, first[changed], None if (weights == 1).all() else weights)


def net_weights(pieces: Sequence[Batch], weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first position of each distinct row, counted through all pieces, and the sum of the weights
    of its equals. Both are int64; a sum may be 0.
    """
    if not weights.size:
        return weights, weights
    # The same equality as GROUP BY: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0.
    index = KeyIndex(pieces[0].rows.schema.types)
    slots = np.concatenate([index.lookup_or_insert(p.rows.columns, p.num_rows) for p in pieces])
    _, first, inverse = np.unique(slots, return_index=True, return_inverse=True)
    net = np.zeros(first.size, np.int64)
    np.add.at(net, inverse, weights)
    return first, net


def changed_pairs(pairs: Sequence[pa.Array], count: int) -> np.ndarray:
    """Return which of ``count`` pairs of neighbouring rows differ in some column; NULL is like NULL, NaN
    like NaN.
    """
    changed = np.zeros(count, np.bool_)
    for column in pairs:
        changed |= _differs(column)
    return changed


def _differs(pairs: pa.Array) -> np.ndarray:
    # Rows are interleaved: old row i is at 2i, new row i at 2i + 1.
    halves = np.arange(0, len(pairs), 2)
    if pa.types.is_nested(pairs.type):
        unequal = _nested_differ(pairs.take(array_of(halves)), pairs.take(array_of(halves + 1)))
    elif col.is_bytes(pairs.type):
        # Text and bytes have no words: Arrow compares them; NULL where one is NULL, which is not true.
        old, new = (pairs.take(array_of(halves + half)) for half in (0, 1))
        unequal = is_true(pc.not_equal(old, new))
    # Two words a decimal.
    elif pa.types.is_decimal128(pairs.type):
        low, high = col.wide_words(pairs)
        unequal = (low[0::2] != low[1::2]) | (high[0::2] != high[1::2])
    else:
        words = col.words(pairs)
        unequal = words[0::2] != words[1::2]
    if not pairs.null_count:
        return unequal
    valid = truths(pairs.is_valid())
    was, is_now = valid[0::2], valid[1::2]
    # One NULL and the other not: changed. Both NULL: not. Both values: as compared.
    return (was != is_now) | (was & is_now & unequal)


def _nested_differ(old: pa.Array, new: pa.Array) -> np.ndarray:
    """Return which values of two nested columns differ; undefined where one is NULL."""
    # A row differs when one of its fields does.
    if pa.types.is_struct(old.type):
        differs = np.zeros(len(old), np.bool_)
        for one, other in zip(old.flatten(), new.flatten(), strict=True):
            differs |= _differs(_interleaved(one, other))
        return differs
    # A map compares as the list of its entries, in stored order.
    if pa.types.is_map(old.type):
        entries = pa.list_(pa.struct([("key", old.type.key_type), ("value", old.type.item_type)]))
        old, new = old.cast(entries), new.cast(entries)
    # Lists of different lengths differ; of equal lengths their items are compared pair by pair.
    lengths, others = (
        col.words(pc.fill_null(pc.list_value_length(half), 0).cast(pa.int64())) for half in (old, new)
    )
    differs = lengths != others
    same_length = np.flatnonzero(~differs & (lengths > 0))
    items = _differs(
        _interleaved(old.take(array_of(same_length)).flatten(), new.take(array_of(same_length)).flatten())
    )
    # Each item reports to the list it is of.
    owners = np.repeat(same_length, lengths[same_length])
    differs[owners[items]] = True
    return differs


def _interleaved(old: pa.Array, new: pa.Array) -> pa.Array:
    # 0, n, 1, n + 1, ...: old and new in turn.
    order = np.arange(2 * len(old)).reshape(2, -1).T.ravel()
    return pa.concat_arrays([old, new]).take(array_of(order))
