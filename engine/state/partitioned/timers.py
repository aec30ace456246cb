"""Timers of partitions: points in time, with a name or without, that fire in their order."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, numbers_of, truths
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.partitioned.partition_rows import KeyedRows, PartitionKeys
from penstock.engine.state.time_to_live import Deadlines

LATEST_US = MAX_WATERMARK_US - 1
"""The latest time of a timer."""

_SCHEMA = pa.schema([("name", pa.string()), ("time_us", pa.int64())])


def _identity(rows: pa.RecordBatch) -> list[pa.Array]:
    """A named timer is one of its name; one without a name is one of its time."""
    names, times = rows.columns
    named = names.is_valid()
    return [names, times] if not named.true_count else [names, array_of(numbers_of(times), truths(named))]


class Timers(KeyedRows):
    """Timers by partition and name, or by partition and time where they have no name. A partition has each
    of them once, so setting a named timer again moves it. Times are microseconds.
    """

    MAPPED: ClassVar[tuple[str, ...]] = ("_times",)

    def __init__(self, partitions: PartitionKeys) -> None:
        super().__init__(_SCHEMA, partitions, _identity)
        # by row id: the time, to tell a timer that is due from one that was moved since
        self._times = np.zeros(64, np.int64)
        self._deadlines = Deadlines()

    def set(self, slots: np.ndarray, names: pa.Array, times_us: np.ndarray) -> None:
        """Set a timer for each slot; a slot may be named several times. Names may be NULL."""
        if slots.size:
            self.put(slots, pa.RecordBatch.from_arrays([names, array_of(times_us)], schema=_SCHEMA))

    def _add(self, slots: np.ndarray, rows: pa.RecordBatch, arrived: np.ndarray | None) -> np.ndarray:
        ids = super()._add(slots, rows, arrived)
        if self._store.capacity > self._times.size:
            self._times = grown(self._times, self._store.capacity)
        times = numbers_of(rows.column(1))
        self._times[ids] = times
        self._deadlines.add(times, ids)
        return ids

    def clear_named(self, slots: np.ndarray, names: pa.Array) -> None:
        """Forget the timers of these names; unknown ones are skipped."""
        ids = self.find(slots, [names, pa.nulls(slots.size, pa.int64())])
        self.drop(np.unique(ids[ids >= 0]))

    def take_due(self, time_us: int) -> np.ndarray:
        """Return the ids of timers up to a time, each once, and watch for them no more; they stay in the
        state until they are dropped.
        """
        # the end of time itself is no time of a timer, so the sum never overflows
        times, ids = self._deadlines.due(min(time_us, LATEST_US) + 1)
        # pairs of timers that were dropped or moved, or set twice
        return np.unique(ids[self.is_set(ids, times)])

    def is_set(self, ids: np.ndarray, times_us: np.ndarray) -> np.ndarray:
        """Return which of the timers, of these times, are still set."""
        known = ids < self._store.capacity
        at = np.where(known, ids, 0)
        return known & (self._store.weights(at) != 0) & (self._times[at] == times_us)

    def watch(self, ids: np.ndarray) -> None:
        """Watch again for timers that were due and have not fired."""
        self._deadlines.add(self._times[ids], ids)

    def times(self, ids: np.ndarray) -> np.ndarray:
        """Return the times of timers."""
        return self._times[ids]

    def owners(self, ids: np.ndarray) -> np.ndarray:
        """Return the slots of the partitions of timers."""
        return self._links.owners(ids)

    def rounds(self, ids: np.ndarray) -> list[np.ndarray]:
        """Return due timers in rounds: in each the next timer of each partition, by time. Of equal times
        those without a name come first, then the others by name.
        """
        if not ids.size:
            return []
        names = self.take(ids).column(0)
        ranks = np.zeros(ids.size, np.int64)
        if names.null_count < ids.size:
            of_names = numbers_of(pc.rank(names, tiebreaker="dense").cast(pa.int64()))
            ranks = np.where(truths(names.is_valid()), of_names, 0)
        owners = self._links.owners(ids)
        order = np.lexsort((ranks, self._times[ids], owners))
        ids, owners = ids[order], owners[order]
        # how many timers of its partition fire before each
        firsts = np.flatnonzero(np.concatenate([[True], owners[1:] != owners[:-1]]))
        before = np.arange(ids.size) - np.repeat(firsts, np.diff(np.append(firsts, ids.size)))
        turns = np.argsort(before, kind="stable")
        return np.split(ids[turns], np.flatnonzero(np.diff(before[turns])) + 1)
