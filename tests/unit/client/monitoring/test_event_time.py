"""What holds the watermark of a job, in a sentence."""

from __future__ import annotations

import pytest

from penstock.client.monitoring.event_time import moment_text, slowest_split, watermark_delay
from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.job.job_metrics import JobMetrics
from penstock.engine.metrics.operator_metrics import SplitProgress
from penstock.engine.metrics.task_metrics import OperatorFigures, TaskFigures

MINUTE_US = 60_000_000
NOON_US = 43_200_000_000


def job(splits: dict[str, SplitProgress], watermark_us: int | None, emitted: int = 9) -> JobMetrics:
    source = OperatorFigures("s", "source orders", rows_out=emitted)
    assigner = OperatorFigures("w", "watermark ts", rows_in=emitted, watermark_us=watermark_us, splits=splits)
    return JobMetrics((TaskFigures(0, 0, "running", True, (source, assigner)),))


AHEAD = SplitProgress(NOON_US + 5 * MINUTE_US, NOON_US + 5 * MINUTE_US)
BEHIND = SplitProgress(NOON_US, NOON_US)


@pytest.mark.parametrize(
    ("splits", "watermark_us", "emitted", "split", "sentence"),
    [
        (
            {},
            None,
            0,
            "",
            "The watermark does not advance: source orders has emitted no row yet.",
        ),
        (
            {"a": AHEAD, "b": SplitProgress(None, None)},
            None,
            9,
            "b",
            "The watermark does not advance: split b of watermark ts has no event yet.",
        ),
        (
            {"a": AHEAD, "b": BEHIND},
            NOON_US,
            9,
            "b",
            "The watermark waits for one split: split b of watermark ts has its last event at "
            "1970-01-01 12:00:00, 0:05:00 behind the furthest one.",
        ),
        (
            {"a": AHEAD, "b": SplitProgress(NOON_US, NOON_US, idle=True)},
            AHEAD.watermark_us,
            9,
            "a",
            "The watermark follows the events: split a of watermark ts has its last event at 1970-01-01 12:05:00.",
        ),
        (
            {"a": SplitProgress(NOON_US, NOON_US, idle=True)},
            NOON_US,
            9,
            "",
            "The watermark waits for a row: all splits of watermark ts are idle.",
        ),
    ],
    ids=["silent source", "silent split", "behind", "idle is not waited for", "all idle"],
)
def test_the_sentence(
    splits: dict[str, SplitProgress], watermark_us: int | None, emitted: int, split: str, sentence: str
) -> None:
    delay = watermark_delay(job(splits, watermark_us, emitted))
    assert delay is not None
    assert (delay.split, delay.sentence) == (split, sentence)


def test_a_job_whose_sources_have_ended_waits_for_nothing() -> None:
    assert watermark_delay(job({"a": BEHIND}, MAX_WATERMARK_US)) is None
    assert watermark_delay(JobMetrics()) is None


def test_a_split_without_a_watermark_is_the_slowest() -> None:
    operators = job({"a": BEHIND, "b": SplitProgress(None, None)}, None).operators
    assert slowest_split(operators[1]) == "b"
    assert slowest_split(operators[0]) is None


def test_the_limits_are_no_times() -> None:
    assert moment_text(None) is None
    assert moment_text(MAX_WATERMARK_US) == "the end of time"
