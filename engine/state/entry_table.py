"""Keyed entries of a state as the tables of a snapshot, in the order of their key groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import LIMITS, in_halves
from penstock.engine.kernels.index import slots as kernel
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.frozen_arrays import Columns
from penstock.engine.state.state_snapshot import SLOT

# Keys hashed at a time: beside a large state there are only so many.
_HASHED_AT_ONCE = 1 << 20
# Entries whose bytes tell how many make a piece.
_MEASURED = 256

Entries = Callable[[np.ndarray], Mapping[str, pa.Array]]
"""Makes all columns of entries at positions, by their names."""


def key_columns(keys: Sequence[pa.Array]) -> dict[str, pa.Array]:
    """Return key columns by their names in a snapshot."""
    return {f"k{i}": column for i, column in enumerate(keys)}


def hashes_of_keys(keys: Columns, at: np.ndarray) -> np.ndarray:
    """Return the stable hashes of the keys at positions, uint64; 0 where there are no key columns."""
    hashes = np.zeros(at.size, np.uint64)
    if not keys(at[:0]):
        return hashes
    for first in range(0, at.size, _HASHED_AT_ONCE):
        some = np.arange(first, min(first + _HASHED_AT_ONCE, at.size))
        for rows, columns in in_halves(lambda rows: (rows, keys(at[rows])), some):
            hashes[rows] = stable_hash(columns)
    return hashes


def pieces_by_keys(
    slots: np.ndarray, at: np.ndarray, keys: Columns, entries: Entries, max_parallelism: int
) -> Iterator[pa.Table]:
    """Yield tables of key_group, SLOT and the columns of ``entries``, in the order of the groups of their
    keys. There is at least one.

    ``at``: the positions, in frozen columns, of the entries of ``slots``. A table has about
    ``LIMITS.batch_bytes``, and is made when it is asked for.
    """
    order, ends = np.empty(slots.size, np.int64), np.zeros(max_parallelism, np.int64)
    kernel.order_by_group(hashes_of_keys(keys, at), max_parallelism, ends, order)
    groups = np.repeat(np.arange(max_parallelism, dtype=np.uint16), np.diff(ends, prepend=0))
    measured = np.ascontiguousarray(at[:: max(1, at.size // _MEASURED)])
    size = sum(column.nbytes for made in in_halves(entries, measured) for column in made.values())
    rows = max(1, LIMITS.batch_bytes * max(1, measured.size) // max(1, size))
    for first in range(0, max(slots.size, 1), rows):
        # halves: a few entries may be larger than all others
        made = in_halves(lambda some: (some, entries(at[some])), order[first : first + rows])
        start = first
        for some, columns in made:
            marks = {
                "key_group": array_of(groups[start : start + some.size]),
                SLOT: array_of(slots[some].astype(np.uint32)),
            }
            start += some.size
            yield pa.table(marks | dict(columns))
