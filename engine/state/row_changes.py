"""Which rows of two equally long sets of columns differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.kernels import columns as col


def changed_rows(before: Sequence[pa.Array], after: Sequence[pa.Array], num_rows: int) -> np.ndarray:
    """Return a mask of the rows that differ in some column; NULL is like NULL, NaN like NaN."""
    changed = np.zeros(num_rows, np.bool_)
    for old, new in zip(before, after, strict=True):
        changed |= _differs(old, new)
    return changed


def _differs(old: pa.Array, new: pa.Array) -> np.ndarray:
    if col.is_bytes(old.type):
        unequal = pc.not_equal(old, new).fill_null(False).to_numpy(zero_copy_only=False)
    elif pa.types.is_decimal128(old.type):
        (old_low, old_high), (new_low, new_high) = col.wide_words(old), col.wide_words(new)
        unequal = (old_low != new_low) | (old_high != new_high)
    else:
        unequal = col.words(old) != col.words(new)
    if not old.null_count and not new.null_count:
        return unequal
    was, is_now = (array.is_valid().to_numpy(zero_copy_only=False) for array in (old, new))
    return (was != is_now) | (was & is_now & unequal)
