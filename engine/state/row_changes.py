"""Which rows of neighbouring pairs, an old and a new one each, differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.arrays import array_of, is_true, truths
from engine.kernels import columns as col


def changed_pairs(pairs: Sequence[pa.Array], count: int) -> np.ndarray:
    """Return which of ``count`` pairs of neighbouring rows differ in some column; NULL is like NULL, NaN like NaN."""
    changed = np.zeros(count, np.bool_)
    for column in pairs:
        changed |= _differs(column)
    return changed


def _differs(pairs: pa.Array) -> np.ndarray:
    if col.is_bytes(pairs.type):
        old, new = (pairs.take(array_of(np.arange(half, len(pairs), 2))) for half in (0, 1))
        unequal = is_true(pc.not_equal(old, new))
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
    return (was != is_now) | (was & is_now & unequal)
