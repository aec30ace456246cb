"""VersionSide: the versions of keys of a temporal join. Only the version in force and later ones are
stored.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.time_to_live import Deadlines, LastWrites


class VersionSide(JoinSide):
    """Rows found by key slot that are versions from their time on (never NULL). Of versions of one time the
    first by ``ties`` counts.

    A row of negative weight that retracts no row ends the version in force at its time, unless another begins
    then.
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
        writes: LastWrites | None = None,
    ) -> None:
        self._time_column = time_column
        self._ties = ties
        super().__init__(
            schema,
            key_columns,
            keys,
            max_parallelism,
            retracting=retracting,
            counts=counts,
            writes=writes,
            by_key=True,
        )

    def clear(self) -> None:
        super().clear()
        # By row id: when the version begins, microseconds.
        self._times = np.zeros(self.store.capacity, np.int64)
        # Key slots by the begin of a version: which keys may have superseded versions.
        self._coming = Deadlines()
        self._distinct = DistinctSlots()

    def _index(self, ids: np.ndarray, rows: pa.RecordBatch, slots: np.ndarray, matched: np.ndarray) -> None:
        super()._index(ids, rows, slots, matched)
        if self._times.size < self.store.capacity:
            self._times = grown(self._times, self.store.capacity)
        times = col.words(rows.column(self._time_column))
        self._times[ids] = times
        self._coming.add(times, slots)

    def in_force(self, slots: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return for each key slot (-1: no key) the id of its version at a time, -1 where it has none."""
        # Versions of the keys that are asked for, by key, then begin.
        known = self._distinct.of(slots[slots >= 0], self._keys.capacity)
        owners, ids = self._of(known)
        if not ids.size:
            return np.full(slots.size, -1)
        begins = self._times[ids]
        # A key's number is its position in ``known``, -1 for slot -1 and keys without versions.
        key_numbers = np.full(self._keys.capacity + 1, -1)  # the last one is for slot -1
        key_numbers[known] = np.arange(known.size)
        order = _Order(begins, known.size)
        # The last version at or before the time, over all keys at once: key and time are one word.
        latest = (
            np.searchsorted(
                order.words(key_numbers[owners], begins), order.words(key_numbers[slots], times), side="right"
            )
            - 1
        )
        versions = ids[latest]
        # It may be of another key (then the key has none that early), or a row that only ended a version.
        return np.where(
            (latest >= 0) & (owners[latest] == slots) & (self.store.weights(versions) > 0), versions, -1
        )

    def _of(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all versions of distinct slots as (slot, id), slot by slot by time, the one that counts
        of one time last.
        """
        positions, ids = self.links.expand(slots)
        times = self._times[ids]
        if not ids.size:
            return slots[positions], ids
        words = _Order(times, slots.size).words(positions, times)
        order = np.argsort(words, kind="stable")
        owners, ids, words = slots[positions[order]], ids[order], words[order]
        # Rows of one key that begin at one time.
        again = np.diff(words) == 0
        if again.any():
            tied = np.flatnonzero(np.append(again, False) | np.insert(again, 0, False))
            ranks = np.zeros(ids.size, np.int64)
            ranks[tied[self._ties.sorted(self.store.take(ids[tied]))]] = np.arange(tied.size)
            # lexsort's last key decides first: by key and time, then positive weights last, then the first by
            # ``ties`` last.
            order = np.lexsort((-ranks, self.store.weights(ids) > 0, words))
            owners, ids = owners[order], ids[order]
        return owners, ids

    def expire(self, time_us: int) -> np.ndarray:
        """Forget versions that another one follows before ``time_us``, and rows that only ended a version by
        then; return the key slots that became empty.
        """
        _, slots = self._coming.due(time_us)
        if not slots.size:
            return slots
        # A slot comes once for each version that became due; its versions are examined once.
        owners, ids = self._of(self._distinct.of(slots, self._keys.capacity))
        passed = self._times[ids] < time_us
        owners, ids = owners[passed], ids[passed]
        # Superseded: the next passed row is of the same key. Rows of negative weight have nothing left to
        # end.
        useless = np.append(np.diff(owners) == 0, False)[: ids.size] | (self.store.weights(ids) < 0)
        return self.remove(ids[useless])


class _Order:
    """Maps pairs of a small number (-1: before all) and a time to one word that sorts the same. Times with
    none of the known times between them share a word.
    """

    def __init__(self, times: np.ndarray, count: int) -> None:
        self._first = int(times.min())
        # The distance between two numbers: all times, and one value for "before all".
        self._span = int(times.max()) - self._first + 2
        # where number * span would overflow a word, times are replaced by their rank
        self._distinct = None if count * self._span < 1 << 62 else np.unique(times)
        if self._distinct is not None:
            self._span = self._distinct.size + 1

    def words(self, numbers: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return the words, int64. A time before all known ones is 0 within its number."""
        if self._distinct is not None:
            return numbers * self._span + np.searchsorted(self._distinct, times, side="right")
        return (
            numbers * self._span
            + np.clip(times, self._first - 1, self._first + self._span - 2)
            - (self._first - 1)
        )
