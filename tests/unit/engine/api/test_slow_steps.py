"""Slow steps: how long they took within a period, and what is said of them, once."""

from __future__ import annotations

import logging

import pytest

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.slow_steps import COMPILING, SlowStep, SlowSteps


def test_seconds_are_those_of_the_period_and_overlaps_count_once() -> None:
    clock = ManualClock(1_000)
    steps = SlowSteps(clock)
    clock.now_ms = 5_000
    assert steps.ended(SlowStep.SPARK, 1_000) == 4.0
    clock.now_ms = 6_000
    steps.ended(SlowStep.KERNELS, 4_000)
    assert (steps.seconds(0, SlowStep.SPARK), steps.seconds(0, SlowStep.KERNELS)) == (4.0, 2.0)
    assert steps.seconds(0, *SlowStep) == 5.0
    # a job that began in the middle of Spark's start, and one after it
    assert (steps.seconds(3_000, SlowStep.SPARK), steps.seconds(5_500, *SlowStep)) == (2.0, 0.5)
    assert steps.seconds(7_000, *SlowStep) == 0.0


def test_compiling_is_announced_once_and_reported_when_it_took_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="penstock.kernels")
    clock = ManualClock(0)
    steps = SlowSteps(clock)
    for number in (1, 2):
        steps.announce_compiling()
        clock.now_ms = number * 400
        steps.ended(SlowStep.KERNELS, clock.now_ms - 300)
    steps.report_compiled()
    steps.report_compiled()
    steps.ended(SlowStep.SPARK, 0)
    steps.report_compiled()
    assert caplog.messages == [COMPILING, "compiled 2 kernels in 0.6 s"]
