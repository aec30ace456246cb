"""WindowState: accumulators by key and slice. Keys and slices are stored once each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.operator import KeyGroups, TrackedState
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels.index import window_entries as kernel
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.change_tracking import SlotChanges
from penstock.engine.state.entry_table import key_columns, pieces_by_keys
from penstock.engine.state.frozen_arrays import FrozenViews
from penstock.engine.state.groups.recent_entries import RecentEntries
from penstock.engine.state.index.direct_index import DirectIndex
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import MultiIndex
from penstock.engine.state.index.slot_sets import UseCounts
from penstock.engine.state.index.tagged_index import RowIndex
from penstock.engine.state.index.word_index import slots_at_barrier
from penstock.engine.state.state_snapshot import whole
from penstock.engine.state.watermark_state import KeyGroupWatermarkState
from penstock.engine.windowing import window_arithmetic
from penstock.engine.windowing.window_assigner import AssignedRows
from penstock.planner.logical.windows import AttachedWindow, Windowing

_KEY_BITS = 32
_KEY = (1 << _KEY_BITS) - 1
_NEAR_BITS = 2
"""The low bits of an entry's pane are the lowest of its word. Few panes are open at a time and their numbers
are used again, so the words of the first four panes are dense: ``DirectIndex`` has an array of them.
"""
_NEAR = (1 << _NEAR_BITS) - 1
# Slices of a batch that are numbered before they are looked up.
_SLICES_MOST = 1_024
# Entries of more slots are looked up each: numbers of recent ones are stored in 32 bits.
_RECENT_MOST = (1 << 31) - 1


# One subtask that has all key groups, for states outside of a job.
_ALL = KeyGroups(0, 128, 128)


class WindowState(TrackedState):
    """One entry per (slice, missed, key): ``missed`` is how many of the slice's first windows the entry is
    not part of.

    An entry is a dense number, a slot of the accumulators. A slice is a dense number with an end, and a start
    where windows are attached. ``closed``: until when windows were emitted, for the operator to declare. A
    restore computes from it how many windows entries have missed.
    """

    def __init__(
        self,
        window: Windowing | AttachedWindow,
        key_types: Sequence[pa.DataType],
        accumulators: Accumulators,
        groups: KeyGroups = _ALL,
    ) -> None:
        self._window = window
        self._max_parallelism = groups.max_parallelism
        # How many values ``missed`` can take: a slice is part of so many windows.
        self._fan = window.windows_per_slice if isinstance(window, Windowing) else 1
        self.accumulators = accumulators
        self.keys = KeyIndex(key_types)
        self._num_keys = len(key_types)
        # Entries of each key: a key is removed with its last entry.
        self._uses = UseCounts()
        # (end, start) to slice numbers.
        self._slices = RowIndex(2)
        self._entries = DirectIndex()
        self._recent = RecentEntries(_NEAR_BITS)
        self._of_slice = MultiIndex()
        self.closed = KeyGroupWatermarkState(groups)
        self.changes = SlotChanges()
        # Of the words of entries.
        self._views = FrozenViews()
        # Whether some entry missed a window: only then does the operator look at ``missed``.
        self.some_missed = False

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, key_columns: Sequence[pa.Array], assigned: AssignedRows) -> None:
        """Add rows to their entries."""
        batch = assigned.batch
        entries = self._entries_for(key_columns, assigned)
        self.accumulators.add(entries, batch.rows, batch.weights)

    def _entries_for(self, key_columns: Sequence[pa.Array], assigned: AssignedRows) -> np.ndarray:
        self.some_missed |= assigned.missed is not None
        panes = self._numbered_panes(assigned)
        if panes is not None and not self._num_keys:
            # GROUP BY the window alone: an entry is a pane, and each is looked up once
            self.keys.lookup_or_insert(key_columns, 1)
            words, numbers = panes
            entries = self._insert(words)
            return np.full(assigned.ends.size, entries[0]) if numbers is None else entries[numbers]
        key_slots = self.keys.lookup_or_insert(key_columns, assigned.ends.size)
        if panes is None or self._entries.capacity > _RECENT_MOST:
            return self._insert(self._entry_words(key_slots, assigned, panes))
        entries, missing = self._recent.find(panes, key_slots, self.keys.capacity, self._entries.keys)
        if missing.size:
            self._recent.settle(_key_slots(missing), self._assigned(missing), entries)
        self._mark(entries)
        return entries

    def _insert(self, words: np.ndarray) -> np.ndarray:
        """Return the entries of words; all are noted as changed."""
        entries = self._assigned(words)
        self._mark(entries)
        return entries

    def _assigned(self, words: np.ndarray) -> np.ndarray:
        """Return the entries of words, new ones linked to their slice and key."""
        # ``fresh`` of the index is only read when the number of entries has grown.
        known = len(self._entries)
        entries = self._entries.lookup_or_insert(words)
        if len(self._entries) > known:
            fresh = self._entries.fresh
            self._of_slice.link(self._slice_of(fresh), fresh)
            self._uses.retain(self.key_slots(fresh), self.keys.capacity)
            self.accumulators.reserve(self._entries.capacity)
        return entries

    def _numbered_panes(self, assigned: AssignedRows) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Return the words of key 0 in the panes of a batch, and which of them each row is in (None: all in
        one). None where there are too many, or a pane is more than a slice.
        """
        if assigned.missed is not None or assigned.starts is not None or not assigned.ends.size:
            return None
        ends, numbers = assigned.ends[:1], None
        # most batches: there is one pane, and no array with the pane of each row
        if not assigned.one_slice:
            ends, numbers = np.empty(_SLICES_MOST, np.int64), np.empty(assigned.ends.size, np.int64)
            count = kernel.number_slices(np.ascontiguousarray(assigned.ends), ends, numbers)
            if count < 0:
                return None
            ends = ends[:count]
        rows = np.zeros((ends.size, 2), np.int64)
        rows[:, 0] = ends
        slots, _ = self._slices.lookup_or_insert(rows)
        return _words(slots * self._fan, np.zeros(ends.size, np.int64)), numbers

    def _entry_words(
        self,
        key_slots: np.ndarray,
        assigned: AssignedRows,
        panes: tuple[np.ndarray, np.ndarray | None] | None,
    ) -> np.ndarray:
        """Return a word of each row's entry: its pane and its key. A pane is a slice less the first windows a
        late row missed.
        """
        if panes is None:
            of_slices = self._slice_slots(assigned) * self._fan
            return _words(of_slices if assigned.missed is None else of_slices + assigned.missed, key_slots)
        bases, numbers = panes
        return (key_slots << _NEAR_BITS) | (bases if numbers is None else bases[numbers])

    def _mark(self, entries: np.ndarray) -> None:
        """Note that entries change, before the first of their aggregates does."""
        self.changes.mark(entries, self._entries.capacity)
        self.accumulators.save(entries)

    def _slice_slots(self, assigned: AssignedRows) -> np.ndarray:
        """Return the slice of each row."""
        rows = np.zeros((assigned.ends.size, 2), np.int64)
        rows[:, 0] = assigned.ends
        if assigned.starts is not None:
            rows[:, 1] = assigned.starts
        return self._slices.lookup_or_insert(rows)[0]

    def slices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all slices with their ends and (attached) starts, by end, then start."""
        slots = self._slices.live_slots()
        ends, starts = self._slices.keys[slots].T
        order = np.lexsort((starts, ends))
        return slots[order], ends[order], starts[order]

    def entries_of(self, slices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (position in ``slices``, entry) for all entries of slices (which may repeat), by
        position, then age.
        """
        return self._of_slice.expand(slices)

    def entry_counts(self, slices: np.ndarray) -> np.ndarray:
        """Return how many entries each slice has."""
        return self._of_slice.counts(slices)

    def ends_of(self, entries: np.ndarray) -> np.ndarray:
        """Return the end of each entry's slice."""
        return self._slices.keys[self._slice_of(entries), 0]

    def key_slots(self, entries: np.ndarray) -> np.ndarray:
        """Return the slot in ``keys`` of each entry's key."""
        return _key_slots(self._entries.keys[entries])

    def missed(self, entries: np.ndarray) -> np.ndarray:
        """Return how many of its slice's first windows each entry is not part of."""
        return _panes(self._entries.keys[entries]) % self._fan

    def _slice_of(self, entries: np.ndarray) -> np.ndarray:
        return _panes(self._entries.keys[entries]) // self._fan

    def remove(self, slices: np.ndarray) -> None:
        """Forget distinct slices with all their entries, and the keys no entry is left of."""
        _, entries = self.entries_of(slices)
        if entries.size:
            # Everything that reads an entry's word comes before the entry is removed.
            self._mark(entries)
            self._views.save(entries)
            key_slots = self.key_slots(entries)
            self._recent.forget(key_slots)
            self._of_slice.unlink(entries)
            self.accumulators.clear(entries)
            self._entries.remove(entries)
            self.keys.remove(self._uses.release(key_slots))
        if slices.size:
            self._slices.remove(slices)

    def snapshot(self) -> pa.Table:
        """Return key_group, key columns k0.., slice_end, slice_start, missed, then the accumulators'
        columns; windows emitted count as missed.
        """
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Slices are copied; keys and aggregates later, by the thread that makes the table. What changes
        before is saved.
        """
        live_among, frozen_keys = slots_at_barrier(self._entries), self.keys.freeze()
        frozen = self._views.freeze([self._entries.keys], self._entries.allocated)
        frozen_accumulators = self.accumulators.freeze(self._entries.allocated)
        bounds, closed_us = self._slices.keys[: self._slices.allocated].copy(), self.closed.us

        def pieces() -> Iterator[pa.Table]:
            live = live_among(slots)
            asked, at = (None, live) if slots is None else (live, np.arange(live.size))
            keys, accumulators = frozen_keys(None), frozen_accumulators(asked)
            (words,) = frozen.copies(asked)

            def keys_of(at: np.ndarray) -> list[pa.Array]:
                return keys(_key_slots(words[at]))

            def entries(at: np.ndarray) -> Mapping[str, pa.Array]:
                panes = _panes(words[at])
                ends, starts = bounds[panes // self._fan].T
                # A window that was emitted must not be emitted again after a restore: it counts as missed.
                missed = self._missed_until(panes % self._fan, ends, np.full(at.size, closed_us))
                columns = key_columns(keys_of(at)) | {
                    "slice_end": array_of(ends.copy()),
                    "slice_start": array_of(starts.copy()),
                    "missed": array_of(missed),
                }
                return columns | accumulators(at)

            return pieces_by_keys(live, at, keys_of, entries, self._max_parallelism)

        return pieces

    def _missed_until(self, missed: np.ndarray, ends: np.ndarray, closed_us: np.ndarray) -> np.ndarray:
        """Return how many windows are missed when those are that had ended by some time as well."""
        if not isinstance(self._window, Windowing):
            return missed
        # Windows that end at or before ``closed`` have passed; a slice apart each.
        first = window_arithmetic.first_window_end_after(ends, closed_us, self._window)
        return np.maximum(missed, (first - ends) // self._window.slice_us)

    def restore(self, part: pa.Table) -> None:
        """Add entries of a snapshot."""
        columns = {name: part.column(name).combine_chunks() for name in part.column_names}
        keys = [columns[f"k{i}"] for i in range(self._num_keys)]
        ends, starts, missed = (numbers_of(columns[name]) for name in ("slice_end", "slice_start", "missed"))
        # The watermark is that of each entry's key group: subtasks of the checkpoint may have differed in it.
        missed = self._missed_until(missed, ends, self.closed.of(numbers_of(columns["key_group"])))
        nothing = Batch(pa.RecordBatch.from_arrays([], names=[]))
        entries = self._entries_for(keys, AssignedRows(nothing, ends, starts, missed))
        # Into accumulators of their own first: two entries of a snapshot can become one when both missed the
        # same windows, and ``restore`` would replace the first by the second.
        rows = np.arange(entries.size)
        loaded = self.accumulators.fresh()
        loaded.reserve(entries.size)
        loaded.restore(rows, {name: column for name, column in columns.items() if name.startswith("a")})
        self.accumulators.merge(entries, loaded, rows)


# A word has the high bits of the pane, 32 bits of the key slot, and the low bits of the pane.
def _words(panes: np.ndarray, key_slots: np.ndarray) -> np.ndarray:
    return ((panes >> _NEAR_BITS << _KEY_BITS | key_slots) << _NEAR_BITS) | (panes & _NEAR)


def _key_slots(words: np.ndarray) -> np.ndarray:
    return (words >> _NEAR_BITS) & _KEY


def _panes(words: np.ndarray) -> np.ndarray:
    return (words >> (_KEY_BITS + _NEAR_BITS) << _NEAR_BITS) | (words & _NEAR)
