"""UpdatedSessions: the weighted rows of sessions that never close, in the order of their times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels import merge_intervals as kernel
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.sorted_runs import SortedRuns
from penstock.engine.state.rows.nearest_side import NearestSide
from penstock.engine.state.time_to_live import LastWrites

_LEAST = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class Bounds:
    """The start and the end of the session of each row, and the weight of the row."""

    starts: np.ndarray
    ends: np.ndarray
    weights: np.ndarray

    def at(self, places: np.ndarray) -> Bounds:
        """Return the bounds of some rows."""
        return Bounds(self.starts[places], self.ends[places], self.weights[places])


@dataclass(frozen=True, eq=False)
class SessionChanges:
    """What a batch does to stored rows, by their ``ids``: they had ``before`` and have ``after``, or a weight
    of 0 where they go. And the rows that come: ``places`` in the batch, and their bounds. The sessions had
    ``former_starts`` and have ``starts``: key slots and times, in this order.
    """

    ids: np.ndarray
    before: Bounds
    after: Bounds
    places: np.ndarray
    coming: Bounds
    former_starts: tuple[np.ndarray, np.ndarray]
    starts: tuple[np.ndarray, np.ndarray]


class UpdatedSessions(NearestSide):
    """Rows by key slot and time, equal rows one with their weights added. A session is of rows of positive
    weight no further apart than the gap.

    The start of each session is kept in order beside the rows. So a batch costs the logarithm of the rows of
    its keys, and the rows of the sessions that it touches.
    """

    def __init__(
        self,
        schema: pa.Schema,
        key_columns: Sequence[int],
        time_column: int,
        gap_us: int,
        keys: KeyIndex,
        max_parallelism: int,
        writes: LastWrites | None,
    ) -> None:
        self._gap_us = gap_us
        super().__init__(
            schema,
            key_columns,
            time_column,
            keys,
            max_parallelism,
            latest=True,
            shift=0,
            retracting=True,
            writes=writes,
        )

    def clear(self) -> None:
        super().clear()
        self._starts = SortedRuns()

    def one_each(self, batch: Batch, slots: np.ndarray) -> tuple[Batch, np.ndarray]:
        """Return a consolidated batch whose equal rows are one of a greater weight."""
        batch, slots, _ = self._one_each(batch, slots, np.zeros(batch.num_rows, np.int64))
        return batch, slots

    def changes_of(self, batch: Batch, slots: np.ndarray) -> SessionChanges:
        """Return what ``change`` will do to the sessions of distinct rows; nothing is stored."""
        ids, times = self.ids_of(batch), self.words(batch.rows)
        shown = self.shown(ids)
        had = np.where(ids >= 0, self.store.weights(np.maximum(ids, 0)), 0)
        now = had + (1 if batch.weights is None else batch.weights)
        # 1. the rows of the sessions that are touched, as they are
        ranges = self._ranges(slots, times)
        owners, words, stored = self.runs.ids_between(slots, *ranges)
        before = self._bounds(owners, words, self.store.weights(stored))
        # 2. with the new weights, and with the rows that come
        order = np.argsort(stored)
        places = order[np.searchsorted(stored, ids[shown], sorter=order)]
        weights = before.weights.copy()
        weights[places] = np.maximum(now[shown], 0)
        coming = np.flatnonzero(~shown & (now > 0))
        owners, words = np.concatenate([owners, slots[coming]]), np.concatenate([words, times[coming]])
        after = self._bounds(owners, words, np.concatenate([weights, now[coming]]))
        # 3. what differs
        stay = after.at(np.arange(stored.size))
        moved = (before.starts != stay.starts) | (before.ends != stay.ends)
        changed = np.flatnonzero(moved | (before.weights != stay.weights))
        new = after.at(np.arange(stored.size, after.starts.size))
        first = np.flatnonzero((after.weights > 0) & (after.starts == words))
        return SessionChanges(
            stored[changed],
            before.at(changed),
            stay.at(changed),
            coming,
            new,
            _distinct(*self._starts.ids_between(slots, *ranges)[:2]),
            _distinct(owners[first], words[first]),
        )

    def change(
        self, batch: Batch, slots: np.ndarray, matched: np.ndarray, arrived: np.ndarray | None = None
    ) -> np.ndarray:
        """As of every join side; the starts of sessions follow."""
        batch, slots = self.one_each(batch, slots)
        return self.apply(batch, slots, self.changes_of(batch, slots))

    def apply(self, batch: Batch, slots: np.ndarray, changes: SessionChanges) -> np.ndarray:
        """Store what ``changes_of`` has returned; return the key slots that became empty."""
        emptied = super().change(batch, slots, np.zeros(batch.num_rows, np.int64))
        former, starts = changes.former_starts, changes.starts
        # most rows begin no session
        if not all(map(np.array_equal, former, starts)):
            self._starts.remove(*former, np.zeros(former[0].size, np.int64))
            self._starts.add(*starts, np.zeros(starts[0].size, np.int64))
        return emptied

    def forget_keys(self, slots: np.ndarray) -> None:
        """Drop all rows of distinct keys."""
        least = np.full(slots.size, _LEAST)
        self._starts.remove(*self._starts.ids_between(slots, least, least, np.ones(slots.size, np.bool_)))
        super().forget_keys(slots)

    def _ranges(self, slots: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the times of the sessions that rows of these times touch: from, and up to; and which go to
        the end of the key.
        """
        before, has_before = self.runs.last_until(slots, times)
        after, has_after = self.runs.first_after(slots, times)
        touches_before = has_before & (times - before <= self._gap_us)
        touches_after = has_after & (after - times <= self._gap_us)
        begins, _ = self._starts.last_until(slots, before)
        high, found = self._starts.first_after(slots, np.where(touches_after, after, times))
        return np.where(touches_before, begins, times), high, ~found

    def _bounds(self, slots: np.ndarray, times: np.ndarray, weights: np.ndarray) -> Bounds:
        """Return the sessions of rows; a row without weight is in none."""
        live = np.flatnonzero(weights > 0)
        order = live[np.lexsort((times[live], slots[live]))]
        of, keys, begins, finishes = (np.empty(order.size, np.int64) for _ in range(4))
        own = times[order]
        kernel.unite(np.arange(order.size), slots[order], own, own + self._gap_us, of, keys, begins, finishes)
        starts, ends = np.zeros(times.size, np.int64), np.zeros(times.size, np.int64)
        starts[order], ends[order] = begins[of], finishes[of]
        return Bounds(starts, ends, weights)


def _distinct(slots: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return different pairs in order: several rows may have the time at which a session begins."""
    order = np.lexsort((times, slots))
    slots, times = slots[order], times[order]
    fresh = np.append(True, (np.diff(slots) != 0) | (np.diff(times) != 0))[: slots.size]
    return slots[fresh], times[fresh]
