"""PartitionTotals: what each partition has had so far: rows, groups of peers, aggregates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.operator import TrackedState
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import Entries, key_columns, pieces_by_keys
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.state_snapshot import WRITTEN, whole
from penstock.engine.state.time_to_live import LastWrites, restore_lives


class PartitionTotals(TrackedState, Mapped):
    """By slot of ``keys``, which is shared: ``rows`` and ``groups`` passed, int64, and ``accumulators``.
    Snapshots hold the slots with rows.
    """

    MAPPED = ("rows", "groups")

    def __init__(
        self,
        partition_types: Sequence[pa.DataType],
        keys: KeyIndex,
        accumulators: Accumulators,
        max_parallelism: int,
        writes: LastWrites | None = None,
    ) -> None:
        self.writes = writes
        self.accumulators = accumulators
        self.rows, self.groups = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._keys = keys
        self._width = len(partition_types)
        self._max_parallelism = max_parallelism
        self.changes = SlotChanges()

    def __len__(self) -> int:
        return int(np.count_nonzero(self.rows))

    def reserve(self) -> None:
        """Have room for all slots given so far."""
        capacity = self._keys.capacity
        if capacity > self.rows.size:
            self.rows, self.groups = grown(self.rows, capacity), grown(self.groups, capacity)
            self.accumulators.reserve(capacity)

    def add(self, slots: np.ndarray, rows: pa.RecordBatch, group_slots: np.ndarray) -> None:
        """Count rows and groups of peers, given the slot of each."""
        np.add.at(self.rows, slots, 1)
        np.add.at(self.groups, group_slots, 1)
        self.accumulators.add(slots, rows)
        self.changes.mark(slots, self.rows.size)

    def count(self, slots: np.ndarray) -> None:
        """Count a row for each slot, which may repeat."""
        np.add.at(self.rows, slots, 1)
        self.changes.mark(slots, self.rows.size)

    def clear(self, slots: np.ndarray) -> None:
        """Forget slots."""
        self.rows[slots] = self.groups[slots] = 0
        self.accumulators.clear(slots)
        self.changes.mark(slots, self.rows.size)

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Keys and totals are copied."""
        self.reserve()
        slots = np.flatnonzero(self.rows) if slots is None else slots[slots < self.rows.size]
        slots = slots[self.rows[slots] != 0]
        return pieces_by_keys(slots, self._columns, self._max_parallelism)

    def _columns(self, slots: np.ndarray) -> Entries:
        keys = self._keys.keys(slots)
        columns = {"rows": array_of(self.rows[slots]), "groups": array_of(self.groups[slots])}
        columns |= key_columns(keys) | self.accumulators.columns(slots)
        if self.writes is not None:
            columns[WRITTEN] = array_of(self.writes.of(slots))
        return keys, columns

    def restore(self, part: pa.Table) -> None:
        columns = {name: part.column(name).combine_chunks() for name in part.column_names}
        slots = self._keys.lookup_or_insert([columns[f"k{i}"] for i in range(self._width)], part.num_rows)
        self.reserve()
        self.rows[slots], self.groups[slots] = numbers_of(columns["rows"]), numbers_of(columns["groups"])
        self.accumulators.restore(
            slots, {name: column for name, column in columns.items() if name.startswith("a")}
        )
        if self.writes is not None:
            restore_lives(self.writes, slots, part, self._keys.capacity)
