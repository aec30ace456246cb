"""Window arithmetic, pure: which windows a time falls in, which slice, which windows a slice belongs to.

Microseconds, floor division, so times before 1970 are right. A slice is the longest stretch of time that no
window cuts: TUMBLE's window, HOP's slide, CUMULATE's step. It is named by its end (exclusive).
"""

from __future__ import annotations

import numpy as np

from penstock.planner.logical.windows import CumulateWindow, HopWindow, TumbleWindow, Windowing


class _TumbleEnds:
    """A slice's end is that of its one window; a window starts its size before its end."""

    @staticmethod
    def last_end(slice_ends: np.ndarray, windowing: Windowing) -> np.ndarray:
        return slice_ends

    @staticmethod
    def start(window_ends: np.ndarray, windowing: Windowing) -> np.ndarray:
        return window_ends - windowing.size_us


class _HopEnds(_TumbleEnds):
    """The last window that holds a slice starts with it."""

    @staticmethod
    def last_end(slice_ends: np.ndarray, windowing: Windowing) -> np.ndarray:
        # HOP(step 1 min, size 5 min): the slice that ends at 10:01 is in windows that end at 10:01 .. 10:05
        return slice_ends + (windowing.size_us - windowing.step_us)


class _CumulateEnds(_TumbleEnds):
    """Windows start at multiples of their greatest size; the last that holds a slice is as long as that."""

    @staticmethod
    def last_end(slice_ends: np.ndarray, windowing: Windowing) -> np.ndarray:
        return _CumulateEnds.start(slice_ends, windowing) + windowing.size_us

    @staticmethod
    def start(window_ends: np.ndarray, windowing: Windowing) -> np.ndarray:
        size, offset = windowing.size_us, windowing.offset_us
        # an end is exclusive: the window holds the microsecond before it
        # floor division: right for times before 1970 too
        return (window_ends - 1 - offset) // size * size + offset


_ENDS: dict[type[Windowing], type[_TumbleEnds]] = {
    TumbleWindow: _TumbleEnds,
    HopWindow: _HopEnds,
    CumulateWindow: _CumulateEnds,
}
"""How the ends and starts of windows follow from slices, for each kind that has slices."""


def event_times(times: np.ndarray, windowing: Windowing) -> np.ndarray:
    """Return the times rows count as: a row of slice end e counts as e - 1."""
    return times - 1 if windowing.sliced else times


def slice_end(times: np.ndarray, windowing: Windowing) -> np.ndarray:
    """Return the end of the slice each time falls in, int64."""
    if windowing.sliced:
        return times
    size, offset = windowing.slice_us, windowing.offset_us
    return ((times - offset) // size + 1) * size + offset


def last_window_end(slice_ends: np.ndarray, windowing: Windowing) -> np.ndarray:
    """Return the end of the last window that holds each slice; the first one ends with the slice, and they
    follow each other by ``slice_us``.
    """
    return _ENDS[type(windowing)].last_end(slice_ends, windowing)


def window_start(window_ends: np.ndarray, windowing: Windowing) -> np.ndarray:
    """Return the start of the window with each end."""
    return _ENDS[type(windowing)].start(window_ends, windowing)


def first_window_end_after(slice_ends: np.ndarray, bounds: np.ndarray, windowing: Windowing) -> np.ndarray:
    """Return, for rows of each slice, the end of their first window that ends after ``bounds``; beyond
    ``last_window_end`` when all have ended.
    """
    step = windowing.slice_us
    # also keeps extreme bounds from overflowing
    behind = np.minimum(bounds, last_window_end(slice_ends, windowing))
    missed = np.maximum(behind, slice_ends - 1) - slice_ends
    return slice_ends + (missed // step + 1) * step


def window_counts(times_us: np.ndarray, windowing: Windowing) -> np.ndarray:
    """Return how many windows each time falls in."""
    first = slice_end(times_us, windowing)
    return (last_window_end(first, windowing) - first) // windowing.slice_us + 1


def assign(times_us: np.ndarray, windowing: Windowing) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one entry per row and window it falls in: the row's index, the window's start and end, ordered
    by row, then end.

    For merging windows the row's own window before any merging: from its time to its time plus the gap.
    """
    times = event_times(times_us, windowing)
    rows = np.arange(times.size, dtype=np.int64)
    if windowing.merging:
        # SESSION: for merging windows the size is the gap
        return rows, times, times + windowing.size_us
    first = slice_end(times_us, windowing)
    if not windowing.overlapping:
        # TUMBLE: the slice is the row's only window
        return rows, first - windowing.size_us, first
    # HOP and CUMULATE: one entry for each window of the row, its windows numbered from 0 by ``nth``
    counts = window_counts(times_us, windowing)
    row_index = np.repeat(rows, counts)
    nth = np.arange(row_index.size, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    ends = first[row_index] + nth * windowing.slice_us
    return row_index, window_start(ends, windowing), ends
