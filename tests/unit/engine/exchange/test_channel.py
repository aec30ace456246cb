from __future__ import annotations

from collections import deque
from random import Random

import pytest

from penstock.engine.api.stream_elements import Barrier, Element, EndOfInput, Watermark
from penstock.engine.exchange.channel import Channel


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


def test_a_barrier_is_announced_while_it_waits_its_turn() -> None:
    channel = Channel(2)
    assert channel.announced is None
    for element in (Watermark(1), Barrier(4), Watermark(2)):
        channel.put(element)
    assert channel.announced == Barrier(4)
    assert channel.overtake(Barrier(5)) == []
    assert not channel.has_buffered(Barrier(5))
    assert channel.announced == Barrier(5)
    assert channel.queued_before(4) == [Watermark(1)]
    assert channel.queued_before(5) == [Watermark(1), Barrier(4), Watermark(2)]
    assert channel.queued_before(6) is None
    channel.put(EndOfInput())
    assert channel.queued_before(6) == [Watermark(1), Barrier(4), Watermark(2), Barrier(5)]


def test_what_is_put_back_comes_first_and_counts_against_the_capacity() -> None:
    channel = Channel(2)
    channel.put(Watermark(3))
    channel.put_back([Watermark(1), Watermark(2)])
    assert channel.full
    assert [channel.take() for _ in range(3)] == [Watermark(1), Watermark(2), Watermark(3)]


@pytest.mark.parametrize("seed", range(40))
def test_a_producer_between_any_two_looks_of_the_consumer_loses_and_moves_nothing(seed: int) -> None:
    """The producer's steps fall between the consumer's as the seed says, also in the middle of its look at
    the queue.
    """
    random = Random(seed)
    channel = Channel(3)
    script: deque[Element] = deque(
        Barrier(number // 5) if number % 5 == 4 else Watermark(number) for number in range(60)
    )
    sent: list[Element] = []

    def produce() -> None:
        if script:
            element = script.popleft()
            sent.append(element)
            channel.overtake(element) if isinstance(element, Barrier) else channel.put(element)

    class Interrupted(deque):
        """A deque that is appended to while it is looked through, once in a while."""

        def __iter__(self):
            for element in super().__iter__():
                if random.random() < 0.1:
                    produce()
                yield element

    channel._queue = Interrupted()
    taken: list[Element] = []
    while script or len(channel):
        if random.random() < 0.5:
            produce()
        if channel.announced is not None and random.random() < 0.5:
            number = channel.announced.checkpoint_id
            before = channel.queued_before(number)
            cut = sent.index(Barrier(number))
            assert before == (sent[len(taken) : cut] if cut >= len(taken) else None)
        if len(channel) and random.random() < 0.6:
            taken.append(channel.take())
    assert taken == sent
