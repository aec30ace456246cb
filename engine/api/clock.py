"""Clocks: the only source of time. The core gets one injected: the system's in production, a manual one in
tests and simulation.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds from two clocks: wall (for people and processing time) and monotonic (for every
    timeout).
    """

    def wall_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""

    def monotonic_ms(self) -> float:
        """Return milliseconds that never go back."""


class SystemClock:
    """The machine's clocks."""

    def wall_ms(self) -> int:
        """Return milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Return milliseconds that never go back."""
        return time.monotonic_ns() / 1e6


class BatchClock:
    """A clock whose wall time stands still while a batch is evaluated: all calls in a row agree, also at
    midnight.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now_ms: int | None = None

    def begin_batch(self) -> None:
        """Read the clock anew when it is next asked."""
        self._now_ms = None

    def wall_ms(self) -> int:
        """Return the time at which this batch first asked."""
        if self._now_ms is None:
            self._now_ms = self._clock.wall_ms()
        return self._now_ms

    def monotonic_ms(self) -> float:
        """Return milliseconds that never go back."""
        return self._clock.monotonic_ms()


class ManualClock:
    """A clock that a test moves."""

    def __init__(self, now_ms: int = 0) -> None:
        self.now_ms: float = now_ms

    def advance(self, by_ms: float) -> None:
        """Move both clocks forward."""
        self.now_ms += by_ms

    def wall_ms(self) -> int:
        """Return the time that was set."""
        return int(self.now_ms)

    def monotonic_ms(self) -> float:
        """Return the time that was set."""
        return self.now_ms


def pause_ms(duration_ms: float) -> None:
    """Wait, blocking the thread: between two attempts to reach a server."""
    time.sleep(duration_ms / 1000)
