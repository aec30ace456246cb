from __future__ import annotations

import pytest

from engine.channels import Channel
from engine.elements import Watermark


def test_credit_runs_out_and_comes_back_with_a_wakeup() -> None:
    woken: list[str] = []
    channel = Channel(2, lambda: woken.append("consumer"), lambda: woken.append("producer"))
    channel.put(Watermark(1))
    channel.put(Watermark(2))
    assert (channel.credit, channel.full, woken) == (0, True, ["consumer", "consumer"])
    assert channel.peek() == Watermark(1)
    assert channel.take() == Watermark(1)
    assert (channel.credit, channel.full, woken[2:]) == (1, False, ["producer"])
    channel.take()
    assert woken[2:] == ["producer"]


def test_an_overrun_channel_wakes_its_producer_when_credit_is_back() -> None:
    woken: list[int] = []
    channel = Channel(1, wake_producer=lambda: woken.append(len(channel)))
    for time in range(3):
        channel.put(Watermark(time))
    assert channel.credit == -2
    while len(channel):
        channel.take()
    assert woken[-1] == 0


def test_taking_from_an_empty_channel_is_an_error() -> None:
    with pytest.raises(IndexError):
        Channel(1).take()
