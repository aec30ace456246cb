"""SessionState: open sessions per key with their aggregates; sessions that touch are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.operator import TrackedState
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.kernels import merge_intervals as kernel
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import key_columns, pieces_by_keys
from penstock.engine.state.frozen_arrays import FrozenViews
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import MultiIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.index.word_index import at_least, grown
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.state.state_snapshot import whole


class SessionWindowState(TrackedState, Mapped):
    """Sessions by dense number (a slot of the accumulators): key, start, end. A free number has the
    greatest end.
    """

    MAPPED = ("_starts", "_key_slots", "_ends", "_free", "_cursors")

    def __init__(
        self, key_types: Sequence[pa.DataType], accumulators: Accumulators, max_parallelism: int
    ) -> None:
        self.keys = KeyIndex(key_types)
        self.accumulators = accumulators
        self._num_keys = len(key_types)
        self._max_parallelism = max_parallelism
        self.changes = SlotChanges()
        # Of keys, starts and ends by session number.
        self._views = FrozenViews()
        self._of_key = MultiIndex()
        self._distinct = DistinctSlots()
        # By key slot: zeros between two batches.
        self._cursors = np.zeros(0, np.int64)
        # By session number (dense, reused), of those below ``_allocated``: start, end (microseconds; the
        # greatest of a free number) and key slot. The first ``_free_numbers`` of ``_free`` are free again.
        self._allocated = self._free_numbers = 0
        self._free = np.zeros(0, np.int64)
        self._starts, self._key_slots, self._ends = (np.zeros(0, np.int64) for _ in range(3))

    def __len__(self) -> int:
        return len(self._of_key)

    def open(self, key_columns: Sequence[pa.Array], starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Make each interval part of a session of its key, merging all that touch; return the session of
        each interval.
        """
        key_slots = self.keys.lookup_or_insert(key_columns, starts.size)
        distinct = self._distinct.of(key_slots, self.keys.capacity)
        # Only sessions of the batch's keys can touch its intervals.
        _, sessions_of_keys = self._of_key.expand(distinct)
        all_keys = np.concatenate([key_slots, self._key_slots[sessions_of_keys]])
        all_starts = np.concatenate([starts, self._starts[sessions_of_keys]])
        all_ends = np.concatenate([ends, self._ends[sessions_of_keys]])
        # one pass over old and new intervals, by key, then start, unites those that touch
        order = self._order(all_keys, all_starts, distinct, starts.size)
        group_of, group_keys, group_starts, group_ends = (np.empty(order.size, np.int64) for _ in range(4))
        count = kernel.unite(
            order, all_keys, all_starts, all_ends, group_of, group_keys, group_starts, group_ends
        )
        # only groups with a new interval change; the first entries are the new ones, the rest old sessions
        is_touched = np.zeros(count, np.bool_)
        is_touched[group_of[: starts.size]] = True
        touched = np.flatnonzero(is_touched)
        sessions = self._settle(sessions_of_keys, group_of[starts.size :], touched, group_keys[:count])
        self._starts[sessions[touched]], self._ends[sessions[touched]] = (
            group_starts[touched],
            group_ends[touched],
        )
        self.changes.mark(sessions[touched], self._ends.size)
        return sessions[group_of[: starts.size]]

    def _order(self, keys: np.ndarray, starts: np.ndarray, distinct: np.ndarray, earlier: int) -> np.ndarray:
        """Return the positions of intervals by key, in any order of the keys, then by start. Those from
        ``earlier`` on are likely to start before the others.
        """
        if self._cursors.size < self.keys.capacity:
            self._cursors = grown(self._cursors, self.keys.capacity)
        order = np.empty(keys.size, np.int64)
        if kernel.order_by_key(keys, starts, distinct, earlier, self._cursors, order) < 0:
            return np.lexsort((starts, keys))
        return order

    def open_in_turn(
        self, key_columns: Sequence[pa.Array], times: np.ndarray, gap_us: int, turns: np.ndarray
    ) -> np.ndarray:
        """Add late rows to the sessions that had not ended by the watermark each row is behind (``turns``).
        Return the session of each row, -1 for those too late.

        Rows on time may have arrived before them; those touch no session that had ended by then. Afterwards a
        session that ended before the last turn may overlap others of its key. The caller removes such
        sessions before it opens anything else.
        """
        key_slots = self.keys.lookup_or_insert(key_columns, times.size)
        # All old sessions of these keys, by key, then start, as the kernel needs them.
        touched_keys = np.unique(key_slots)
        _, old_sessions = self._of_key.expand(touched_keys)
        old_sessions = old_sessions[np.lexsort((self._starts[old_sessions], self._key_slots[old_sessions]))]
        order = np.lexsort((times, turns, key_slots))
        # an upper bound: each old session and each row alone
        most = old_sessions.size + times.size
        in_order, parents, group_starts, group_ends = (
            np.empty(size, np.int64) for size in (times.size, most, most, most)
        )
        arguments = (
            key_slots[order],
            times[order],
            turns[order],
            gap_us,
            self._key_slots[old_sessions],
            self._starts[old_sessions],
            self._ends[old_sessions],
        )
        count = kernel.unite_in_turn(
            *arguments, in_order, parents, group_starts, group_ends, np.empty((2, most), np.int64)
        )
        groups = np.empty(times.size, np.int64)
        groups[order] = in_order
        accepted = groups >= 0
        touched = np.unique(groups[accepted])
        keys_of_groups = np.full(count, -1)
        # Groups that were merged into another have no key; nobody reads them.
        keys_of_groups[parents[: old_sessions.size]] = self._key_slots[old_sessions]
        keys_of_groups[groups[accepted]] = key_slots[accepted]
        sessions = self._settle(old_sessions, parents[: old_sessions.size], touched, keys_of_groups)
        # The bounds of merged sessions are those of their union.
        self._starts[sessions[touched]], self._ends[sessions[touched]] = (
            group_starts[touched],
            group_ends[touched],
        )
        self.changes.mark(sessions[touched], self._ends.size)
        # late rows that no session accepted may have inserted keys
        self.keys.remove(touched_keys[self._of_key.counts(touched_keys) == 0])
        session_of_row = np.full(times.size, -1)
        session_of_row[accepted] = sessions[groups[accepted]]
        return session_of_row

    def _settle(
        self, old_sessions: np.ndarray, groups_of_old: np.ndarray, touched: np.ndarray, keys: np.ndarray
    ) -> np.ndarray:
        """Return the session of each group (undefined unless touched): its first old session, or a new one.
        The group's other old sessions are merged into that.
        """
        self._save(old_sessions)
        sessions = np.full(keys.size, -1)
        # assigned in reverse, so that the first old session of a group remains
        sessions[groups_of_old[::-1]] = old_sessions[::-1]
        # the other old sessions of a group are merged into the first and freed
        extra = sessions[groups_of_old] != old_sessions
        if extra.any():
            self.accumulators.merge(sessions[groups_of_old[extra]], self.accumulators, old_sessions[extra])
            self._release(old_sessions[extra])
        new = touched[sessions[touched] < 0]
        sessions[new] = self._take(new.size)
        # a number that was free at a barrier must stay so in its snapshot
        self._save(sessions[new])
        self._key_slots[sessions[new]] = keys[new]
        self._of_key.link(keys[new], sessions[new])
        return sessions

    def _save(self, sessions: np.ndarray) -> None:
        """Save sessions for the snapshots that are not copied yet, before they change."""
        self._views.save(sessions)
        self.accumulators.save(sessions)

    def _take(self, count: int) -> np.ndarray:
        left = max(0, self._free_numbers - count)
        # the number freed last comes first, new numbers ascend
        reused = self._free[left : self._free_numbers][::-1]
        self._free_numbers = left
        fresh = np.arange(self._allocated, self._allocated + count - reused.size)
        self._allocated += fresh.size
        if self._allocated > self._ends.size:
            # doubling: small arrays are copied, at a cost that is linear in the number of sessions
            size = max(self._allocated, 2 * self._ends.size, 64)
            self._starts, self._key_slots = grown(self._starts, size), grown(self._key_slots, size)
            self._ends = grown(self._ends, size)
            self.accumulators.reserve(size)
        # until a session is written there, as where no number was ever taken
        self._ends[fresh] = MAX_WATERMARK_US
        return np.concatenate([reused, fresh])

    def _release(self, sessions: np.ndarray) -> np.ndarray:
        """Free distinct sessions; return the keys that have none left."""
        self._save(sessions)
        self.accumulators.clear(sessions)
        self._ends[sessions] = MAX_WATERMARK_US
        self.changes.mark(sessions, self._ends.size)
        free = self._free_numbers + sessions.size
        self._free = at_least(self._free, free)
        self._free[self._free_numbers : free] = sessions
        self._free_numbers = free
        return self._of_key.unlink(sessions)

    def ended(self, time_us: int) -> np.ndarray:
        """Return the sessions with end < ``time_us``, by end, then start, then age of the key."""
        sessions = np.flatnonzero(self._ends[: self._allocated] < time_us)
        # lexsort's last key decides first: end, then start, then key
        return sessions[np.lexsort((self._key_slots[sessions], self._starts[sessions], self._ends[sessions]))]

    def of_keys(self, key_columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        """Return the sessions of the keys of some rows, each once."""
        slots = np.unique(self.keys.lookup(key_columns, num_rows))
        return self._of_key.expand(slots[slots >= 0])[1]

    def bounds(self, sessions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the starts and ends of sessions."""
        return self._starts[sessions], self._ends[sessions]

    def key_slots(self, sessions: np.ndarray) -> np.ndarray:
        """Return the slots in ``keys`` of sessions' keys."""
        return self._key_slots[sessions]

    def key_columns(self, sessions: np.ndarray) -> list[pa.Array]:
        """Return the key columns of sessions."""
        return self.keys.keys(self._key_slots[sessions])

    def remove(self, sessions: np.ndarray) -> None:
        """Forget distinct sessions, and the keys that have none left."""
        self.keys.remove(self._release(sessions))

    def snapshot(self) -> pa.Table:
        """Return key_group, key columns k0.., start, end, then the accumulators' columns."""
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """All is copied later, by the thread that makes the table; what changes before is saved."""
        frozen_keys = self.keys.freeze()
        frozen = self._views.freeze([self._ends, self._starts, self._key_slots], self._allocated)
        frozen_accumulators = self.accumulators.freeze(self._allocated)
        # a session may have been tracked while there were more of them
        asked = None if slots is None else slots[slots < self._allocated]

        def pieces() -> Iterator[pa.Table]:
            ends, starts, key_slots = frozen.copies(asked)
            # A free number has the greatest end, so one comparison finds the live ones.
            at = np.flatnonzero(ends < MAX_WATERMARK_US)
            keys, accumulators = frozen_keys(None), frozen_accumulators(asked)

            def keys_of(at: np.ndarray) -> list[pa.Array]:
                return keys(key_slots[at])

            def entries(at: np.ndarray) -> Mapping[str, pa.Array]:
                columns = {"start": array_of(starts[at]), "end": array_of(ends[at])}
                return key_columns(keys_of(at)) | columns | accumulators(at)

            live = at if asked is None else asked[at]
            return pieces_by_keys(live, at, keys_of, entries, self._max_parallelism)

        return pieces

    def restore(self, part: pa.Table) -> None:
        """Add sessions of a snapshot."""
        columns = {name: part.column(name).combine_chunks() for name in part.column_names}
        # Sessions of a snapshot do not touch, so nothing merges: each gets a number of its own.
        sessions = self.open(
            [columns[f"k{i}"] for i in range(self._num_keys)],
            numbers_of(columns["start"]),
            numbers_of(columns["end"]),
        )
        self.accumulators.restore(
            sessions, {name: column for name, column in columns.items() if name.startswith("a")}
        )
