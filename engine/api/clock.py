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
