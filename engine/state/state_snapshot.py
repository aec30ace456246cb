"""FrozenState: keyed state as it was at a barrier, whole or as the changes since an earlier checkpoint.

The tables are made later, by any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of

SLOT = "@slot"
"""The column behind ``key_group`` that identifies entries of one task: of two with one slot, the one of the
later increment is valid.
"""

ARRIVED = "arrived"
"""A column of rows whose order of arrival counts: rising numbers in that order, comparable within one key
group.
"""

BEHIND = "behind"
"""A column of rows that may have arrived behind their split's watermark: that watermark. Rows on time have
the least one.
"""

WRITTEN = "written_ms"
"""The last column of entries with a TTL: when each was last written, wall-clock milliseconds."""

COPIES = "copies"
"""The last column of pending rows where one row stands for several equal ones: for how many."""

OPTIONAL = (ARRIVED, BEHIND, WRITTEN, COPIES)
"""Columns at the end, in this order, that a snapshot of the same state may have or lack: how rows are used
has changed, or it is an old one.
"""


@dataclass(frozen=True)
class FrozenState:
    """``pieces`` may be called by any thread: key_group (ascending from piece to piece), SLOT (uint32), then
    the state's columns.

    There is at least one piece. Each is built when the caller asks for it: of a large state only one is in
    memory beside it. ``base``: the checkpoint that the changes refer to, None when it is whole. ``changed``:
    then every slot touched since, live or not. ``tracked``: whether the state knows its changes.
    """

    pieces: Callable[[], Iterator[pa.Table]]
    base: int | None = None
    changed: np.ndarray | None = None
    tracked: bool = True


Snapshot = FrozenState | pa.Table
"""A keyed state in a snapshot: tracked by slot, or simply all of it."""


def whole(pieces: Iterator[pa.Table]) -> pa.Table:
    """Return the pieces of a frozen state as the table of a snapshot, which names no slots."""
    return pa.concat_tables(pieces).drop_columns([SLOT])


def by_group(groups: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, list[pa.Array]]:
    """Return the order of entries by key group, and the first two columns of a frozen table in that order.
    The order within a group does not change.
    """
    # Stable: entries of one key group keep their order.
    order = np.argsort(groups, kind="stable")
    counts = np.bincount(groups)
    # the sorted groups: without gathering each
    ordered = np.repeat(np.arange(counts.size, dtype=groups.dtype), counts)
    # Slots and numbers of rows fit 32 bits.
    return order, [array_of(ordered), array_of(slots.astype(np.uint32)[order])]
