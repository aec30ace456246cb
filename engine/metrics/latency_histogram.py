"""Histograms of latencies: counts in buckets whose width is a fixed share of their value, as HdrHistogram
has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

STEPS = 16
BUCKETS = 40 * STEPS


@dataclass(frozen=True)
class LatencyFigures:
    """A histogram at one moment, microseconds: how many values, their sum and highest, and percentiles too
    high by at most a sixteenth.
    """

    count: int = 0
    sum_us: int = 0
    max_us: int = 0
    p50_us: int = 0
    p95_us: int = 0
    p99_us: int = 0


@dataclass
class LatencyHistogram:
    """Values in microseconds, up to two weeks. One thread records; any may read."""

    counts: np.ndarray = field(default_factory=lambda: np.zeros(BUCKETS, np.int64))
    sum_us: int = 0
    max_us: int = 0

    def record(self, value_us: int) -> None:
        """Count a value; one below zero, as clocks of two machines may give, counts as zero."""
        value_us = max(0, value_us)
        self.counts[min(bucket(value_us), BUCKETS - 1)] += 1
        self.sum_us += value_us
        self.max_us = max(self.max_us, value_us)

    def figures(self) -> LatencyFigures:
        """Return the percentiles of what was recorded."""
        reached = np.cumsum(self.counts)
        count = int(reached[-1])
        if count == 0:
            return LatencyFigures()
        ranks = [max(1, -(-count * percent // 100)) for percent in (50, 95, 99)]
        p50, p95, p99 = (min(upper(int(np.searchsorted(reached, rank))), self.max_us) for rank in ranks)
        return LatencyFigures(count, self.sum_us, self.max_us, p50, p95, p99)


def bucket(value: int) -> int:
    """Return the bucket of a value: values below 16 have their own, each doubling after that has sixteen."""
    if value < STEPS:
        return value
    shift = value.bit_length() - 5
    return (shift + 1) * STEPS + (value >> shift) - STEPS


def upper(index: int) -> int:
    """Return the highest value of a bucket."""
    if index < 2 * STEPS:
        return index
    shift = index // STEPS - 1
    return ((index % STEPS + STEPS + 1) << shift) - 1
