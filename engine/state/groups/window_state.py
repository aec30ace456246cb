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
from penstock.engine.state.groups.entry_index import EntryIndex, key_slots_of, panes_of
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

# Slices of a batch that are numbered before they are looked up.
_SLICES_MOST = 1_024


# One subtask that has all key groups, for states outside of a job.
_ALL = KeyGroups(0, 128, 128)


class WindowState(TrackedState):
    """One entry per (slice, missed, key): ``missed`` is how many of the slice's first windows the entry is
    not part of.

    An entry is a dense number, a slot of the accumulators. A pane is a dense number with the end of a slice,
    its start where windows are attached, and ``missed``. So a slice with late rows is several panes.

    ``closed``: until when windows were emitted, for the operator to declare. A restore computes from it how
    many windows entries have missed.
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
        self.accumulators = accumulators
        self.keys = KeyIndex(key_types)
        self._num_keys = len(key_types)
        # Entries of each key: a key is removed with its last entry.
        self._uses = UseCounts()
        # (end, start, missed) to pane numbers.
        self._panes = RowIndex(3)
        self._entries = EntryIndex()
        self._of_pane = MultiIndex()
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
        panes, numbers = self._numbered_panes(assigned)
        if not self._num_keys and numbers is None:
            # GROUP BY the window alone: all rows are of one entry
            entries = self._assigned(panes, None, self.keys.lookup_or_insert(key_columns, 1))
            self._mark(entries)
            return np.full(assigned.ends.size, entries[0])
        entries = self._assigned(panes, numbers, self.keys.lookup_or_insert(key_columns, assigned.ends.size))
        self._mark(entries)
        return entries

    def _assigned(self, panes: np.ndarray, numbers: np.ndarray | None, key_slots: np.ndarray) -> np.ndarray:
        """Return the entries of rows, new ones linked to their pane and key."""
        entries = self._entries.entries(panes, numbers, key_slots, self.keys.capacity)
        fresh = self._entries.fresh
        if fresh.size:
            self._of_pane.link(self._pane_of(fresh), fresh)
            self._uses.retain(self.key_slots(fresh), self.keys.capacity)
            self.accumulators.reserve(self._entries.capacity)
        return entries

    def _numbered_panes(self, assigned: AssignedRows) -> tuple[np.ndarray, np.ndarray | None]:
        """Return panes, and the position among them of each row's (None: all are in the first)."""
        if assigned.missed is not None or assigned.starts is not None or not assigned.ends.size:
            return self._pane_of_each(assigned)
        ends, numbers = assigned.ends[:1], None
        # most batches: there is one pane, and no array with the pane of each row
        if not assigned.one_slice:
            ends, numbers = np.empty(_SLICES_MOST, np.int64), np.empty(assigned.ends.size, np.int64)
            count = kernel.number_slices(np.ascontiguousarray(assigned.ends), ends, numbers)
            if count < 0:
                return self._pane_of_each(assigned)
            ends = ends[:count]
        rows = np.zeros((ends.size, 3), np.int64)
        rows[:, 0] = ends
        return self._panes.lookup_or_insert(rows)[0], numbers

    def _pane_of_each(self, assigned: AssignedRows) -> tuple[np.ndarray, np.ndarray]:
        """Return the pane of each row, and the position of it. Late rows are in a pane that has less of the
        first windows.
        """
        rows = np.zeros((assigned.ends.size, 3), np.int64)
        rows[:, 0] = assigned.ends
        if assigned.starts is not None:
            rows[:, 1] = assigned.starts
        if assigned.missed is not None:
            rows[:, 2] = assigned.missed
        return self._panes.lookup_or_insert(rows)[0], np.arange(assigned.ends.size)

    def _mark(self, entries: np.ndarray) -> None:
        """Note that entries change, before the first of their aggregates does."""
        self.changes.mark(entries, self._entries.capacity)
        self.accumulators.save(entries)

    def slices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return all panes with the ends and (attached) starts of their slices, by end, then start, then how
        many windows they missed.
        """
        panes = self._panes.live_slots()
        ends, starts, missed = self._panes.keys[panes].T
        order = np.lexsort((missed, starts, ends))
        return panes[order], ends[order], starts[order]

    def entries_of(self, panes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (position in ``panes``, entry) for all entries of panes (which may repeat), by position,
        then age.
        """
        return self._of_pane.expand(panes)

    def entry_counts(self, panes: np.ndarray) -> np.ndarray:
        """Return how many entries each pane has."""
        return self._of_pane.counts(panes)

    def ends_of(self, entries: np.ndarray) -> np.ndarray:
        """Return the end of each entry's slice."""
        return self._panes.keys[self._pane_of(entries), 0]

    def key_slots(self, entries: np.ndarray) -> np.ndarray:
        """Return the slot in ``keys`` of each entry's key."""
        return key_slots_of(self._entries.keys[entries])

    def missed(self, entries: np.ndarray) -> np.ndarray:
        """Return how many of its slice's first windows each entry is not part of."""
        return self._panes.keys[self._pane_of(entries), 2]

    def _pane_of(self, entries: np.ndarray) -> np.ndarray:
        return panes_of(self._entries.keys[entries])

    def remove(self, panes: np.ndarray) -> None:
        """Forget distinct panes with all their entries, and the keys no entry is left of."""
        _, entries = self.entries_of(panes)
        if entries.size:
            # Everything that reads an entry's word comes before the entry is removed.
            self._mark(entries)
            self._views.save(entries)
            key_slots = self.key_slots(entries)
            self._of_pane.unlink(entries)
            self.accumulators.clear(entries)
            self._entries.remove(entries)
            self.keys.remove(self._uses.release(key_slots))
        if panes.size:
            self._panes.remove(panes)

    def snapshot(self) -> pa.Table:
        """Return key_group, key columns k0.., slice_end, slice_start, missed, then the accumulators'
        columns; windows emitted count as missed.
        """
        return whole(self.freeze(None)())

    def freeze(self, slots: np.ndarray | None) -> Callable[[], Iterator[pa.Table]]:
        """Panes are copied; keys and aggregates later, by the thread that makes the table. What changes
        before is saved.
        """
        live_among, frozen_keys = slots_at_barrier(self._entries), self.keys.freeze()
        frozen = self._views.freeze([self._entries.keys], self._entries.allocated)
        frozen_accumulators = self.accumulators.freeze(self._entries.allocated)
        bounds, closed_us = self._panes.keys[: self._panes.allocated].copy(), self.closed.us

        def pieces() -> Iterator[pa.Table]:
            live = live_among(slots)
            asked, at = (None, live) if slots is None else (live, np.arange(live.size))
            keys, accumulators = frozen_keys(None), frozen_accumulators(asked)
            (words,) = frozen.copies(asked)

            def keys_of(at: np.ndarray) -> list[pa.Array]:
                return keys(key_slots_of(words[at]))

            def entries(at: np.ndarray) -> Mapping[str, pa.Array]:
                ends, starts, missed = bounds[panes_of(words[at])].T
                # A window that was emitted must not be emitted again after a restore: it counts as missed.
                missed = self._missed_until(missed, ends, np.full(at.size, closed_us))
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
