"""What tasks count of their time, and what histograms keep of latencies."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.engine.metrics.busy_time import Spending, TimeShares, TimeSpent
from penstock.engine.metrics.operator_metrics import LatencyFigures, LatencyHistogram


def test_a_wait_counts_while_it_goes_on() -> None:
    time = TimeSpent(0)
    time.worked(0, 10)
    time.waits(Spending.IDLE, 10)
    assert time.total(40) == TimeShares(10, 30, 0)
    time.waits(Spending.IDLE, 50)
    time.waits(Spending.BACKPRESSURED, 60)
    assert time.total(65) == TimeShares(10, 50, 5)
    time.worked(70, 71)
    assert time.total(80) == TimeShares(11, 50, 10)


def test_rates_are_of_the_last_second_or_two() -> None:
    time = TimeSpent(0)
    for second in range(5):
        time.worked(second * 1000, second * 1000 + 250)
        time.waits(Spending.IDLE, second * 1000 + 250)
    assert time.per_second(4250) == TimeShares(250, 750, 0)
    assert sum(time.per_second(5000)) == pytest.approx(1000)
    assert time.per_second(60_000) == TimeShares(0, 1000, 0)
    time.worked(60_000, 60_500)
    assert time.per_second(60_500).busy <= 1000


def test_percentiles_are_at_most_a_sixteenth_too_high() -> None:
    histogram, values = LatencyHistogram(), np.random.default_rng(1).lognormal(8, 2, 5000).astype(int)
    assert histogram.figures() == LatencyFigures()
    for value in values.tolist():
        histogram.record(value)
    figures = histogram.figures()
    assert (figures.count, figures.sum_us, figures.max_us) == (5000, values.sum(), values.max())
    for percent, found in ((50, figures.p50_us), (95, figures.p95_us), (99, figures.p99_us)):
        exact = np.percentile(values, percent, method="inverted_cdf")
        assert exact <= found <= exact * 17 / 16 + 1
    histogram.record(-5)
    assert histogram.counts[0] >= 1
