"""A slow sink stops its source; with channels that are never full it does not, and the card says so."""

from __future__ import annotations

import pytest

from client.bottleneck import bottleneck
from engine.channels import Channel
from tests.rel.backpressure import flood, judge
from tests.rel.verdict import Verdict


def flooded(seconds: float, until: tuple[str, ...]) -> tuple[Verdict, str]:
    """Flood for a while, or until everything that is looked for is found wrong."""
    verdict, told = Verdict("backpressure", 1), ""
    for metrics in flood(seconds, width=100, pause_s=0.1):
        judge(metrics, verdict)
        told = bottleneck(metrics.tasks, running=True)
        if all(any(words in sentence for sentence in verdict.wrong) for words in until):
            break
    return verdict, told


def test_what_is_in_flight_is_bounded() -> None:
    verdict, told = flooded(2, ("elements wait",))
    assert not verdict.wrong, verdict.wrong[:3]
    assert verdict.coverage["the source waited for room"] >= 3
    assert verdict.coverage["rows came to the sink"] >= 3
    assert told.endswith("the sink is the bottleneck")


def test_negative_control_a_queue_without_bounds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Channel, "full", property(lambda channel: False))
    found = ("elements wait", "rows are in flight")
    verdict, _ = flooded(20, found)
    for words in found:
        assert any(words in sentence for sentence in verdict.wrong), words
