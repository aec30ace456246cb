"""GroupState: the groups of an unbounded GROUP BY: keys to slots, and the aggregates of each slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.operator import TrackedState
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import key_columns, pieces_by_keys
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

    def mark(self, slots: np.ndarray) -> None:
        """Note that slots change. To be called before the first of their aggregates or write times does."""
        self.changes.mark(slots, self.keys.capacity)
        self.accumulators.save(slots)

    def remove(self, slots: np.ndarray) -> None:
        """Forget keys and their aggregates."""
        # Before the keys go: an index that becomes empty shrinks its capacity below these slots.
        self.mark(slots)
        self.accumulators.clear(slots)
        self.keys.remove(slots)

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """The table has key columns k0.., then the accumulators' columns. All is copied later, by the thread
        that makes the table; ``mark`` saves what changes before.
        """
        frozen_keys, live_among = self.keys.freeze(), self.keys.slots_at_barrier()
        frozen_accumulators = self.accumulators.freeze(self.keys.allocated)
        frozen_writes = None if self.writes is None else self.writes.freeze()

        def pieces() -> Iterator[pa.Table]:
            live = live_among(slots)
            # where everything is copied a slot is its own position
            asked, at = (None, live) if slots is None else (live, np.arange(live.size))
            keys, accumulators = frozen_keys(asked), frozen_accumulators(asked)
            written = None if frozen_writes is None else frozen_writes(asked)

            def entries(at: np.ndarray) -> Mapping[str, pa.Array]:
                columns = key_columns(keys(at)) | accumulators(at)
                return columns if written is None else columns | {WRITTEN: array_of(written(at))}

            return pieces_by_keys(live, at, keys, entries, self._max_parallelism)

        return pieces

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
