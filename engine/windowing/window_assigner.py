"""WindowAssigner: the slice of each row; rows without a time and late rows are dropped and counted."""

from __future__ import annotations

import numpy as np

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.windowing import window_arithmetic
from penstock.engine.windowing.late_row_filter import without_late
from penstock.planner.logical.windows import AttachedWindow, Windowing


@dataclass(frozen=True, eq=False)
class AssignedRows:
    """Rows with the end of their slice, int64 each, perhaps a view that repeats one. ``starts`` is set for
    attached windows, which are their own slices.

    ``missed`` is how many of the first windows that hold the slice had ended for the row; ``None`` means none
    for any row. ``one_slice``: all rows are known to be of one slice, which has no attached window.
    """

    batch: Batch
    ends: np.ndarray
    starts: np.ndarray | None = None
    missed: np.ndarray | None = None
    one_slice: bool = False


class WindowAssigner:
    """Assigns rows to slices by their time column, or by windows that are attached to them.

    A window has ended for a row when its end is at or below one of two watermarks. One is that of the row's
    split just before it (``Batch.behind``), the other the operator's own. Rows are accepted until the end is
    ``lateness_us`` below that.
    """

    def __init__(
        self, window: Windowing | AttachedWindow, metrics: OperatorMetrics, lateness_us: int = 0
    ) -> None:
        self._window = window
        self._metrics = metrics
        self._lateness_us = lateness_us

    def assign(self, batch: Batch, watermark_us: int) -> AssignedRows:
        """Return the rows that some window still accepts; ``watermark_us`` is the operator's own
        watermark.
        """
        window = self._window
        if isinstance(window, Windowing):
            batch, times = self._timed(batch, window.time_column)
            slice_ends, one_slice = _slice_ends(times, window)
            assigned = AssignedRows(batch, slice_ends, one_slice=one_slice)
        else:
            batch, ends = self._timed(batch, window.end_column)
            assigned = AssignedRows(batch, ends, col.words(batch.rows.column(window.start_column)))
        ends = assigned.ends[:1] if assigned.one_slice else assigned.ends
        if not ends.size or (batch.behind is None and ends.min() > watermark_us):
            return assigned
        return self._drop_late(assigned, watermark_us)

    def _timed(self, batch: Batch, column: int) -> tuple[Batch, np.ndarray]:
        """Return the rows whose time is not NULL, and the times."""
        times = batch.rows.column(column)
        if times.null_count:
            self._metrics.count("null_time_rows", times.null_count)
            batch = batch.filter(times.is_valid())
            times = batch.rows.column(column)
        return batch, col.words(times)

    def _drop_late(self, assigned: AssignedRows, watermark_us: int) -> AssignedRows:
        ends, window = assigned.ends, self._window
        behind = (
            np.full(ends.size, MIN_WATERMARK_US) if assigned.batch.behind is None else assigned.batch.behind
        )
        # a row is late by the later of its split's watermark and the operator's
        reached = np.maximum(behind, watermark_us)
        # the maximum keeps the subtraction from underflowing before the first watermark
        bounds = np.maximum(reached, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        # A row of a windowing is late when its last window has ended; else its first windows may have ended
        # only.
        if isinstance(window, Windowing):
            first = window_arithmetic.first_window_end_after(ends, bounds, window)
            last = window_arithmetic.last_window_end(ends, window)
            keep = first <= last
            missed = (first - ends) // window.slice_us
        else:
            # an attached window is its own slice: late once that one window has ended
            last, keep = ends, ends > bounds
            missed = np.zeros(ends.size, np.int64)
        batch, starts = assigned.batch, assigned.starts
        if not keep.all():
            batch = without_late(batch, ~keep, reached, self._metrics, last)
            ends, missed = ends[keep], missed[keep]
            starts = None if starts is None else starts[keep]
        return AssignedRows(batch, ends, starts, missed if missed.any() else None, assigned.one_slice)


def _slice_ends(times: np.ndarray, window: Windowing) -> tuple[np.ndarray, bool]:
    """Return the end of each row's slice, and whether they are of one slice. Most batches are: then two
    divisions suffice, not one a row.
    """
    if times.size:
        first, last = window_arithmetic.slice_end(np.array([times.min(), times.max()]), window)
        if first == last:
            # one number, which is not written out
            return np.broadcast_to(first, times.size), True
    return window_arithmetic.slice_end(times, window), False
