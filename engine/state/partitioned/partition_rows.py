"""PartitionRows: rows that belong to partitions, as state. KeyedRows finds one of a partition by a key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.key_groups import groups_of_hashes
from penstock.engine.api.operator import TrackedState
from penstock.engine.api.row_pieces import batches_of, in_halves
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import hashes_of_keys
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import MultiIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.rows.row_store import RowStore
from penstock.engine.state.state_snapshot import ARRIVED, SLOT, WRITTEN, by_group, whole
from penstock.engine.state.time_to_live import LastWrites, restore_lives


@dataclass(frozen=True, eq=False)
class PartitionKeys:
    """The partitions of one subtask: their keys to slots, shared by all states, and the types of the keys.
    The operator removes a key that no state has rows of.
    """

    keys: KeyIndex
    types: tuple[pa.DataType, ...]
    max_parallelism: int

    @staticmethod
    def of(types: Sequence[pa.DataType], max_parallelism: int) -> PartitionKeys:
        """Return no partitions yet."""
        return PartitionKeys(KeyIndex(types), tuple(types), max_parallelism)


# The frozen numbers that say which partition a row is of, one more than its slot.
_OWNER = "owner"


class PartitionRows(TrackedState, Mapped):
    """Rows by id, each linked to the slot of its partition.

    ``numbered``: the rows of a partition are in order of arrival, after a restore too. ``writes``: the rows
    of a partition expire together, some time after the partition was last written. A snapshot has the key
    columns k0.. and the columns of the rows v0.. The latter may have gained nullable fields, or have wider
    types, since (``evolves``).
    """

    evolves = True

    def __init__(
        self,
        schema: pa.Schema,
        partitions: PartitionKeys,
        writes: LastWrites | None = None,
        *,
        numbered: bool = False,
    ) -> None:
        self.schema, self.writes = schema, writes
        self.changes = SlotChanges()
        self._partitions = partitions
        self._store = RowStore(schema, self.changes, numbered=numbered)
        self._links = MultiIndex()
        self._distinct = DistinctSlots()

    def __len__(self) -> int:
        return len(self._store)

    def counts(self, slots: np.ndarray) -> np.ndarray:
        """Return how many rows each partition has."""
        return self._links.counts(slots)

    def of(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (position in ``slots``, row id) pairs by position, numbered rows in order of arrival."""
        positions, ids = self._links.expand(slots)
        arrived = self._store.arrived(ids)
        if arrived is not None and ids.size:
            # links of restored rows are in the order of the snapshot
            order = np.lexsort((arrived, positions))
            positions, ids = positions[order], ids[order]
        return positions, ids

    def take(self, ids: np.ndarray) -> pa.RecordBatch:
        """Return rows by id."""
        return self._store.take(ids)

    def append(self, slots: np.ndarray, rows: pa.RecordBatch) -> np.ndarray:
        """Add a row to the partition of each slot; return their ids."""
        ids = self._add(slots, rows, None)
        self._touch(slots)
        return ids

    def _add(self, slots: np.ndarray, rows: pa.RecordBatch, arrived: np.ndarray | None) -> np.ndarray:
        ids = self._store.append(rows, arrived=arrived)
        self._links.link(slots, ids)
        return ids

    def _touch(self, slots: np.ndarray) -> None:
        if self.writes is not None and slots.size:
            capacity = self._partitions.keys.capacity
            written = self._distinct.of(slots, capacity)
            # the rows just added carry this time in the next snapshot, and the latest time counts
            self.writes.touch(written, capacity)

    def drop(self, ids: np.ndarray) -> None:
        """Forget distinct rows by id."""
        if ids.size:
            # before the links go: a snapshot reads which partition a row is of
            self._store.save(ids)
            self._links.unlink(ids)
            self._store.drop(ids)

    def clear(self, slots: np.ndarray) -> None:
        """Forget all rows of distinct partitions."""
        self.drop(self._links.expand(slots)[1])

    def due(self, now_ms: int) -> np.ndarray:
        """Return the slots of partitions whose rows have expired by the clock."""
        if self.writes is None:
            return np.zeros(0, np.int64)
        return self.writes.due(now_ms, self._live_slots)

    def _live_slots(self) -> np.ndarray:
        live = self._partitions.keys.live_slots()
        return live[self._links.counts(live) > 0]

    def snapshot(self) -> pa.Table:
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Rows are shared with their chunks, which never change; keys and numbers are copied later, by the
        thread that makes the tables. What changes before is saved.
        """
        partitions, numbered = self._partitions, self._store.numbered
        rows = self._store.freeze(slots, {_OWNER: self._links.owners_by_id})
        frozen_keys = partitions.keys.freeze()
        written = None if self.writes is None else self.writes.freeze()
        names = [f"k{i}" for i in range(len(partitions.types))]
        values = [f"v{i}" for i in range(len(self.schema))]

        def more(some: np.ndarray, owners: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
            """Yield the columns behind the row's own."""
            if numbered:
                yield ARRIVED, rows.numbers(ARRIVED, some)
            if written is not None:
                yield WRITTEN, written(None)(owners)

        def pieces() -> Iterator[pa.Table]:
            keys = frozen_keys(None)
            owners = rows.numbers(_OWNER, np.arange(len(rows))) - 1
            groups = groups_of_hashes(hashes_of_keys(keys, owners), partitions.max_parallelism)
            order, first = by_group(groups, rows.ids)
            for start, some, batch in rows.pieces(order):
                marks = [column.slice(start, some.size) for column in first]
                of_keys = pa.concat_tables(
                    pa.table(columns, names=names) for columns in in_halves(keys, owners[some])
                )
                beside = dict(more(some, owners[some]))
                yield pa.table(
                    [*marks, *of_keys.columns, *batch.columns, *map(array_of, beside.values())],
                    names=["key_group", SLOT, *names, *values, *beside],
                )

        return pieces

    def restore(self, part: pa.Table) -> None:
        keys, width = self._partitions.keys, len(self._partitions.types)
        arrived = numbers_of(part.column(ARRIVED)) if ARRIVED in part.column_names else None
        start = 0
        for rows in batches_of(part):
            columns = [rows.column(f"k{i}") for i in range(width)]
            slots = keys.lookup_or_insert(columns, rows.num_rows)
            values = [rows.column(f"v{i}") for i in range(len(self.schema))]
            here = None if arrived is None else arrived[start : start + rows.num_rows]
            ids = self._add(slots, pa.RecordBatch.from_arrays(values, schema=self.schema), here)
            start += rows.num_rows
            if self.writes is not None:
                of_rows = pa.Table.from_batches([rows])
                restore_lives(self.writes, self._links.owners(ids), of_rows, keys.capacity)


