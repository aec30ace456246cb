"""Event time of a job: times as text, and what its watermark waits for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from penstock.catalog.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from penstock.engine.job.job_metrics import JobMetrics, OperatorReport

_FIRST_US = -62_135_596_800_000_000  # the year 1
_LAST_US = 253_402_300_799_000_000  # the year 9999
END = "the end of time"
"""The watermark of a source that has ended."""
MUCH_BEHIND_US = 10_000_000
"""Splits are read in turn, so some seconds between them are no fault."""


def moment_text(time_us: int | None) -> str | None:
    """Return an event time as text; None when there is none."""
    # no watermark yet is the least int64, which Python's datetime has no date for
    if time_us is None or time_us < _FIRST_US:
        return None
    return END if time_us > _LAST_US else f"{datetime.fromtimestamp(time_us / 1e6, UTC):%Y-%m-%d %H:%M:%S}"


def slowest_split(operator: OperatorReport) -> str | None:
    """Return the split that delays the watermark of an operator: the one furthest behind that is not idle."""
    active = [
        # a split without a watermark sorts first: the merged watermark waits for it
        (split.watermark_us is not None, split.watermark_us or 0, name)
        for name, split in operator.splits.items()
        if not split.idle
    ]
    return min(active)[2] if active else None


def silent_source(metrics: JobMetrics) -> str | None:
    """Return the name of a source without a row: all windows wait for its first watermark."""
    return next((source.name for source, _ in _silent_sources(metrics)), None)


def _silent_sources(metrics: JobMetrics) -> Iterator[tuple[OperatorReport, OperatorReport]]:
    """Yield each source without a row, and the generator of its watermark."""
    # a chain's operators come one after the other: a source, then the assigner of its watermark
    for source, assigner in itertools.pairwise(metrics.operators):
        # one that has ended has the watermark of the end
        waits = assigner.name.startswith("watermark ") and moment_text(assigner.watermark_us) is None
        if source.is_source and not source.rows_out and waits:
            yield source, assigner


@dataclass(frozen=True)
class WatermarkDelay:
    """What the watermark of a job waits for. ``split`` is empty where a whole source has emitted no row.
    ``is_stuck``: it waits for something that does not come, or is behind the others.
    """

    operator_id: str
    operator: str
    split: str
    sentence: str
    is_stuck: bool = True


def watermark_delay(metrics: JobMetrics) -> WatermarkDelay | None:
    """Return what delays the watermark most; None for a job without event time, or whose watermark waits for
    nothing.

    A split without an event comes first, then the one whose watermark is the lowest of all sources.
    """
    for source, assigner in _silent_sources(metrics):
        text = f"The watermark does not advance: {source.name} has emitted no row yet."
        return WatermarkDelay(assigner.operator_id, assigner.name, "", text)
    assigners = [one for one in metrics.operators if one.splits and moment_text(one.watermark_us) != END]
    # of several sources the one whose watermark is the lowest, or that has none
    for operator in sorted(assigners, key=lambda one: _reached_us(one.watermark_us)):
        if (split := slowest_split(operator)) is not None:
            text, is_stuck = _delay_text(metrics, operator, split)
            return WatermarkDelay(operator.operator_id, operator.name, split, text, is_stuck)
    idle = [one for one in assigners if one.watermark_us is None or _reached_us(one.watermark_us) < _LAST_US]
    if not idle:
        return None
    text = f"The watermark waits for a row: all splits of {idle[0].name} are idle."
    return WatermarkDelay(idle[0].operator_id, idle[0].name, "", text)


def _delay_text(metrics: JobMetrics, operator: OperatorReport, split: str) -> tuple[str, bool]:
    progress = operator.splits[split]
    if progress.last_event_us is None:
        return f"The watermark does not advance: split {split} of {operator.name} has no event yet.", True
    others = [
        one.watermark_us
        for report in metrics.operators
        for name, one in report.splits.items()
        if not one.idle and one.watermark_us is not None and (report, name) != (operator, split)
    ]
    at = f"split {split} of {operator.name} has its last event at {moment_text(progress.last_event_us)}"
    ahead_us = max(others, default=_FIRST_US) - _reached_us(progress.watermark_us)
    # a split that is as far as the others delays nothing that could be mended
    if not others or ahead_us <= 0:
        return f"The watermark follows the events: {at}.", False
    behind = f"{_seconds_text(ahead_us)} behind the furthest one"
    return f"The watermark waits for one split: {at}, {behind}.", ahead_us > MUCH_BEHIND_US


def _seconds_text(span_us: int) -> str:
    return str(timedelta(seconds=round(span_us / 1e6))) if span_us >= 1_000_000 else f"{span_us // 1000} ms"


def _reached_us(watermark_us: int | None) -> int:
    return _FIRST_US if watermark_us is None else watermark_us
