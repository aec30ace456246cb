"""Entries with their keys as the table of a frozen state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from engine.arrays import array_of
from engine.frozen_state import SLOT, by_group
from engine.kernels.hash import stable_hash
from engine.row_pieces import in_halves, taken
from engine.state.key_groups import groups_of_hashes


def key_columns(keys: Sequence[pa.Array]) -> dict[str, pa.Array]:
    """Return key columns by their names in a snapshot."""
    return {f"k{i}": column for i, column in enumerate(keys)}


Entries = tuple[Sequence[pa.Array], Mapping[str, pa.Array]]
"""The keys of some slots, and all their columns by name."""


def table_by_keys(slots: np.ndarray, entries: Callable[[np.ndarray], Entries], max_parallelism: int) -> Callable[[], pa.Table]:
    """Return what makes, in any thread, a table of key_group, SLOT and columns that nobody changes, in the order of the groups of their keys.

    The columns of ``entries`` are read now: of all slots at once, or of fewer where they are more than an array holds.
    """
    parts = in_halves(lambda some: (some, *entries(some)), slots)

    def table() -> pa.Table:
        tables = [_by_keys(some, keys, columns, max_parallelism) for some, keys, columns in parts]
        if len(tables) == 1:
            return tables[0]
        whole = pa.concat_tables(tables)
        return taken(whole, np.argsort(whole.column(0).to_numpy(), kind="stable"))

    return table


def _by_keys(slots: np.ndarray, keys: Sequence[pa.Array], columns: Mapping[str, pa.Array], max_parallelism: int) -> pa.Table:
    groups = groups_of_hashes(stable_hash(list(keys)), max_parallelism) if keys else np.zeros(slots.size, np.uint16)
    order, first = by_group(groups, slots)
    places = array_of(order)
    return pa.table([*first, *(column.take(places) for column in columns.values())], names=["key_group", SLOT, *columns])
