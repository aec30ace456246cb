"""GroupState: the groups of an unbounded GROUP BY: keys to slots, and the aggregates of each slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.operator import TrackedState
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import Entries, key_columns, pieces_by_keys, pieces_of_copies
from penstock.engine.state.frozen_arrays import FrozenViews
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
        self._frozen = FrozenViews()

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
        self._frozen.save(slots)

    def remove(self, slots: np.ndarray) -> None:
        """Forget keys and their aggregates."""
        # Before the keys go: an index that becomes empty shrinks its capacity below these slots.
        self.mark(slots)
        self.accumulators.clear(slots)
        self.keys.remove(slots)

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """The table has key columns k0.., then the accumulators' columns. Numbers are copied later, by the
        thread that makes the table; ``mark`` saves what changes before. Texts, and aggregates that are more
        than numbers, are copied now.
        """
        if self._arrays() is not None:
            return self._pieces_later(slots)
        live = self.keys.live_slots() if slots is None else self.keys.slots_at_barrier()(slots)
        return pieces_by_keys(live, self._entries, self._max_parallelism)

    def _arrays(self) -> list[np.ndarray] | None:
        """Return all that a snapshot has, by slot; ``None`` where that is not only numbers."""
        words, table = self.keys.words, self.accumulators.table
        if words is None or table is None:
            return None
        return (
            [words, table] if self.writes is None else [words, table, self.writes.by_id(self.keys.capacity)]
        )

    def _pieces_later(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        keys, live_among, accumulators = self.keys.reader(), self.keys.slots_at_barrier(), self.accumulators
        frozen = self._frozen.freeze(lambda: self._arrays() or [], self.keys.allocated)

        def pieces() -> Iterator[pa.Table]:
            live = live_among(slots)
            words, table, *written = frozen.copies(None if slots is None else live)

            def entries(positions: np.ndarray) -> Mapping[str, pa.Array]:
                its = live[positions]
                # where everything was copied a slot is its own position
                at = its if slots is None else positions
                columns = key_columns(keys(its, words[at])) | accumulators.columns(at, table)
                return columns | ({WRITTEN: array_of(written[0][at])} if written else {})

            of_live = words if live.size == len(words) else words[live]
            return pieces_of_copies(live, stable_hash(keys(live, of_live)), entries, self._max_parallelism)

        return pieces

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
