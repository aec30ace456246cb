"""Windowed aggregation whose results are given before windows close, or change after: TUMBLE, HOP,
CUMULATE, and windows attached to the rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.operator import Context, Output, Rest, begun
from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.operators.change_buffer import ThinnedChanges
from penstock.engine.operators.window.early_fire import GivesChanges
from penstock.engine.operators.window.window_aggregate import WindowAggregateOperator
from penstock.engine.state.rows.row_difference import difference
from penstock.engine.windowing import window_arithmetic
from penstock.engine.windowing.window_assigner import PlacedRows
from penstock.planner.logical.windows import Windowing


class WindowChangesOperator(GivesChanges, WindowAggregateOperator):
    """What a batch changes of results already given is the difference of what its keys show before it and
    after it, in the windows it falls in.

    Given are all results where windows give early ones, else those of windows the watermark has passed. A
    window is forgotten when the watermark is ``lateness_us`` past its end; until then its rows change it.
    """

    def open(self, context: Context) -> None:
        super().open(context)
        self._changes = ThinnedChanges(self._emission.every_us, context.clock)

    def on_batch(self, batch: Batch, port: int, out: Output) -> Rest | None:
        placed = self._rows.place(batch, self._watermark_us)
        return begun(self._change(placed, out)) if placed.ends.size else None

    def _change(self, placed: PlacedRows, out: Output) -> Rest:
        """Take rows, so many at once that what they change of windows already given is not too much
        together.
        """
        if placed.ends.size * self._windows_per_row() <= LIMITS.merged_pairs:
            yield from self._take(placed, out)
            return
        counts = self._window_counts(placed)
        for first, last in cut(counts, counts.size, LIMITS.merged_pairs):
            if first:
                yield
            starts, missed = (
                None if values is None else values[first:last] for values in (placed.starts, placed.missed)
            )
            yield from self._take(
                PlacedRows(placed.batch.slice(first, last - first), placed.ends[first:last], starts, missed),
                out,
            )

    def _windows_per_row(self) -> int:
        """Return how many windows a row falls in at most."""
        return self._window.windows_per_slice if isinstance(self._window, Windowing) else 1

    def _window_counts(self, placed: PlacedRows) -> np.ndarray:
        """Return how many windows rows fall in."""
        if not isinstance(self._window, Windowing):
            return np.ones(placed.ends.size, np.int64)
        first, last = self._window_span(placed, self._window)
        return (last - first) // self._window.slice_us + 1

    def _window_span(self, placed: PlacedRows, window: Windowing) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the first and the last window of rows."""
        first = placed.ends if placed.missed is None else placed.ends + placed.missed * window.slice_us
        return first, window_arithmetic.last_window_end(placed.ends, window)

    def _take(self, placed: PlacedRows, out: Output) -> Rest:
        keys = [placed.batch.rows.column(key) for key in self._keys]
        touched = self._given_windows(placed)
        if not touched.size:
            self._state.add(keys, placed)
        else:
            before = self._shown(touched, keys, placed.ends.size)
            self._state.add(keys, placed)
            yield from self._changes.add(
                difference(before, self._shown(touched, keys, placed.ends.size)), out
            )
        self._will_close(placed.ends)
        self._metrics.state_entries = len(self._state)

    def _given_windows(self, placed: PlacedRows) -> np.ndarray:
        """Return the ends of the windows that rows fall in and whose results may have been given."""
        if not self._emission.early and placed.ends.min() > self._watermark_us:
            return placed.ends[:0]
        ends = placed.ends
        if isinstance(self._window, Windowing):
            step = self._window.slice_us
            spans = np.unique(np.stack(self._window_span(placed, self._window)), axis=1)
            counts = (spans[1] - spans[0]) // step + 1
            nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            ends = np.repeat(spans[0], counts) + nth * step
        ends = np.unique(ends)
        return ends if self._emission.early else ends[ends <= self._watermark_us]

    def _shown(self, window_ends: np.ndarray, keys: list[pa.Array], rows: int) -> list[Batch]:
        """Return the results of some windows for the keys of a batch as they are now."""
        state = self._state
        wanted = np.zeros(state.keys.capacity, np.bool_)
        known = state.keys.lookup(keys, rows)
        wanted[known[known >= 0]] = True
        slices, ends, starts = state.slices()
        if self._sliding:
            return self._shown_sliding(window_ends, slices, ends, wanted)
        held = np.isin(ends, window_ends)
        slices, ends, starts = slices[held], ends[held], starts[held]
        if isinstance(self._window, Windowing):
            starts = window_arithmetic.window_start(ends, self._window)
        positions, entries = state.entries_of(slices)
        mine = wanted[state.key_slots(entries)]
        positions, entries = positions[mine], entries[mine]
        return [
            self._batch(
                self._accumulators, entries, state.key_slots(entries), starts[positions], ends[positions]
            )
        ]

    def _shown_sliding(
        self, window_ends: np.ndarray, slices: np.ndarray, ends: np.ndarray, wanted: np.ndarray
    ) -> list[Batch]:
        # a bound instead of a count: counting the entries of each window costs a small batch a tenth more
        if max(len(self._state), ends.size) * self._windows_per_row() <= LIMITS.merged_pairs:
            of_slice, of_window = self._pairs(window_ends, ends)
            if not of_slice.size:
                return []
            order = np.argsort(of_window, kind="stable")
            of_slice = of_slice[order]
            return [self._merged(slices[of_slice], ends[of_slice], of_window[order], wanted)]
        found: list[Batch] = []
        at_once = max(1, LIMITS.merged_pairs // max(ends.size, 1))
        for first in range(0, window_ends.size, at_once):
            of_slice, of_window = self._pairs(window_ends[first : first + at_once], ends)
            found += self._merged_windows(slices, ends, of_slice, of_window, wanted)
        return found

    def _pairs(self, window_ends: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (position of a slice, end of a window that holds it) for some windows."""
        assert isinstance(self._window, Windowing)
        last = window_arithmetic.last_window_end(ends, self._window)
        low, high = np.searchsorted(window_ends, ends), np.searchsorted(window_ends, last, side="right")
        counts = np.maximum(high - low, 0)
        of_slice = np.repeat(np.arange(ends.size), counts)
        nth = np.arange(of_slice.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return of_slice, window_ends[low[of_slice] + nth]

    def _pass_time(self, time_us: int, out: Output) -> Rest:
        slices, ends, starts = self._state.slices()
        closing = (ends > self._watermark_us) & (ends <= time_us)
        closes = bool(closing.any())
        if self._emission.early:
            self._metrics.windows_closed += int(np.unique(ends[closing]).size)
        else:
            yield from self._give_closing(slices, ends, starts, time_us, out)
        if closes:
            yield from self._changes.give(out)
        else:
            yield from self._changes.give_due(out)
        self._watermark_us = time_us
        self._free(
            slices,
            ends,
            max(time_us, MIN_WATERMARK_US + self._emission.lateness_us) - self._emission.lateness_us,
        )
