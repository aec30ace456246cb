"""SessionRows: the weighted rows of open sessions. Sessions are computed from the rows on demand, because a
retraction may split one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels import merge_intervals as kernel
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.rows.join_side import JoinSide


@dataclass(frozen=True, eq=False)
class Sessions:
    """Sessions by end, then start, then key: key slots, starts and ends; and their rows, by session, then
    time: ids, and the session of each.
    """

    key_slots: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    ids: np.ndarray
    of: np.ndarray

    def __len__(self) -> int:
        return self.ends.size

    def filter(self, mask: np.ndarray) -> Sessions:
        """Return the sessions of a mask."""
        # Rows of the sessions that remain; ``numbers`` is each session's new number.
        rows = mask[self.of]
        numbers = np.cumsum(mask) - 1
        return Sessions(
            self.key_slots[mask], self.starts[mask], self.ends[mask], self.ids[rows], numbers[self.of[rows]]
        )


class SessionRows(JoinSide):
    """Rows by key slot, equal rows one with their weights added. A session is of rows of positive weight
    no further apart than the gap.
    """

    def __init__(
        self,
        schema: pa.Schema,
        key_columns: Sequence[int],
        time_column: int,
        gap_us: int,
        keys: KeyIndex,
        max_parallelism: int,
    ) -> None:
        self._time_column = time_column
        self._gap_us = gap_us
        super().__init__(schema, key_columns, keys, max_parallelism, retracting=True, counts=False)

    def clear(self) -> None:
        super().clear()
        # By row id: time in microseconds, and the key slot.
        self._times, self._slots = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._distinct = DistinctSlots()

    def _index(self, ids: np.ndarray, rows: pa.RecordBatch, slots: np.ndarray, matched: np.ndarray) -> None:
        super()._index(ids, rows, slots, matched)
        if self._times.size < self.store.capacity:
            self._times, self._slots = (
                grown(self._times, self.store.capacity),
                grown(self._slots, self.store.capacity),
            )
        self._times[ids], self._slots[ids] = col.words(rows.column(self._time_column)), slots

    def of_slots(self, slots: np.ndarray) -> Sessions:
        """Return the sessions of distinct keys."""
        ids = self.links.expand(slots)[1]
        # a retraction that came before its row makes no session
        ids = ids[self.store.weights(ids) > 0]
        ids = ids[np.lexsort((self._times[ids], self._slots[ids]))]
        keys, times = self._slots[ids], self._times[ids]
        # One pass over intervals [time, time + gap] sorted by key and time: ``of`` is each row's session.
        of, key_slots, starts, ends = (np.empty(ids.size, np.int64) for _ in range(4))
        in_order = np.arange(ids.size)
        count = kernel.unite(in_order, keys, times, times + self._gap_us, of, key_slots, starts, ends)
        key_slots, starts, ends = key_slots[:count], starts[:count], ends[:count]
        # Sessions are numbered in the order they end, which is the order they are emitted in.
        order = np.lexsort((key_slots, starts, ends))
        new_numbers = np.empty(count, np.int64)
        new_numbers[order] = np.arange(count)
        # stable: the rows of a session remain in the order of their times
        turn = np.argsort(new_numbers[of], kind="stable")
        return Sessions(key_slots[order], starts[order], ends[order], ids[turn], new_numbers[of][turn])

    def ended(self, time_us: int) -> Sessions:
        """Return the sessions with end < ``time_us``."""
        ids = self._ended_alone(time_us)
        # only keys with a row that would have ended alone can have an ended session
        sessions = self.of_slots(self._distinct.of(self._slots[ids], self._keys.capacity))
        return sessions.filter(sessions.ends < time_us)

    def _ended_alone(self, time_us: int) -> np.ndarray:
        """Return the rows whose sessions would have ended if no other rows were near."""
        ids = self.store.live_ids()
        # Without neighbours a row's session ends a gap after it.
        return ids[self._times[ids] + self._gap_us < time_us]

    def forget(self, sessions: Sessions, time_us: int) -> None:
        """Forget the rows of sessions that have ended before ``time_us``. Forget retractions whose rows never
        arrived, and keys that have no rows left.
        """
        reached = self._ended_alone(time_us)
        # retractions whose rows never came are dropped with the time they belong to
        lacking = reached[self.store.weights(reached) < 0]
        self._keys.remove(self.remove(np.concatenate([sessions.ids, lacking])))