Identity = Callable[[pa.RecordBatch], list[pa.Array]]
"""The columns that identify a row within its partition."""


class KeyedRows(PartitionRows):
    """Rows of which a partition has one for each key. ``identity`` makes the columns of the key from rows."""

    MAPPED: ClassVar[tuple[str, ...]] = ("_row_of", "_key_of")

    def __init__(
        self,
        schema: pa.Schema,
        partitions: PartitionKeys,
        identity: Identity,
        writes: LastWrites | None = None,
    ) -> None:
        super().__init__(schema, partitions, writes)
        self._identity = identity
        empty = pa.RecordBatch.from_arrays([pa.array([], kind) for kind in schema.types], schema=schema)
        # (partition, key) to a number of its own
        self._index = KeyIndex([pa.int64(), *(column.type for column in identity(empty))])
        # by that number the row id + 1, 0 where there is none; and back, the number by row id
        self._row_of, self._key_of = np.zeros(64, np.int64), np.zeros(64, np.int64)

    def find(self, slots: np.ndarray, key: Sequence[pa.Array]) -> np.ndarray:
        """Return the row id of each (partition, key), -1 where there is none."""
        numbers = self._index.lookup([array_of(slots), *key], slots.size)
        return np.where(numbers < 0, -1, self._row_of[np.maximum(numbers, 0)] - 1)

    def put(self, slots: np.ndarray, rows: pa.RecordBatch) -> np.ndarray:
        """Add rows in the place of those with their key; of several rows of one key the last counts. Return
        the ids of the rows that were added.
        """
        numbers = self._index.lookup_or_insert([array_of(slots), *self._identity(rows)], slots.size)
        self._reserve()
        former, positions = self._row_of[numbers] - 1, np.arange(slots.size)
        # The last position of each number: a later assignment overwrites an earlier one. The ids of the new
        # rows come to these places in their turn: an array of its own, of all numbers, took 5 ms.
        self._row_of[numbers] = positions
        kept = self._row_of[numbers] == positions
        if not kept.all():
            slots, rows, former = slots[kept], rows.filter(array_of(kept)), former[kept]
        # not ``drop``: the keys stay
        super().drop(former[former >= 0])
        return self.append(slots, rows)

    def _add(self, slots: np.ndarray, rows: pa.RecordBatch, arrived: np.ndarray | None) -> np.ndarray:
        ids = super()._add(slots, rows, arrived)
        numbers = self._index.lookup_or_insert([array_of(slots), *self._identity(rows)], slots.size)
        self._reserve()
        self._row_of[numbers], self._key_of[ids] = ids + 1, numbers
        return ids

    def _reserve(self) -> None:
        """Have places for all numbers and row ids. Nothing is written there: a large array takes memory as it
        is used.
        """
        if self._index.capacity > self._row_of.size:
            self._row_of = grown(self._row_of, self._index.capacity)
        if self._store.capacity > self._key_of.size:
            self._key_of = grown(self._key_of, self._store.capacity)

    def drop(self, ids: np.ndarray) -> None:
        if ids.size:
            numbers = self._key_of[ids]
            self._row_of[numbers] = 0
            self._index.remove(numbers)
            super().drop(ids)
