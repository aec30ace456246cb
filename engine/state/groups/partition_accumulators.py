"""PartitionTotals: accumulators of OVER partitions. PartitionLives: the TTL of idle partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import TrackedState
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import Entries, key_columns, pieces_by_keys
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from penstock.engine.state.state_snapshot import WRITTEN, whole
from penstock.engine.state.time_to_live import LastWrites, restore_lives


class PartitionTotals(TrackedState, Mapped):
    """By slot of ``keys``, which is shared: ``rows`` and ``groups`` passed, int64, and ``accumulators``.
    Snapshots have the slots with rows.
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
        # By slot: rows and groups of peers that passed. 0 rows: the slot has no entry here.
        self.rows, self.groups = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._keys = keys
        self._width = len(partition_types)
        self._max_parallelism = max_parallelism
        self.changes = SlotChanges()

    def __len__(self) -> int:
        return int(np.count_nonzero(self.rows))

    def reserve(self) -> None:
        """Reserve all slots assigned so far."""
        capacity = self._keys.capacity
        if capacity > self.rows.size:
            self.rows, self.groups = grown(self.rows, capacity), grown(self.groups, capacity)
            self.accumulators.reserve(capacity)

    def add(self, slots: np.ndarray, rows: pa.RecordBatch, group_slots: np.ndarray) -> None:
        """Count rows and groups of peers by slot."""
        # ``add.at``, since a slot may be named more than once.
        np.add.at(self.rows, slots, 1)
        np.add.at(self.groups, group_slots, 1)
        self.accumulators.add(slots, rows)
        self.changes.mark(slots, self.rows.size)

    def count(self, slots: np.ndarray) -> None:
        # ``group_slots`` would be the same rows: this is the count of operators without frames over groups.
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
        # Slots assigned for pending rows only may be beyond the arrays.
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


class PartitionLives:
    """Passed rows and totals of a partition expire ``ttl_ms`` after one of its rows arrived or passed (0:
    never). Pending rows do not expire.
    """

    def __init__(self, ttl_ms: int, clock: Clock) -> None:
        self.writes = LastWrites(ttl_ms, clock) if ttl_ms else None

    def touch(self, slots: np.ndarray, capacity: int) -> None:
        """Note that rows of partitions have passed."""
        if self.writes is not None:
            self.writes.touch(slots, capacity)

    def expire(self, now_ms: int, keys: KeyIndex, rows: TimedRows, totals: PartitionTotals) -> np.ndarray:
        """Forget what has expired. Return the partitions of which something was stored, including those with
        pending rows.
        """
        if self.writes is None:
            return np.zeros(0, np.int64)
        over = self.writes.due(now_ms, keys.live_slots)
        if not over.size:
            return over
        totals.reserve()
        expired = over[(rows.passed.counts(over) > 0) | (totals.rows[over] > 0)]
        _, ids = rows.passed.expand(over)
        # The rows were linked (passed); none is fresh.
        rows.forget(ids, ids[:0])
        totals.clear(over)
        # The slots remain in use while rows are pending, so they are due again only after another TTL.
        self.writes.touch(over, keys.capacity)
        return expired
