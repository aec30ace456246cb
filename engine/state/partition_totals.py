"""PartitionTotals: what each partition has had so far: rows, groups of peers, aggregates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.kernels.partition import counting_sort
from engine.operator import KeyedState
from engine.state.accumulators import Accumulators
from engine.state.key_index import KeyIndex
from engine.state.word_index import grown


class PartitionTotals(KeyedState):
    """By slot of ``keys``, which is shared: ``rows`` and ``groups`` passed, int64, and ``accumulators``. Snapshots hold the slots with rows."""

    def __init__(self, partition_types: Sequence[pa.DataType], keys: KeyIndex, accumulators: Accumulators, max_parallelism: int) -> None:
        self.accumulators = accumulators
        self.rows, self.groups = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._keys = keys
        self._width = len(partition_types)
        self._max_parallelism = max_parallelism

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

    def clear(self, slots: np.ndarray) -> None:
        """Forget slots."""
        self.rows[slots] = self.groups[slots] = 0
        self.accumulators.clear(slots)

    def snapshot(self) -> pa.Table:
        self.reserve()
        slots = np.flatnonzero(self.rows)
        groups = self._keys.key_groups(slots, self._max_parallelism)
        order, _ = counting_sort(groups.astype(np.int64), self._max_parallelism)
        slots = slots[order]
        columns = {"key_group": pa.array(groups[order]), "rows": pa.array(self.rows[slots]), "groups": pa.array(self.groups[slots])}
        columns |= {f"k{i}": column for i, column in enumerate(self._keys.keys(slots))}
        return pa.table(columns | self.accumulators.columns(slots))

    def restore(self, part: pa.Table) -> None:
        columns = {name: part.column(name).combine_chunks() for name in part.column_names}
        slots = self._keys.lookup_or_insert([columns[f"k{i}"] for i in range(self._width)], part.num_rows)
        self.reserve()
        self.rows[slots], self.groups[slots] = columns["rows"].to_numpy(), columns["groups"].to_numpy()
        self.accumulators.restore(slots, {name: column for name, column in columns.items() if name.startswith("a")})
