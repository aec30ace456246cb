"""The merged watermark of several channels."""

from __future__ import annotations

from penstock.engine.api.stream_elements import Idle, Watermark
from penstock.engine.exchange.watermark_merge import WatermarkMerge


def test_it_is_the_minimum_and_never_decreases() -> None:
    merge = WatermarkMerge(2)
    assert merge.on_watermark(0, 50) == []
    assert merge.on_watermark(1, 20) == [Watermark(20)]
    assert merge.on_watermark(1, 10) == []
    assert merge.on_watermark(1, 70) == [Watermark(50)]


def test_an_idle_channel_holds_back_no_one_until_it_wakes() -> None:
    merge = WatermarkMerge(2)
    merge.on_watermark(0, 50)
    assert merge.on_idle(1) == [Watermark(50)]
    assert merge.on_watermark(1, 20) == [], "the watermark would go back"


def test_all_idle_is_said_once_at_the_highest_watermark() -> None:
    merge = WatermarkMerge(2)
    merge.on_watermark(0, 50)
    merge.on_watermark(1, 20)
    assert merge.on_idle(1) == [Watermark(50)]
    assert merge.on_idle(0) == [Idle()]
    assert merge.on_idle(0) == []
    assert merge.on_watermark(0, 50) == [Watermark(50)], "it wakes at the time it had"


def test_when_all_have_ended_the_task_ends_time() -> None:
    merge = WatermarkMerge(1)
    assert merge.on_end(0) == []
