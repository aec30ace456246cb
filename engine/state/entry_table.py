"""Keyed entries of a state as the tables of a snapshot, in the order of their key groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.key_groups import groups_of_hashes
from penstock.engine.api.row_pieces import LIMITS, in_halves, take_in_pieces
from penstock.engine.kernels.index import slots as kernel
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.state_snapshot import SLOT, by_group


def key_columns(keys: Sequence[pa.Array]) -> dict[str, pa.Array]:
    """Return key columns by their names in a snapshot."""
    return {f"k{i}": column for i, column in enumerate(keys)}


Entries = tuple[Sequence[pa.Array], Mapping[str, pa.Array]]
"""The keys of some slots, and all their columns by name."""


def pieces_by_keys(
    slots: np.ndarray, entries: Callable[[np.ndarray], Entries], max_parallelism: int
) -> Callable[[], Iterator[pa.Table]]:
    """Return what makes, in any thread, tables of key_group, SLOT and columns that nobody changes, in the
    order of the groups of their keys.

    The columns of ``entries`` are read now: of all slots at once, or of fewer where they are more than an
    array holds.
    """
    # Read at the barrier, while the state is what it was; only sorting and cutting happen later.
    parts = in_halves(lambda some: (some, *entries(some)), slots)

    def pieces() -> Iterator[pa.Table]:
        groups = np.concatenate([_groups(some, keys, max_parallelism) for some, keys, _ in parts])
        order, first = by_group(groups, np.concatenate([some for some, _, _ in parts]))
        tables = [pa.table(dict(columns)) for _, _, columns in parts]
        # The usual case: all in one piece.
        if len(tables) == 1 and tables[0].nbytes <= LIMITS.batch_bytes:
            yield pa.table(
                [*first, *tables[0].take(array_of(order)).columns],
                names=["key_group", SLOT, *tables[0].column_names],
            )
            return
        start = 0
        for piece in take_in_pieces(pa.concat_tables(tables), order, LIMITS.batch_bytes):
            # key_group and SLOT of the piece's rows.
            marks = [column.slice(start, piece.num_rows) for column in first]
            yield pa.table([*marks, *piece.columns], names=["key_group", SLOT, *piece.schema.names])
            start += piece.num_rows

    return pieces


def _groups(slots: np.ndarray, keys: Sequence[pa.Array], max_parallelism: int) -> np.ndarray:
    return (
        groups_of_hashes(stable_hash(list(keys)), max_parallelism)
        if keys
        else np.zeros(slots.size, np.uint16)
    )


def pieces_of_copies(
    slots: np.ndarray,
    hashes: np.ndarray,
    entries: Callable[[np.ndarray], Mapping[str, pa.Array]],
    max_parallelism: int,
) -> Iterator[pa.Table]:
    """Yield tables as ``pieces_by_keys`` does, of columns of numbers: ``entries`` makes those at positions
    of ``slots``, and ``hashes`` are of their keys.
    """
    order, ends = np.empty(slots.size, np.int64), np.zeros(max_parallelism, np.int64)
    kernel.order_by_group(hashes, max_parallelism, ends, order)
    counts = np.diff(ends, prepend=0)
    groups = np.repeat(np.arange(max_parallelism, dtype=np.uint16), counts)
    # one row tells the bytes of each
    width = max(1, sum(column.nbytes for column in entries(order[:1]).values()))
    rows = max(1, LIMITS.batch_bytes // width)
    for first in range(0, max(slots.size, 1), rows):
        at = order[first : first + rows]
        columns = entries(at)
        marks = {
            "key_group": array_of(groups[first : first + rows]),
            SLOT: array_of(slots[at].astype(np.uint32)),
        }
        yield pa.table(marks | dict(columns))
