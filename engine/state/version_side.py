"""VersionSide: the versions of keys by time, of which only the one in force and later ones are kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.kernels import columns as col
from engine.state.join_side import JoinSide
from engine.state.key_index import KeyIndex
from engine.state.row_order import RowOrder
from engine.state.word_index import grown
from engine.timers import Timers


class VersionSide(JoinSide):
    """Rows found by key slot that are versions from their time on (never NULL). Of versions of one time the first by ``ties`` counts.

    A row of negative weight that takes back no row ends the version in force at its time, unless another begins then.
    """

    def __init__(
        self,
        schema: pa.Schema,
        key_columns: Sequence[int],
        time_column: int,
        ties: RowOrder,
        keys: KeyIndex,
        max_parallelism: int,
        *,
        retracting: bool,
        counts: bool,
    ) -> None:
        self._time_column = time_column
        self._ties = ties
        super().__init__(schema, key_columns, keys, max_parallelism, retracting=retracting, counts=counts)

    def clear(self) -> None:
        super().clear()
        self._times = np.zeros(self.store.capacity, np.int64)
        self._coming = Timers()

    def _index(self, ids: np.ndarray, rows: pa.RecordBatch, slots: np.ndarray, matched: np.ndarray) -> None:
        super()._index(ids, rows, slots, matched)
        if self._times.size < self.store.capacity:
            self._times = grown(self._times, self.store.capacity)
        times = col.words(rows.column(self._time_column))
        self._times[ids] = times
        self._coming.add(times, slots)

    def in_force(self, slots: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return for each key slot (-1: no key) the id of its version at a time, -1 where it has none."""
        known = np.unique(slots)
        owners, ids = self._of(known[known >= 0])
        slots_of_all = np.concatenate([owners, slots])
        times_of_all = np.concatenate([self._times[ids], times])
        asks = np.arange(slots_of_all.size) >= ids.size
        order = np.lexsort((asks, times_of_all, slots_of_all))
        latest = np.maximum.accumulate(np.where(asks[order], -1, np.arange(order.size)))
        found = np.where(latest >= 0, order[latest], 0)
        same = (latest >= 0) & (slots_of_all[found] == slots_of_all[order]) if ids.size else np.zeros(order.size, np.bool_)
        answer = np.empty(order.size, np.int64)
        answer[order] = np.where(same, found, -1)
        chosen = answer[ids.size :]
        if not ids.size:
            return chosen
        found = ids[chosen]
        return np.where((chosen >= 0) & (self.store.weights(found) > 0), found, -1)

    def _of(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all versions of distinct slots as (slot, id), versions of one time so that the one that counts comes last."""
        positions, ids = self.links.expand(slots)
        owners, times = slots[positions], self._times[ids]
        order = np.lexsort((times, owners))
        owners, ids, times = owners[order], ids[order], times[order]
        again = (np.diff(owners) == 0) & (np.diff(times) == 0)
        if again.any():
            tied = np.zeros(ids.size, np.bool_)
            tied[:-1] |= again
            tied[1:] |= again
            places = np.flatnonzero(tied)
            ranks = np.zeros(ids.size, np.int64)
            ranks[places[self._ties.sorted(self.store.take(ids[places]))]] = np.arange(places.size)
            order = np.lexsort((-ranks, self.store.weights(ids) > 0, times, owners))
            owners, ids = owners[order], ids[order]
        return owners, ids

    def expire(self, time_us: int) -> np.ndarray:
        """Forget what is followed before ``time_us``, and what only ended a version by then; return the key slots that became empty."""
        _, slots = self._coming.due(time_us - 1)
        if not slots.size:
            return slots
        owners, ids = self._of(np.unique(slots))
        passed = self._times[ids] < time_us
        owners, ids = owners[passed], ids[passed]
        useless = np.append(np.diff(owners) == 0, False)[: ids.size] | (self.store.weights(ids) < 0)
        return self.remove(ids[useless])
