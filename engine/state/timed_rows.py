"""TimedRows: rows that wait for time to pass them, and the passed ones later rows still look at, by partition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.elements import MIN_WATERMARK_US
from engine.kernels import columns as col
from engine.kernels.hash import stable_hash
from engine.kernels.partition import counting_sort
from engine.operator import KeyedState
from engine.state.key_groups import groups_of_hashes
from engine.state.key_index import KeyIndex
from engine.state.multi_index import MultiIndex
from engine.state.row_store import RowStore
from engine.state.word_index import grown


class TimedRows(KeyedState):
    """Rows by id with their partition's slot (of ``keys``, which is shared) and their time; waiting ones are listed, passed ones linked to slots.

    ``passed_us``: the watermark that has let rows pass. Snapshots hold key_group, whether a row waits, the watermark and the columns. Restored it is
    the earliest of all parts: subtasks whose barriers overtook rows need not have been at one time, and those rows are still to come.
    """

    def __init__(self, schema: pa.Schema, partition: Sequence[int], time_column: int, keys: KeyIndex, max_parallelism: int) -> None:
        self.schema = schema
        self._partition = list(partition)
        self._time_column = time_column
        self._keys = keys
        self._max_parallelism = max_parallelism
        self.store = RowStore(schema)
        self.passed = MultiIndex()
        self.waiting = np.zeros(0, np.int64)
        self.passed_us = MIN_WATERMARK_US
        self._fresh = True
        self._slots, self._times = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.store)

    def slots(self, ids: np.ndarray) -> np.ndarray:
        """Return the slots of rows."""
        return self._slots[ids]

    def times(self, ids: np.ndarray) -> np.ndarray:
        """Return the times of rows, microseconds."""
        return self._times[ids]

    def _add(self, rows: pa.RecordBatch) -> np.ndarray:
        slots = self._keys.lookup_or_insert([rows.column(key) for key in self._partition], rows.num_rows)
        ids = self.store.append(rows)
        if self.store.capacity > self._slots.size:
            self._slots, self._times = grown(self._slots, self.store.capacity), grown(self._times, self.store.capacity)
        self._slots[ids], self._times[ids] = slots, col.words(rows.column(self._time_column))
        return ids

    def hold(self, rows: pa.RecordBatch) -> None:
        """Let rows wait."""
        self.waiting = np.concatenate([self.waiting, self._add(rows)])

    def link(self, rows: pa.RecordBatch) -> None:
        """Add rows that wait for nothing, linked to their slots."""
        self.keep(self._add(rows))

    def due(self, watermark_us: int) -> np.ndarray:
        """Take out of the waiting rows and return those with a time below the watermark, which then are passed but linked to no slot."""
        ready = self._times[self.waiting] < watermark_us
        ids, self.waiting = self.waiting[ready], self.waiting[~ready]
        self.passed_us = watermark_us
        return ids

    def keep(self, ids: np.ndarray) -> None:
        """Link passed rows to their slots."""
        self.passed.link(self._slots[ids], ids)

    def forget(self, linked: np.ndarray, fresh: np.ndarray) -> None:
        """Let go of rows that are linked, and of rows that have just passed and are not."""
        self.passed.unlink(linked)
        ids = np.concatenate([linked, fresh])
        if ids.size:
            self.store.drop(ids)

    def linked_ids(self) -> np.ndarray:
        """Return the ids of all passed rows that are kept."""
        mask = np.zeros(self.store.capacity, np.bool_)
        mask[self.store.live_ids()] = True
        mask[self.waiting] = False
        return np.flatnonzero(mask)

    def _by_group(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of all rows in the order of a snapshot, and the key group of each."""
        ids = self.store.live_ids()
        groups = np.zeros(ids.size, np.uint16)
        if self._partition and ids.size:
            rows = self.store.take(ids)
            groups = groups_of_hashes(stable_hash([rows.column(key) for key in self._partition]), self._max_parallelism)
        order, _ = counting_sort(groups.astype(np.int64), self._max_parallelism)
        return ids[order], groups[order]

    def snapshot(self) -> pa.Table:
        ids, groups = self._by_group()
        waits = np.zeros(self.store.capacity, np.bool_)
        waits[self.waiting] = True
        columns = [pa.array(groups), pa.array(waits[ids]), pa.array(np.full(ids.size, self.passed_us)), *self.store.take(ids).columns]
        return pa.table(columns, names=["key_group", "waits", "passed_us", *[f"c{i}" for i in range(len(self.schema))]])

    def restore(self, part: pa.Table) -> None:
        self._restored(part)

    def _restored(self, part: pa.Table) -> np.ndarray:
        """Add the rows of a snapshot; return their ids."""
        part = part.combine_chunks()
        batches = pa.Table.from_arrays(part.columns[3:], schema=self.schema).combine_chunks().to_batches()
        if not batches:
            return np.zeros(0, np.int64)
        ids = self._add(batches[0])
        waits = part.column("waits").to_numpy()
        self.waiting = np.concatenate([self.waiting, ids[waits]])
        self.keep(ids[~waits])
        passed_us = int(part.column("passed_us").to_numpy().min())
        self.passed_us = passed_us if self._fresh else min(self.passed_us, passed_us)
        self._fresh = False
        return ids
