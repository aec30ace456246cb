"""Rows a second of the operators of a task, over the last one to two seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.engine.metrics.busy_time import SECOND_MS

if TYPE_CHECKING:
    from penstock.engine.metrics.operator_metrics import OperatorMetrics


class RowRate(NamedTuple):
    """Rows a second that an operator receives and emits."""

    rows_in: int = 0
    rows_out: int = 0


NO_RATE = RowRate()


class _Sample(NamedTuple):
    """What the operators had counted at one moment, by operator id: rows in and rows out."""

    at_ms: float
    counts: dict[str, tuple[int, int]]


class RowRates:
    """Sampled by the thread that steps the task, once a second; read by any thread. A task without work takes
    no sample: its rate falls with the time since the last one.
    """

    __slots__ = ("_newest", "_oldest")

    def __init__(self, now_ms: float) -> None:
        # replaced as a whole, so readers need no lock
        self._oldest = self._newest = _Sample(now_ms, {})

    def sample(self, now_ms: float, operators: Mapping[str, OperatorMetrics]) -> None:
        """Keep what the operators have counted, when the newest sample is a second old."""
        if now_ms - self._newest.at_ms < SECOND_MS:
            return
        counts = {name: (one.rows_in, one.rows_out) for name, one in operators.items()}
        self._oldest, self._newest = self._newest, _Sample(now_ms, counts)

    def per_second(self, now_ms: float, operator_id: str, rows_in: int, rows_out: int) -> RowRate:
        """Return the rate of an operator that has counted so many rows by now."""
        oldest, newest = self._oldest, self._newest
        # without a sample for a second the task waits: the rows before the wait are not those of now
        base = newest if now_ms - newest.at_ms >= SECOND_MS else oldest
        before_in, before_out = base.counts.get(operator_id, (0, 0))
        # a part of a second counts as a whole one: the first rows of a task are no rate of millions
        seconds = max(now_ms - base.at_ms, SECOND_MS) / SECOND_MS
        return RowRate(round((rows_in - before_in) / seconds), round((rows_out - before_out) / seconds))
