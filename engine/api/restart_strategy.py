"""Restart strategies: how long to wait after a failure before the next attempt, and when to fail the job."""

from __future__ import annotations

import zlib

from penstock.catalog.frozen_dataclass import dataclass

# delays vary by a tenth up and down
JITTER = 0.1


@dataclass(frozen=True)
class RestartStrategy:
    """Base of restart strategies: the job restarts after up to ``attempts`` failures within ``window_ms``."""

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
class FailureRate(RestartStrategy):
    """Wait the same time before each restart; fail the job after more than ``attempts`` failures within
    ``window_ms``.
    """

    attempts: int = 1
    window_ms: float = 60_000.0
    delay: float = 1_000.0

    def delay_ms(self, failures: int) -> float:
        return self.delay


@dataclass(frozen=True)
class ExponentialDelay(RestartStrategy):
    """Exponential delay: twice as long each time, from ``delay`` to ``max_delay`` milliseconds; fail after
    ``attempts`` failures within ``window_ms``.
    """

    attempts: int = 10
    window_ms: float = 600_000.0
    delay: float = 1_000.0
    max_delay: float = 60_000.0

    def delay_ms(self, failures: int) -> float:
        # the exponent is bounded, or the power would overflow after a thousand failures
        return min(self.max_delay, self.delay * 2.0 ** min(failures - 1, 32))


class RestartBudget:
    """Counts a job's failures against its strategy. Only retriable failures come here.

    Delays vary a little (``JITTER``) by job and failure, so that jobs that failed together do not restart
    together.
    """

    def __init__(self, strategy: RestartStrategy, job_id: str = "") -> None:
        self._strategy = strategy
        self._job_id = job_id
        self._failures: list[float] = []
        self._causes: list[str] = []
        self._cause = ""
        self._count = 0

    @property
    def restarts(self) -> int:
        """Restarts granted within the strategy's window."""
        return len(self._failures)

    @property
    def progress_text(self) -> str:
        """The current restart, out of how many, in which time."""
        return f"{self.restarts}/{self._strategy.attempts}{self._window}"

    @property
    def exhausted_text(self) -> str:
        """Why there is no further restart: how many there were, how many failures had the last one's
        cause, and that cause.
        """
        same = sum(cause == self._cause for cause in self._causes)
        return (
            f"given up after {self.restarts} restarts{self._window}; same cause "
            f"{same}/{len(self._causes)}: {self._cause.splitlines()[0][:160]}"
        )

    def next_delay_ms(self, now_ms: float, cause: str) -> float | None:
        """Record a failure at ``now_ms``; return the delay before the restart, or ``None`` when the job must
        fail.
        """
        self._cause = cause
        # failures outside the window are forgiven
        self._failures = [at for at in self._failures if now_ms - at <= self._strategy.window_ms]
        self._causes = [*self._causes[len(self._causes) - len(self._failures) :], cause]
        if len(self._failures) >= self._strategy.attempts:
            return None
        self._failures.append(now_ms)
        self._count += 1
        return self._strategy.delay_ms(len(self._failures)) * self._jitter

    @property
    def _window(self) -> str:
        window_ms = self._strategy.window_ms
        return "" if window_ms == float("inf") else f" in {window_ms / 60_000:g} min"

    @property
    def _jitter(self) -> float:
        """A factor around 1, always the same for the same failure of the same job; 1 for budgets of no
        job.
        """
        if not self._job_id:
            return 1.0
        # a hash, no random number: a simulation gets the same delays from the same seed
        drawn = zlib.crc32(f"{self._job_id} {self._count}".encode()) / 2**32
        return 1.0 + JITTER * (2.0 * drawn - 1.0)
