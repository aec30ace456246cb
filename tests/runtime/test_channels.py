from __future__ import annotations

from collections import deque

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


def test_a_producer_that_fills_the_channel_while_an_element_is_taken_is_woken() -> None:
    woken: list[int] = []
    channel = Channel(2, wake_producer=lambda: woken.append(len(channel)))

    class Interrupted(deque):
        """Lets the producer put one more element just before an element is taken, as another thread may."""

        def popleft(self) -> object:
            if channel.credit == 1:
                channel.put(Watermark(9))
                assert channel.full  # so the producer goes to sleep
            return super().popleft()

    channel._queue = Interrupted([Watermark(1)])
    channel.take()
    channel._queue = deque(channel._queue)
    while len(channel):
        channel.take()
    assert woken


def test_taking_from_an_empty_channel_is_an_error() -> None:
    with pytest.raises(IndexError):
        Channel(1).take()
