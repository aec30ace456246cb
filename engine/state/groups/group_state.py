"""GroupState: the groups of an unbounded GROUP BY: keys to slots, and the aggregates of each slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.operator import TrackedState
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import Entries, key_columns, pieces_by_keys
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.state_snapshot import WRITTEN, whole
from penstock.engine.state.time_to_live import LastWrites, written_column


class GroupState(TrackedState):
    """Keys, their aggregates, and last among these the number of rows of each key. ``writes``: keys expire
    some time after they were last written.
    """

    def __init__(
        self,
        key_types: Sequence[pa.DataType],
        accumulators: Accumulators,
        max_parallelism: int,
        writes: LastWrites | None = None,
    ) -> None:
        self.writes = writes
        # Keys to slots; the accumulators have one row of state for each slot.
        self.keys = KeyIndex(key_types)
        self.accumulators = accumulators
        self._num_keys = len(key_types)
        self._max_parallelism = max_parallelism
        self.changes = SlotChanges()

    def __len__(self) -> int:
        return len(self.keys)

    def slots(self, key_columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        """Return the slot of each row, new keys getting one."""
        slots = self.keys.lookup_or_insert(key_columns, num_rows)
        self.accumulators.reserve(self.keys.capacity)
        return slots

    def remove(self, slots: np.ndarray) -> None:
        """Forget keys and their aggregates."""
        # Before the keys go: an index that becomes empty shrinks its capacity below these slots.
        self.changes.mark(slots, self.keys.capacity)
        self.accumulators.clear(slots)
        self.keys.remove(slots)

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Keys and aggregates are copied; the table has key columns k0.., then the accumulators' columns."""
        live = self.keys.live_slots()
        if slots is None:
            slots = live
        else:
            # A tracked slot may be beyond the capacity by now; those that are no longer live are missing in
            # the snapshot, which says that they were removed.
            is_live = np.zeros(max(self.keys.capacity, 1 + int(slots.max(initial=0))), np.bool_)
            is_live[live] = True
            slots = slots[is_live[slots]]
        return pieces_by_keys(slots, self._entries, self._max_parallelism)

    def _entries(self, slots: np.ndarray) -> Entries:
        keys = self.keys.keys(slots)
        columns = key_columns(keys) | self.accumulators.columns(slots)
        if self.writes is not None:
            columns[WRITTEN] = array_of(self.writes.of(slots))
        return keys, columns

    def restore(self, part: pa.Table) -> None:
        # k0, k1, ... are the keys, a0, a1, ... the accumulators' columns.
        """Add keys of a snapshot."""
        columns = {name: part.column(name).combine_chunks() for name in part.column_names}
        slots = self.slots([columns[f"k{i}"] for i in range(self._num_keys)], part.num_rows)
        self.accumulators.restore(
            slots, {name: column for name, column in columns.items() if name.startswith("a")}
        )
        # First as written now, for snapshots without write times; the recorded times replace that.
        if self.writes is not None:
            self.writes.touch(slots, self.keys.capacity)
            if (written := written_column(part)) is not None:
                self.writes.restore(slots, written, self.keys.capacity)

    def due(self, now_ms: int) -> np.ndarray:
        """Return the slots of keys that have expired by the clock."""
        return np.zeros(0, np.int64) if self.writes is None else self.writes.due(now_ms, self.keys.live_slots)
