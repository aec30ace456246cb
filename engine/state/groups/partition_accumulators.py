"""PartitionTotals: accumulators of OVER partitions. PartitionLives: the TTL of idle partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import TrackedState
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import key_columns, pieces_by_keys
from penstock.engine.state.frozen_arrays import FrozenViews
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
        # Of rows and groups.
        self._views = FrozenViews()

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
        self._mark(slots)
        # ``add.at``, since a slot may be named more than once.
        np.add.at(self.rows, slots, 1)
        np.add.at(self.groups, group_slots, 1)
        self.accumulators.add(slots, rows)

    def _mark(self, slots: np.ndarray) -> None:
        """Note that slots change, before they do."""
        self.changes.mark(slots, self.rows.size)
        self._views.save(slots)
        self.accumulators.save(slots)

    def count(self, slots: np.ndarray) -> None:
        # ``group_slots`` would be the same rows: this is the count of operators without frames over groups.
        """Count a row for each slot, which may repeat."""
        self._mark(slots)
        np.add.at(self.rows, slots, 1)

    def clear(self, slots: np.ndarray) -> None:
        """Forget slots."""
        self._mark(slots)
        self.rows[slots] = self.groups[slots] = 0
        self.accumulators.clear(slots)

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """All is copied later, by the thread that makes the table; what changes before is saved."""
        # Slots assigned for pending rows only may be beyond the arrays.
        self.reserve()
        size = self.rows.size
        asked = None if slots is None else slots[slots < size]
        frozen_keys, frozen = self._keys.freeze(), self._views.freeze([self.rows, self.groups], size)
        frozen_accumulators = self.accumulators.freeze(size)
        written = None if self.writes is None else self.writes.freeze()

        def pieces() -> Iterator[pa.Table]:
            rows, groups = frozen.copies(asked)
            at = np.flatnonzero(rows)
            keys, accumulators = frozen_keys(None), frozen_accumulators(asked)

            def keys_of(at: np.ndarray) -> list[pa.Array]:
                return keys(at if asked is None else asked[at])

            def entries(at: np.ndarray) -> Mapping[str, pa.Array]:
                columns = {"rows": array_of(rows[at]), "groups": array_of(groups[at])}
                columns |= key_columns(keys_of(at)) | accumulators(at)
                if written is not None:
                    columns[WRITTEN] = array_of(written(None)(at if asked is None else asked[at]))
                return columns

            live = at if asked is None else asked[at]
            return pieces_by_keys(live, at, keys_of, entries, self._max_parallelism)

        return pieces

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
