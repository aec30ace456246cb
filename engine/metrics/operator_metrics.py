"""Counters of operators and tasks: plain numbers owned by one slot thread, read by anyone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import field

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.metrics.busy_time import TimeSpent
from penstock.engine.metrics.row_rates import RowRates

LateLog = Callable[[pa.RecordBatch, np.ndarray, np.ndarray | None], None]
"""Reports late rows, the watermark each is behind and, where known, the ends of their last windows: int64
microseconds.
"""

# buckets to a doubling: a percentile is at most a sixteenth too high
STEPS = 16

# 2**40 microseconds are about two weeks
BUCKETS = 40 * STEPS


@dataclass(frozen=True)
class LatencyFigures:
    """A histogram at one moment, microseconds: count, sum, maximum, and percentiles that are at most a
    sixteenth too high. ``octaves``: the values below 16 us, then those of each doubling, without the zeros at
    the end.
    """

    count: int = 0
    sum_us: int = 0
    max_us: int = 0
    p50_us: int = 0
    p95_us: int = 0
    p99_us: int = 0
    octaves: tuple[int, ...] = ()


@dataclasses.dataclass
class LatencyHistogram:
    """Values in microseconds, up to two weeks. One thread records; any may read."""

    counts: np.ndarray = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    sum_us: int = 0
    max_us: int = 0

    def record(self, value_us: int) -> None:
        """Count a value. A negative one, possible with the clocks of two machines, counts as zero."""
        value_us = max(0, value_us)
        self.counts[min(bucket(value_us), BUCKETS - 1)] += 1
        self.sum_us += value_us
        self.max_us = max(self.max_us, value_us)

    def figures(self) -> LatencyFigures:
        """Return the percentiles of what was recorded."""
        # one pass over a copy: the recording thread may count on meanwhile
        reached = np.cumsum(self.counts)
        count = int(reached[-1])
        if count == 0:
            return LatencyFigures()
        # the n-th smallest value, rounded up
        ranks = [max(1, -(-count * percent // 100)) for percent in (50, 95, 99)]
        p50, p95, p99 = (min(upper(int(np.searchsorted(reached, rank))), self.max_us) for rank in ranks)
        octaves = np.trim_zeros(np.diff(reached[STEPS - 1 :: STEPS], prepend=0), "b")
        return LatencyFigures(count, self.sum_us, self.max_us, p50, p95, p99, tuple(octaves.tolist()))


@dataclass(frozen=True)
class SplitProgress:
    """The event time of one split of a source, microseconds: its last event, its watermark, and whether it is
    idle.
    """

    last_event_us: int | None
    watermark_us: int | None
    idle: bool = False


SPLITS_SHOWN = 200
"""Splits of a subtask that have figures of their own. A dashboard cannot show more, and Prometheus keeps a
series for each.
"""
# the name under which all other splits are summed
OTHER_SPLITS = "(others)"


@dataclass(frozen=True)
class SplitReads:
    """How far one split of a source has been read. ``rows``: in this deployment; ``lag``: records that are in
    the split and were not read yet, ``None`` when its connector does not know.
    """

    rows: int
    rows_per_second: int
    lag: int | None = None


@dataclasses.dataclass
class OperatorMetrics:
    """What one operator of one subtask has counted since it opened. ``counters`` holds further named counts
    (bad records, files committed ..).

    ``splits``: of a watermark generator, the open ones. ``reads``: of a source, the open ones, and the sum of
    all others. ``next_close_us``: the end of the first open window. ``latency``: of a sink, how long latency
    markers took, by source.
    """

    rows_in: int = 0
    rows_out: int = 0
    late_rows: int = 0
    windows_closed: int = 0
    state_entries: int = 0
    state_bytes: int = 0
    spilled_bytes: int = 0
    watermark_us: int | None = None
    counters: dict[str, int] = field(default_factory=dict)
    late_log: LateLog | None = None
    splits: dict[str, SplitProgress] = field(default_factory=dict)
    reads: dict[str, SplitReads] = field(default_factory=dict)
    next_close_us: int | None = None
    latency: dict[str, LatencyHistogram] = field(default_factory=dict)

    def late(self, rows: pa.RecordBatch, watermarks: np.ndarray, ends: np.ndarray | None = None) -> None:
        """Count late rows, and pass them to the log of late rows."""
        self.late_rows += rows.num_rows
        if self.late_log is not None and rows.num_rows:
            self.late_log(rows, watermarks, ends)

    def count(self, name: str, by: int = 1) -> None:
        """Add to a named counter."""
        self.counters[name] = self.counters.get(name, 0) + by


@dataclasses.dataclass
class TaskMetrics:
    """What one task has counted, and its operators by operator id.

    ``alignment_ms``: from the first to the last barrier of the last checkpoint. ``checkpoint_sync_ms``: how
    long the last snapshot blocked rows; ``checkpoint_sync_ms_max``: the longest.
    """

    time: TimeSpent
    rates: RowRates
    checkpoint_sync_ms: float = 0.0
    checkpoint_sync_ms_max: float = 0.0
    batches: int = 0
    bytes_in: int = 0
    alignment_ms: float = 0.0
    operators: dict[str, OperatorMetrics] = field(default_factory=dict)

    def worked(self, began_ms: float, now_ms: float) -> None:
        """Count a step that did something; once a second, sample the rows of the operators."""
        self.time.worked(began_ms, now_ms)
        self.rates.sample(now_ms, self.operators)

    def snapshot(self, took_ms: float) -> None:
        """Record how long a snapshot has blocked rows."""
        self.checkpoint_sync_ms = took_ms
        self.checkpoint_sync_ms_max = max(self.checkpoint_sync_ms_max, took_ms)


def bucket(value: int) -> int:
    """Return the bucket of a value: values below 16 have their own, each doubling after that has sixteen."""
    if value < STEPS:
        return value
    # the five leading bits choose the bucket: the first is always 1, the other four number the sixteen
    shift = value.bit_length() - 5
    return (shift + 1) * STEPS + (value >> shift) - STEPS


def upper(index: int) -> int:
    """Return the highest value of a bucket."""
    if index < 2 * STEPS:
        return index
    shift = index // STEPS - 1
    return ((index % STEPS + STEPS + 1) << shift) - 1
