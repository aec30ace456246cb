"""How a task spends its time: busy, idle (no input), or backpressured (no credit)."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

# between two samples
SECOND_MS = 1_000.0


class Spending(Enum):
    """What the time since the last step is counted as. Between two steps that did work, the thread belongs to
    other tasks, and nothing is counted.
    """

    BUSY = 0
    IDLE = 1
    BACKPRESSURED = 2


class TimeShares(NamedTuple):
    """Milliseconds of each kind, in all or per second."""

    busy: float = 0.0
    idle: float = 0.0
    backpressured: float = 0.0


class _State(NamedTuple):
    """The times at one moment, and what runs since then. Replaced as a whole, so readers need no lock."""

    busy: float
    idle: float
    backpressured: float
    spending: Spending
    since_ms: float

    def at(self, now_ms: float) -> TimeShares:
        """Return the times by ``now_ms``, the current wait included."""
        waited = max(0.0, now_ms - self.since_ms)
        idle = self.idle + (waited if self.spending is Spending.IDLE else 0.0)
        return TimeShares(
            self.busy, idle, self.backpressured + (waited if self.spending is Spending.BACKPRESSURED else 0.0)
        )


class TimeSpent:
    """Counted by the thread that steps the task, read by any thread. Each second leaves a sample, so a rate
    covers the last one to two seconds.
    """

    __slots__ = ("_mark", "_next_mark", "_next_ms", "_state")

    def __init__(self, now_ms: float) -> None:
        self._state = _State(0.0, 0.0, 0.0, Spending.BUSY, now_ms)
        # the sample a rate is measured from, and the one that replaces it a second later
        self._mark = self._next_mark = (now_ms, TimeShares())
        self._next_ms = now_ms + SECOND_MS

    def worked(self, began_ms: float, now_ms: float) -> None:
        """Count a step that did something, and the wait before it."""
        state = self._state
        # the wait before the step ends with its begin; time between two steps that worked belongs to other
        # tasks
        spent = state if state.spending is Spending.BUSY else state.at(began_ms)
        self._state = _State(
            spent.busy + now_ms - began_ms, spent.idle, spent.backpressured, Spending.BUSY, now_ms
        )
        if now_ms >= self._next_ms:
            self._leave_mark(now_ms)

    def waits(self, spending: Spending, began_ms: float) -> None:
        """Begin to wait, or keep waiting: the same wait is counted once."""
        state = self._state
        if state.spending is not spending:
            self._state = _State(*state.at(began_ms), spending, began_ms)

    def total(self, now_ms: float) -> TimeShares:
        """Return all that was spent."""
        return self._state.at(now_ms)

    def per_second(self, now_ms: float) -> TimeShares:
        """Return milliseconds per second over the last one to two seconds; a wait longer than that is all
        there is.
        """
        state = self._state
        # no sample is taken while the task waits: the wait is all of the last second
        if state.spending is not Spending.BUSY and now_ms - state.since_ms >= SECOND_MS:
            return TimeShares(*(SECOND_MS if kind is state.spending else 0.0 for kind in Spending))
        mark_ms, before = self._mark
        whole_ms = max(now_ms - mark_ms, 1.0)
        return TimeShares(
            *(
                min(SECOND_MS, (a - b) * SECOND_MS / whole_ms)
                for a, b in zip(state.at(now_ms), before, strict=True)
            )
        )

    def _leave_mark(self, now_ms: float) -> None:
        # after a long wait the older sample would make the rate cover that wait
        late = now_ms >= self._next_ms + SECOND_MS
        newest = (now_ms, self._state.at(now_ms))
        self._mark, self._next_mark = (newest if late else self._next_mark), newest
        self._next_ms = now_ms + SECOND_MS
