"""How far each split of a source has been read: rows, rows a second and lag, measured about once a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.engine.api.source import SplitReader, lag_of
from penstock.engine.metrics.operator_metrics import OTHER_SPLITS, SPLITS_SHOWN, OperatorMetrics, SplitReads

MEASURE_MS = 1000.0
"""Milliseconds between two measurements. A lag may cost a call into a client library."""


class MeasuredSplit(Protocol):
    """What is measured of a split: its id, the rows read of it in this deployment, and its open reader."""

    split_id: str
    rows: int
    reader: SplitReader | None


class SplitMeter:
    """Reports the open splits of one subtask in its metrics: the first ``SPLITS_SHOWN`` by name, all others
    and those that have ended as one sum.
    """

    def __init__(self, metrics: OperatorMetrics, now_ms: float) -> None:
        self._metrics = metrics
        self._measured_ms = now_ms
        self._due_ms = now_ms
        # rows of each open split at the last measurement
        self._rows: dict[str, int] = {}
        self._ended_rows = 0

    def end(self, split: MeasuredSplit) -> None:
        """Count a split that has ended among the others."""
        self._ended_rows += split.rows
        self._rows.pop(split.split_id, None)
        self._metrics.reads.pop(split.split_id, None)
        self._metrics.reads[OTHER_SPLITS] = self._others([], 0.0)

    def measure(self, now_ms: float, splits: Sequence[MeasuredSplit]) -> None:
        """Measure the open splits of the subtask when a measurement is due."""
        if now_ms < self._due_ms:
            return
        seconds = (now_ms - self._measured_ms) / 1000
        reads = {split.split_id: self._read(split, seconds) for split in splits[:SPLITS_SHOWN]}
        hidden = splits[SPLITS_SHOWN:]
        if hidden or self._ended_rows:
            reads[OTHER_SPLITS] = self._others(hidden, seconds)
        self._rows = {split.split_id: split.rows for split in splits}
        # one assignment: another thread reads it
        self._metrics.reads = reads
        self._measured_ms, self._due_ms = now_ms, now_ms + MEASURE_MS

    def _read(self, split: MeasuredSplit, seconds: float) -> SplitReads:
        new_rows = split.rows - self._rows.get(split.split_id, 0)
        lag = None if split.reader is None else lag_of(split.reader)
        return SplitReads(split.rows, round(new_rows / seconds) if seconds else 0, lag)

    def _others(self, splits: Sequence[MeasuredSplit], seconds: float) -> SplitReads:
        reads = [self._read(split, seconds) for split in splits]
        lags = [read.lag for read in reads if read.lag is not None]
        return SplitReads(
            self._ended_rows + sum(read.rows for read in reads),
            sum(read.rows_per_second for read in reads),
            sum(lags) if lags else None,
        )
