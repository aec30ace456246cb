"""Offsets of a time zone from UTC by wall-clock time, from its changes of the clock from 1970 to 2099."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.kernels.arrow_views import bitmap, validity

_LOCAL, _UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
_SECOND_US = 1_000_000
_STEP_US = 6 * 3_600 * _SECOND_US
_FIRST_US = 0
# 2100-01-01
_LAST_US = 4_102_444_800 * _SECOND_US
_DAY_US = 86_400 * _SECOND_US
_FEW = 1_000
"""Times that Arrow converts before the changes of a zone are looked for, which takes 10 ms."""


def instants_of(local: pa.Array, zone: str) -> pa.Array | None:
    """Return the instants of wall-clock times. Of ambiguous times it is the earlier one; a skipped time moves
    by the length of the gap. ``None`` for few times, and for those before 1970 or after 2099.
    """
    if len(local) - local.null_count < _FEW:
        return None
    least, most = (part.value for part in pc.min_max(local).values())
    if least < _FIRST_US + _DAY_US or most > _LAST_US - _DAY_US:
        return None
    changes = _changes(zone)
    if changes is None:
        return None
    bounds, offsets = changes
    times = np.frombuffer(local.buffers()[1], np.int64, len(local), local.offset * 8)
    # the changes of the clock between the first and the last of these times, which are few
    first, last = np.searchsorted(bounds, [least, most], side="right")
    if first == last:
        moved = times - offsets[first]
    else:
        moved = times - offsets[first:][np.searchsorted(bounds[first:last], times, side="right")]
    return pa.Array.from_buffers(_UTC, len(local), [bitmap(validity(local)), pa.py_buffer(moved)])


@functools.lru_cache(maxsize=64)
def _changes(zone: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the wall-clock times from which another offset holds, and the offsets before and behind them, in
    microseconds; ``None`` for a zone with two changes within hours.
    """
    grid = np.arange(_FIRST_US, _LAST_US + 1, _STEP_US)
    found = _offsets(grid, zone)
    at = np.flatnonzero(found[1:] != found[:-1])
    before, after = found[at], found[at + 1]
    low, high = grid[at] // _SECOND_US, grid[at + 1] // _SECOND_US
    # the change is behind ``low`` and not behind ``high``
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_later = _offsets(middle * _SECOND_US, zone) == before
        low, high = np.where(is_later, middle, low), np.where(is_later, high, middle)
    instants = high * _SECOND_US
    if (_offsets(instants, zone) != after).any():
        return None
    # a time that is skipped has the offset before, and so has one that occurs twice
    bounds = instants + np.maximum(before, after)
    if (np.diff(bounds) <= 0).any():
        return None
    return bounds, np.concatenate((found[:1], after))


def _offsets(instants: np.ndarray, zone: str) -> np.ndarray:
    local = pc.local_timestamp(pa.array(instants, pa.timestamp("us", zone)))
    return local.view(pa.int64()).to_numpy() - instants
