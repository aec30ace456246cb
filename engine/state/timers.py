"""Timers: event times to slots, handed out when the watermark passes them."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels import heap
from penstock.engine.state.index.word_index import grown

_FIRST = 64


class Timers:
    """A heap of (time, slot) pairs; ``len()`` is how many are set. A pair may be set twice; whoever sets
    timers drops the stale ones when due.

    Slots mean nothing outside their index, so timers are kept in a checkpoint by their owner, beside the keys
    (``entries`` and ``add``).
    """

    def __init__(self) -> None:
        self._size = 0
        self._times = np.zeros(_FIRST, np.int64)
        self._slots = np.zeros(_FIRST, np.int64)

    def __len__(self) -> int:
        return self._size

    @property
    def next_us(self) -> int | None:
        """The earliest time set."""
        return int(self._times[0]) if self._size else None

    def add(self, times_us: np.ndarray, slots: np.ndarray) -> None:
        """Set timers (int64 each)."""
        needed = self._size + times_us.size
        if needed > self._times.size:
            size = max(needed, 2 * self._times.size)
            self._times, self._slots = grown(self._times, size), grown(self._slots, size)
        heap.push(times_us, slots, self._size, self._times, self._slots)
        self._size = needed

    def due(self, watermark_us: int) -> tuple[np.ndarray, np.ndarray]:
        """Take out and return all timers with time <= ``watermark_us``: times ascending, and their slots."""
        if not self._size or self._times[0] > watermark_us:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        times, slots = np.empty(self._size, np.int64), np.empty(self._size, np.int64)
        count = heap.pop_due(watermark_us, self._size, self._times, self._slots, times, slots)
        self._size -= count
        return times[:count].copy(), slots[:count].copy()

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the times and slots of all timers, by time, then slot."""
        order = np.lexsort((self._slots[: self._size], self._times[: self._size]))
        return self._times[order], self._slots[order]
