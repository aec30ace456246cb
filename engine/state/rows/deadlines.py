"""Deadlines: times of rows or slots, handed out when time has passed them."""

from __future__ import annotations

import numpy as np

_MERGED_BELOW = 16_384


class Deadlines:
    """Pairs (time, number) in pieces sorted by time, so that what is due are the heads of pieces. Small
    pieces are merged with their neighbours.

    For what comes in bulk and almost in order; ``penstock.engine.state.timers.Timers`` are for few at a time
    in any order. A pair may be stale when it is due: whoever adds pairs tells.
    """

    def __init__(self) -> None:
        self._pieces: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, times_us: np.ndarray, numbers: np.ndarray) -> None:
        """Add pairs (int64 each)."""
        if not times_us.size:
            return
        self._pieces.append(_sorted(times_us, numbers))
        while len(self._pieces) > 1 and self._pieces[-2][0].size < min(
            2 * self._pieces[-1][0].size, _MERGED_BELOW
        ):
            (later_times, later), (times, earlier) = self._pieces.pop(), self._pieces.pop()
            self._pieces.append(
                _sorted(np.concatenate([times, later_times]), np.concatenate([earlier, later]))
            )

    def due(self, time_us: int) -> tuple[np.ndarray, np.ndarray]:
        """Take out and return all pairs with a time before ``time_us``: the times and the numbers, in no
        order.
        """
        times, numbers, rest = [], [], []
        for at, which in self._pieces:
            count = int(np.searchsorted(at, time_us)) if at[0] < time_us else 0
            times.append(at[:count])
            numbers.append(which[:count])
            if count < at.size:
                rest.append((at[count:], which[count:]))
        self._pieces = rest
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *times]), np.concatenate([none, *numbers])


def _sorted(times_us: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(times_us, kind="stable")
    return times_us[order], numbers[order]
