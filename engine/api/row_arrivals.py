"""Rows that arrive at a source while its task sleeps."""

from __future__ import annotations

from collections.abc import Callable


def _wake_nobody() -> None:
    pass


class RowArrivals:
    """A flag that the threads of a connector raise for the task that polls the source: it polls at once
    instead of after its pause.

    A flag that is raised during a poll counts for the next one, so no arrival is slept through.
    """

    def __init__(self, wake: Callable[[], None] = _wake_nobody) -> None:
        """``wake`` ends the sleep of the task's thread; any thread may call it."""
        self._wake = wake
        self.pending = False

    def notify(self) -> None:
        """Report that rows have arrived; any thread may."""
        self.pending = True
        self._wake()

    def take(self) -> bool:
        """Return whether rows have arrived since the last call. Called before the rows are looked for."""
        pending, self.pending = self.pending, False
        return pending
