"""A slow sink stops its source; with channels that are never full it does not, and the card says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.client.monitoring.bottleneck import bottleneck
from penstock.engine.exchange.channel import Channel
from tests.fault_injection.backpressure import flood, judge
from tests.fault_injection.verdict import Verdict

MOST_S = 30.0
WAITED, CAME = "the source waited for credit", "rows came to the sink"
WRONG = ("elements wait", "rows are in flight")


def flooded(done: Callable[[Verdict], bool]) -> tuple[Verdict, str]:
    """Flood until that is found which is looked for, however slow the machine is."""
    verdict, told = Verdict("backpressure", 1), ""
    for metrics in flood(MOST_S, width=100, pause_s=0.1):
        judge(metrics, verdict)
        told = bottleneck(metrics.tasks, running=True)
        if done(verdict):
            break
    return verdict, told


def found(verdict: Verdict) -> list[str]:
    return [words for words in WRONG if any(words in sentence for sentence in verdict.wrong)]


def test_what_is_in_flight_is_bounded() -> None:
    verdict, told = flooded(
        lambda verdict: (
            bool(verdict.wrong) or (verdict.coverage[WAITED] >= 3 and verdict.coverage[CAME] >= 15)
        )
    )
    assert not verdict.wrong, verdict.wrong[:3]
    assert verdict.coverage[WAITED] >= 3 and verdict.coverage[CAME] >= 15
    assert told.endswith("the sink is the bottleneck")


def test_negative_control_a_queue_without_bounds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Channel, "full", property(lambda channel: False))
    verdict, _ = flooded(lambda verdict: len(found(verdict)) == len(WRONG))
    assert found(verdict) == list(WRONG)
