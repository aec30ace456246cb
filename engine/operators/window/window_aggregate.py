"""Window aggregation by slices: TUMBLE, HOP, CUMULATE, and windows attached to the rows. A window is emitted
once, when it ends; the early-fire variant emits changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.types import BIGINT
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    ListState,
    Operator,
    Output,
    PendingOutput,
    emit_batch,
    start_output,
)
from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.emit_changes import BufferedEmission, ChangeBuffer
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.window_state import WindowState
from penstock.engine.state.index.slot_sets import number_runs
from penstock.engine.state.rows.row_difference import difference
from penstock.engine.windowing import window_arithmetic
from penstock.engine.windowing.window_assigner import AssignedRows, WindowAssigner
from penstock.planner.expressions.nodes import AggregateCall
from penstock.planner.logical.aggregate import WindowAggregate
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.windows import Windowing
from penstock.planner.physical.operator_specs import OperatorSpec

WINDOW_TIME_US = 1000
"""``window_time`` is one millisecond before the window's end."""
# a hidden COUNT(*): a window whose rows were all retracted has 0, and emits no row
_ROW_COUNT = AggregateCall("count", (), BIGINT, False)


class WindowAggregateOperator(Operator):
    """State by key and slice; a window is the merge of its slices. Rows late for every window are dropped and
    counted.

    Windows are emitted in ascending order of their ends. A window without rows, or whose rows were all
    retracted, emits nothing.
    """

    def __init__(self, spec: OperatorSpec[WindowAggregate, OperatorFacts], options: JobOptions) -> None:
        self._window = spec.node.window
        self._emission = spec.node.emission
        self._keys = spec.node.keys
        self._schema = spec.schema.to_arrow()
        # without retractions an entry of the state has at least one row
        self._counts_rows = not spec.facts.insert_only
        calls = (*spec.node.aggregates, _ROW_COUNT) if self._counts_rows else spec.node.aggregates
        self._accumulators = Accumulators(calls, spec.facts.insert_only, options.time_zone)
        self._key_types = [spec.node.input.schema.to_arrow().field(key).type for key in spec.node.keys]
        # HOP and CUMULATE: a slice is part of several windows
        self._sliding = isinstance(self._window, Windowing) and self._window.overlapping
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._rows = WindowAssigner(self._window, context.metrics, self._emission.lateness_us)
        self._state = WindowState(self._window, self._key_types, self._accumulators, context.key_groups)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"windows": self._state}

    def list_states(self) -> dict[str, ListState]:
        return {**super().list_states(), "passed": self._state.closed}

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        # late rows are dropped and counted, the others get the end of their slice
        assigned = self._rows.assign(batch, self._watermark_us)
        if assigned.ends.size:
            self._state.add([assigned.batch.rows.column(key) for key in self._keys], assigned)
            self._will_close(assigned.ends[:1] if assigned.one_slice else assigned.ends)
            self._metrics.state_entries = len(self._state)
        return None

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        slices, ends, starts = self._state.slices()
        # Order: emit by the old watermark, then set the new one, then free. A window closes between the two.
        yield from self._emit_closing(slices, ends, starts, time_us, out)
        self._watermark_us = time_us
        self._free(slices, ends, time_us)

    def _emit_closing(
        self, slices: np.ndarray, ends: np.ndarray, starts: np.ndarray, time_us: int, out: Output
    ) -> PendingOutput:
        # slices are sorted by end, so the first one shows whether any window closes
        if not (ends.size and ends[0] <= time_us):
            return
        for number, batch in enumerate(self._closing(slices, ends, starts, time_us)):
            if number:
                yield
            yield from emit_batch(batch, out)

    def _will_close(self, ends: np.ndarray) -> None:
        """Report in the metrics when the next window closes."""
        # the end of a slice is the end of its first window
        later = ends[ends > self._watermark_us]
        if later.size:
            known = self._metrics.next_close_us
            self._metrics.next_close_us = int(later.min()) if known is None else min(known, int(later.min()))

    def _closing(
        self, slices: np.ndarray, ends: np.ndarray, starts: np.ndarray, time_us: int
    ) -> Iterator[Batch]:
        """Emit the windows that end after the last watermark and by ``time_us``."""
        return (
            self._sliding_windows(slices, ends, time_us)
            if self._sliding
            else self._whole_slices(slices, ends, starts, time_us)
        )

    def _free(self, slices: np.ndarray, ends: np.ndarray, time_us: int) -> None:
        """Free the slices whose last window has ended by ``time_us``."""
        self._state.closed.us = time_us
        self._metrics.next_close_us = None
        self._will_close(ends)
        # HOP(1 min, 5 min): a slice ends after one minute, but is part of windows for five
        last = (
            window_arithmetic.last_window_end(ends, self._window)
            if isinstance(self._window, Windowing)
            else ends
        )
        over = last <= time_us
        if over.any():
            self._state.remove(slices[over])
            self._metrics.state_entries = len(self._state)

    def _whole_slices(
        self, slices: np.ndarray, ends: np.ndarray, starts: np.ndarray, time_us: int
    ) -> Iterator[Batch]:
        """Without overlap each slice is a window."""
        # slices at or below the last watermark have been emitted; lateness may leave them in the state
        due = (ends <= time_us) & (ends > self._watermark_us)
        ends, starts = ends[due], starts[due]
        self._metrics.windows_closed += int(ends.size)
        positions, entries = self._state.entries_of(slices[due])
        if isinstance(self._window, Windowing):
            starts = window_arithmetic.window_start(ends, self._window)
        # positions and entries run in parallel: one output row per (slice, key)
        for first in range(0, max(entries.size, 1), LIMITS.piece_rows):
            at, some = (
                positions[first : first + LIMITS.piece_rows],
                entries[first : first + LIMITS.piece_rows],
            )
            yield self._batch(self._accumulators, some, self._state.key_slots(some), starts[at], ends[at])

    def _sliding_windows(self, slices: np.ndarray, ends: np.ndarray, time_us: int) -> Iterator[Batch]:
        """Merge, for each window that ends now, the entries of its slices by key, as many windows at once as
        fit.
        """
        for of_slice, window_ends in self._due_pairs(ends, time_us):
            yield from self._merged_windows(slices, ends, of_slice, window_ends)

    def _merged_windows(
        self,
        slices: np.ndarray,
        ends: np.ndarray,
        of_slice: np.ndarray,
        window_ends: np.ndarray,
        wanted: np.ndarray | None = None,
    ) -> Iterator[Batch]:
        """Return the rows of whole windows, as (slice, window's end); only of the ``wanted`` keys (by slot),
        unless None.
        """
        # by window, then slice: windows are emitted in the order of their ends
        order = np.lexsort((of_slice, window_ends))
        of_slice, window_ends = of_slice[order], window_ends[order]
        distinct, first_pair = np.unique(window_ends, return_index=True)
        self._metrics.windows_closed += int(distinct.size) if wanted is None else 0
        # entries of all slices of each window: as many windows are merged at once as fit
        sizes = (
            np.add.reduceat(self._state.entry_counts(slices[of_slice]), first_pair)
            if distinct.size
            else np.zeros(0, np.int64)
        )
        bounds = np.append(first_pair, window_ends.size)
        for first, last in _runs(sizes):
            pairs = slice(bounds[first], bounds[last])
            yield self._merged(slices[of_slice[pairs]], ends[of_slice[pairs]], window_ends[pairs], wanted)

    def _due_pairs(self, ends: np.ndarray, time_us: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (position of a slice, end of a window that holds it) for all windows that end after the last
        watermark and by ``time_us``.

        In chunks of about so many slices: a watermark that comes late may close very many windows.
        """
        window = self._window
        assert isinstance(window, Windowing)
        # windows end at multiples of `step`; those that end by `after_us` have been emitted
        step, after_us = window.slice_us, self._watermark_us
        last_of_all = np.minimum(window_arithmetic.last_window_end(ends, window), time_us)
        while True:
            # of each slice its first window that is not emitted; beyond `last_of_all` the slice has none
            first = window_arithmetic.first_window_end_after(ends, np.full(ends.size, after_us), window)
            open_ = np.flatnonzero(first <= last_of_all)
            if not open_.size:
                return
            # this chunk covers so many window ends that at most LIMITS.merged_pairs pairs come of it
            after_us = int(first[open_].min()) + step * (max(1, LIMITS.merged_pairs // ends.size) - 1)
            last = np.minimum(last_of_all, after_us)
            # slice i has `counts[i]` windows in this chunk; `nth` numbers them from 0
            counts = np.where(last >= first, (last - first) // step + 1, 0)
            positions = np.repeat(np.arange(ends.size), counts)
            nth = np.arange(positions.size) - np.repeat(np.cumsum(counts) - counts, counts)
            yield positions, first[positions] + nth * step

    def _merged(
        self, slices: np.ndarray, ends: np.ndarray, window_ends: np.ndarray, wanted: np.ndarray | None = None
    ) -> Batch:
        """Return the rows of whole windows, as (slice, its end, window's end) by window; only of the
        ``wanted`` keys (by slot), unless None.
        """
        window = self._window
        assert isinstance(window, Windowing)
        state = self._state
        positions, entries = state.entries_of(slices)
        # a late row counts in the windows that had not ended for it: its entry misses the slice's first ones
        if state.some_missed:
            first_ends = ends[positions] + state.missed(entries) * window.slice_us
            part_of = first_ends <= window_ends[positions]
            positions, entries = positions[part_of], entries[part_of]
        if wanted is not None:
            # only the keys of a batch: the other keys of these windows are unchanged
            mine = wanted[state.key_slots(entries)]
            positions, entries = positions[mine], entries[mine]
        key_slots = state.key_slots(entries)
        # numbers the output rows: one number for each (window, key); `firsts` are their first entries
        into, firsts = number_runs(window_ends[positions], key_slots, state.keys.capacity)
        # merged into new accumulators: the slices are needed for the windows that end later
        merged = self._accumulators.fresh()
        merged.reserve(firsts.size)
        merged.merge(into, self._accumulators, entries)
        ends = window_ends[positions[firsts]]
        return self._batch(
            merged,
            np.arange(firsts.size),
            key_slots[firsts],
            window_arithmetic.window_start(ends, window),
            ends,
        )

    def _batch(
        self,
        accumulators: Accumulators,
        slots: np.ndarray,
        key_slots: np.ndarray,
        starts: np.ndarray,
        ends: np.ndarray,
    ) -> Batch:
        results = accumulators.results(slots)
        # keys, then aggregates without the hidden COUNT(*), then window_start, window_end and window_time
        columns = self._state.keys.keys(key_slots) + results[: len(results) - self._counts_rows]
        for times, field in zip((starts, ends, ends - WINDOW_TIME_US), list(self._schema)[-3:], strict=True):
            columns.append(array_of(times).view(field.type))
        batch = Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
        if self._counts_rows:
            # all rows of the window were retracted: as in SQL, a group without rows has no row
            some = col.words(results[-1]) > 0
            return batch if some.all() else batch.filter(array_of(some))
        return batch


def _runs(sizes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Cut windows with these many entries into runs of at most ``LIMITS.merged_pairs`` entries (one window at
    least).
    """
    total = np.cumsum(sizes)
    first = 0
    while first < sizes.size:
        # at least one window, even if it alone has more entries than fit
        before = total[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + LIMITS.merged_pairs, side="right")))
        yield first, last
        first = last


