"""The way of latency markers through a chain: behind the rows an operator holds back for a moment, past those it keeps as state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.engine.clock import Clock
from penstock.engine.elements import LatencyMarker
from penstock.engine.latency_histogram import LatencyHistogram
from penstock.engine.record_writer import TaskOutput

if TYPE_CHECKING:
    from penstock.engine.chain import ChainedOperator


class MarkerPath:
    """Takes markers down one chain. ``holding`` are the places of operators that may hold rows back; a chain without outputs ends in a sink."""

    def __init__(self, operators: Sequence[ChainedOperator], holding: Sequence[int], output: TaskOutput, clock: Clock) -> None:
        self._operators = operators
        self._holding = tuple(holding)
        self._output = output
        self._clock = clock
        self._waiting: dict[int, list[LatencyMarker]] = {}

    def enter(self, marker: LatencyMarker, first: int = 0) -> None:
        """Let a marker pass the operators from ``first`` on, as far as none holds rows back that came before it."""
        for index in self._holding:
            if index >= first and (index in self._waiting or self._operators[index].operator.held_until_ms() is not None):
                self._waiting.setdefault(index, []).append(marker)
                return
        if self._output.is_end:
            self._record(marker)
        else:
            self._output.marker(marker)

    def go_on(self) -> None:
        """Let markers go on whose operators hold nothing back any more, the last operators' first, so that none overtakes another."""
        for index in sorted(self._waiting, reverse=True) if self._waiting else ():
            if self._operators[index].operator.held_until_ms() is None:
                for marker in self._waiting.pop(index):
                    self.enter(marker, index + 1)

    def _record(self, marker: LatencyMarker) -> None:
        latency = self._operators[-1].metrics.latency
        if marker.source not in latency:
            latency[marker.source] = LatencyHistogram()
        latency[marker.source].record(round((self._clock.monotonic_ms() - marker.marked_ms) * 1000))
