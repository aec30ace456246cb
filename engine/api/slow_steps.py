"""The steps that make a first query slow, and how long they took: Spark's start, the compilation of kernels.

This is a separate file because the command line imports it at every start and must not import numba. Steps
are logged at level INFO: a program sees them where it has a handler, the command line writes them to stderr.
"""

from __future__ import annotations

import logging
from enum import StrEnum

from penstock.engine.api.clock import Clock, SystemClock

NEWS = logging.getLogger("penstock.kernels")
"""Messages about compiled kernels; those about Spark go to ``penstock.spark``."""
COMPILING = (
    "compiling kernels for this machine: once each, then they are cached (penstock doctor --compile: all "
    "at once)"
)


class SlowStep(StrEnum):
    """A kind of step; its value is its name in the summary of a job."""

    SPARK = "Spark's start"
    KERNELS = "compiling"


class SlowSteps:
    """The slow steps of this process. Any thread may record one: each call appends once, without a lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # step, begin and end in milliseconds, in the order of their ends
        self._ended: list[tuple[SlowStep, float, float]] = []
        self._announced = False
        # how many were reported by ``report_compiled``
        self._reported = 0

    def now_ms(self) -> float:
        """Return the time that ``ended`` and ``seconds`` count in."""
        return self._clock.monotonic_ms()

    def announce_compiling(self) -> None:
        """Log once that kernels are compiled now, because their machine code is not in the cache."""
        # a second thread that comes in between logs the line again: harmless
        if not self._announced:
            self._announced = True
            NEWS.info(COMPILING)

    def ended(self, step: SlowStep, began_ms: float) -> float:
        """Record a step that ends now, and return its seconds."""
        now = self.now_ms()
        self._ended.append((step, began_ms, now))
        return (now - began_ms) / 1000

    def seconds(self, since_ms: float, *steps: SlowStep) -> float:
        """Return the seconds since ``since_ms`` in which a step of these kinds ran. Steps that ran at the
        same time count once.
        """
        total, covered = 0.0, since_ms
        for _, begin, end in sorted((one for one in self._ended if one[0] in steps), key=lambda one: one[1]):
            total += max(0.0, end - max(begin, covered))
            covered = max(covered, end)
        return total / 1000

    def report_compiled(self) -> None:
        """Log how many kernels were compiled since the last call, and how long it took."""
        ended = self._ended[self._reported :]
        # steps that end from here on are for the next call
        self._reported += len(ended)
        seconds = [(end - begin) / 1000 for step, begin, end in ended if step is SlowStep.KERNELS]
        if seconds:
            NEWS.info(
                "compiled %d kernel%s in %.1f s", len(seconds), "" if len(seconds) == 1 else "s", sum(seconds)
            )


SLOW_STEPS = SlowSteps(SystemClock())
"""Those of this process."""