class EarlyFireEmission(BufferedEmission, ListState):
    """Base of windows that fire early. Which windows have closed is state, the same in all subtasks at a
    barrier.
    """

    _watermark_us: int

    def list_states(self) -> dict[str, ListState]:
        return {**super().list_states(), "closed": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        # one item per subtask: the watermark up to which windows have been emitted
        return [] if self._watermark_us == MIN_WATERMARK_US else [{"reached_us": self._watermark_us}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        # all subtasks had the same watermark at the barrier; a new subtask takes it over
        self._watermark_us = max([self._watermark_us, *(item["reached_us"] for item in items)])


class EarlyFireWindowOperator(EarlyFireEmission, WindowAggregateOperator):
    """Emits the difference of a batch's keys before and after it, in the windows it falls in.

    With early results all windows are emitted, else those the watermark has passed. A window is dropped when
    the watermark is ``lateness_us`` past its end; until then its rows change its result.
    """

    def open(self, context: Context) -> None:
        super().open(context)
        self._changes = ChangeBuffer(self._emission, context.clock)

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        assigned = self._rows.assign(batch, self._watermark_us)
        return start_output(self._change(assigned, out)) if assigned.ends.size else None

    def _change(self, assigned: AssignedRows, out: Output) -> PendingOutput:
        """Add rows, so many at once that the changes to emitted windows fit."""
        # an upper bound first: counting the windows of each row is only needed for large batches
        if assigned.ends.size * self._windows_per_row() <= LIMITS.merged_pairs:
            yield from self._take(assigned, out)
            return
        counts = self._window_counts(assigned)
        for first, last in cut(counts, counts.size, LIMITS.merged_pairs):
            if first:
                yield
            # the columns of AssignedRows that may be absent
            starts, missed = (
                None if values is None else values[first:last]
                for values in (assigned.starts, assigned.missed)
            )
            yield from self._take(
                AssignedRows(
                    assigned.batch.slice(first, last - first), assigned.ends[first:last], starts, missed
                ),
                out,
            )

    def _windows_per_row(self) -> int:
        """Return how many windows a row falls in at most."""
        return self._window.windows_per_slice if isinstance(self._window, Windowing) else 1

    def _window_counts(self, assigned: AssignedRows) -> np.ndarray:
        """Return how many windows rows fall in."""
        if not isinstance(self._window, Windowing):
            return np.ones(assigned.ends.size, np.int64)
        first, last = self._window_span(assigned, self._window)
        return (last - first) // self._window.slice_us + 1

    def _window_span(self, assigned: AssignedRows, window: Windowing) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the first and the last window of rows."""
        # a slice's first window ends with it; a late row begins `missed` windows later
        first = (
            assigned.ends if assigned.missed is None else assigned.ends + assigned.missed * window.slice_us
        )
        return first, window_arithmetic.last_window_end(assigned.ends, window)

    def _take(self, assigned: AssignedRows, out: Output) -> PendingOutput:
        keys = [assigned.batch.rows.column(key) for key in self._keys]
        # the order is fixed: read the old results, add the rows, read the new results, emit the difference
        touched = self._emitted_windows(assigned)
        # no result of these windows was emitted: nothing to retract
        if not touched.size:
            self._state.add(keys, assigned)
        else:
            before = self._shown(touched, keys, assigned.ends.size)
            self._state.add(keys, assigned)
            yield from self._changes.add(
                difference(before, self._shown(touched, keys, assigned.ends.size)), out
            )
        self._will_close(assigned.ends)
        self._metrics.state_entries = len(self._state)

    def _emitted_windows(self, assigned: AssignedRows) -> np.ndarray:
        """Return the ends of the windows that rows fall in and whose results may have been emitted."""
        # EMIT FINAL with lateness: windows above the watermark have not been emitted
        if not self._emission.early and assigned.ends.min() > self._watermark_us:
            return assigned.ends[:0]
        ends = assigned.ends
        if isinstance(self._window, Windowing):
            step = self._window.slice_us
            # (2, n): first and last window end, each combination once; most rows of a batch share one
            spans = np.unique(np.stack(self._window_span(assigned, self._window)), axis=1)
            counts = (spans[1] - spans[0]) // step + 1
            nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            ends = np.repeat(spans[0], counts) + nth * step
        ends = np.unique(ends)
        # early results are emitted for every window; else only for those the watermark has passed
        return ends if self._emission.early else ends[ends <= self._watermark_us]

    def _shown(self, window_ends: np.ndarray, keys: list[pa.Array], rows: int) -> list[Batch]:
        """Return the results of some windows for the keys of a batch as they are now."""
        state = self._state
        # a mask by key slot; keys that are new in the batch have no old result
        wanted = np.zeros(state.keys.capacity, np.bool_)
        known = state.keys.lookup(keys, rows)
        wanted[known[known >= 0]] = True
        slices, ends, starts = state.slices()
        if self._sliding:
            return self._shown_sliding(window_ends, slices, ends, wanted)
        # TUMBLE and attached windows: the slice is the window
        buffered = np.isin(ends, window_ends)
        slices, ends, starts = slices[buffered], ends[buffered], starts[buffered]
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
        # an upper bound: counting the entries of each window would cost a small batch a tenth more
        if max(len(self._state), ends.size) * self._windows_per_row() <= LIMITS.merged_pairs:
            of_slice, of_window = self._pairs(window_ends, ends)
            if not of_slice.size:
                return []
            order = np.argsort(of_window, kind="stable")
            of_slice = of_slice[order]
            return [self._merged(slices[of_slice], ends[of_slice], of_window[order], wanted)]
        batches: list[Batch] = []
        # too much for one merge: some windows at a time
        at_once = max(1, LIMITS.merged_pairs // max(ends.size, 1))
        for first in range(0, window_ends.size, at_once):
            of_slice, of_window = self._pairs(window_ends[first : first + at_once], ends)
            batches += self._merged_windows(slices, ends, of_slice, of_window, wanted)
        return batches

    def _pairs(self, window_ends: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (position of a slice, end of a window that holds it) for some windows."""
        assert isinstance(self._window, Windowing)
        last = window_arithmetic.last_window_end(ends, self._window)
        # `window_ends` is sorted: the windows that hold a slice are neighbours in it
        low, high = np.searchsorted(window_ends, ends), np.searchsorted(window_ends, last, side="right")
        counts = np.maximum(high - low, 0)
        of_slice = np.repeat(np.arange(ends.size), counts)
        nth = np.arange(of_slice.size) - np.repeat(np.cumsum(counts) - counts, counts)
        return of_slice, window_ends[low[of_slice] + nth]

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        slices, ends, starts = self._state.slices()
        # slices whose first window ends now
        closing = (ends > self._watermark_us) & (ends <= time_us)
        closes = bool(closing.any())
        # early results have emitted these windows already, so closing them emits nothing new
        if self._emission.early:
            self._metrics.windows_closed += int(np.unique(ends[closing]).size)
        else:
            yield from self._emit_closing(slices, ends, starts, time_us, out)
        # a window that closes does not wait for the interval of EMIT CHANGES
        if closes:
            yield from self._changes.flush(out)
        else:
            yield from self._changes.flush_due(out)
        self._watermark_us = time_us
        self._free(
            slices,
            ends,
            # the state stays for the allowed lateness, for late rows change results
            max(time_us, MIN_WATERMARK_US + self._emission.lateness_us) - self._emission.lateness_us,
        )
