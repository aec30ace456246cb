"""Restart strategies: how long to wait after a failure before trying again, and when to give up."""

from __future__ import annotations

from dataclasses import dataclass

REPEATS_MAX = 3


@dataclass(frozen=True)
class RestartStrategy:
    """Base of restart strategies; ``attempts`` failures within ``window_ms`` are forgiven."""

    attempts: int = 0
    window_ms: float = float("inf")

    def delay_ms(self, failures: int) -> float:
        """Return milliseconds to wait after the ``failures``-th failure in a row (from 1)."""
        return 0.0


@dataclass(frozen=True)
class NoRestart(RestartStrategy):
    """The first failure is the job's."""


@dataclass(frozen=True)
class FixedDelay(RestartStrategy):
    """Wait the same time before each of at most ``attempts`` restarts."""

    attempts: int = 3
    delay: float = 1_000.0

    def delay_ms(self, failures: int) -> float:
        return self.delay


@dataclass(frozen=True)
class ExponentialDelay(RestartStrategy):
    """Wait twice as long each time, from ``delay`` to ``max_delay`` milliseconds; give up after ``attempts`` failures within ``window_ms``."""

    attempts: int = 10
    window_ms: float = 600_000.0
    delay: float = 1_000.0
    max_delay: float = 60_000.0

    def delay_ms(self, failures: int) -> float:
        return min(self.max_delay, self.delay * 2.0 ** min(failures - 1, 32))


class RestartBudget:
    """Counts a job's failures against its strategy; a failure that only repeats itself is given up sooner."""

    def __init__(self, strategy: RestartStrategy) -> None:
        self._strategy = strategy
        self._failures: list[float] = []
        self._cause = ""
        self._repeats = 0

    @property
    def restarts(self) -> int:
        """Restarts granted within the strategy's window."""
        return len(self._failures)

    def progress(self) -> None:
        """Note that the job got on (a checkpoint completed), so the same failure later is news again."""
        self._repeats = 0

    def next_delay_ms(self, now_ms: float, cause: str, *, retriable: bool) -> float | None:
        """Record a failure at ``now_ms``; return how long to wait before the restart, or ``None`` to give up.

        Gives up on a cause that is not retriable and came ``REPEATS_MAX`` times in a row without progress.
        """
        self._repeats = self._repeats + 1 if cause == self._cause else 1
        self._cause = cause
        self._failures = [at for at in self._failures if now_ms - at <= self._strategy.window_ms]
        hopeless = not retriable and self._repeats >= REPEATS_MAX
        if hopeless or len(self._failures) >= self._strategy.attempts:
            return None
        self._failures.append(now_ms)
        return self._strategy.delay_ms(len(self._failures))
