"""A gate behind sources: a job that is to be stopped in mid-run cannot reach its end before, however slow
the test is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from penstock.engine.operators.source.source import SourceOperator

_LOOK_MS = 2


class SourceGate:
    """Sources of this process's jobs emit at most ``rows`` rows of each table, in each deployment, until
    the gate is opened.
    """

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.is_open = False
        self._allowance = SourceOperator._allowance

    def open(self) -> None:
        """Let all rows pass from now on."""
        self.is_open = True

    def allowance(self, source: SourceOperator, now_ms: float) -> tuple[int, float]:
        """Stand in for the operator's own allowance: how many rows it may emit now, and when to ask again."""
        allowed, refill_ms = self._allowance(source, now_ms)
        if self.is_open:
            return allowed, refill_ms
        # each subtask is allowed its share, by the number of its splits
        left = self.rows * len(source._splits) // max(1, len(source._known)) - source._emitted
        return (min(allowed, left), refill_ms) if left > 0 else (0, now_ms + _LOOK_MS)


@contextlib.contextmanager
def gated(rows: int) -> Iterator[SourceGate]:
    """Within it, sources stop after ``rows`` rows of each table until the gate that is yielded is opened."""
    gate = SourceGate(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SourceOperator, "_allowance", lambda source, now_ms: gate.allowance(source, now_ms))
        yield gate
