"""Result channels: the hand-over to the client, between threads, with backpressure, until either side ends."""

from __future__ import annotations

import threading

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.operator import Services
from penstock.engine.connectors.in_process.result_channels import ResultChannel, ResultChannels
from tests.harness.patience import PATIENCE_S
from tests.harness.reading import Taken
from tests.unit.engine.connectors.sinks import changes, sink


def test_collect_waits_for_the_client_and_ends() -> None:
    channels = ResultChannels()
    operators = [sink(None, Services(channels), subtask=s, parallelism=2) for s in range(2)]
    channel = channels.channel("op")
    for _ in range(64):
        assert operators[0].ready()
        operators[0].on_batch(changes((1, "a", 1)), 0, Taken())
    assert not operators[0].ready()
    assert channel.next(0) is not None and operators[0].ready()
    operators[0].on_end(Taken())
    assert not channel.ended
    operators[1].on_end(Taken())
    while channel.next(0) is not None:
        pass
    assert channel.ended


def test_result_channel_between_threads() -> None:
    channel = ResultChannel(4)

    def produce() -> None:
        for i in range(20):
            channel.offer(changes((i, "x", 1)))
        channel.finish(PenstockError("RUN-2900", "the job failed"))

    thread = threading.Thread(target=produce)
    thread.start()
    got = []
    with pytest.raises(PenstockError, match="the job failed"):
        while (batch := channel.next(PATIENCE_S)) is not None:
            got.append(batch.rows.column(0)[0].as_py())
    thread.join()
    assert got == list(range(20)) and channel.ended


def test_a_closed_channel_never_holds_up_the_job() -> None:
    channel = ResultChannel(1)
    assert channel.next(0) is None and not channel.ended
    channel.offer(changes((1, "a", 1)))
    assert channel.full
    channel.close()
    assert not channel.full and channel.ended and not channel.offer(changes((1, "a", 1)))


def test_batches_are_reported_as_read_when_the_client_has_them_or_never_will() -> None:
    channel, read = ResultChannel(), list[int]()
    for number in range(3):
        assert channel.offer(changes((number, "a", 1)), lambda number=number: read.append(number))  # type: ignore[misc]
    assert channel.next(0) is not None and read == [0]
    channel.close()
    assert read == [0, 1, 2] and channel.closed and channel.next(0) is None


def test_an_error_comes_after_the_rows_and_a_closed_client_does_not_see_it() -> None:
    channel = ResultChannel()
    channel.offer(changes((1, "a", 1)))
    channel.finish(PenstockError("RUN-2900", "the job failed"))
    channel.finish()
    assert channel.next(0) is not None
    for _ in range(2):
        with pytest.raises(PenstockError, match="the job failed"):
            channel.next(0)
    channel.close()
    assert channel.next(0) is None


def test_a_channel_is_of_one_result_until_it_is_released() -> None:
    channels = ResultChannels()
    first = channels.channel("op", 2)
    assert channels.channel("op") is first and channels.channel("other") is not first
    channels.release("op")
    channels.release("op")
    assert channels.channel("op") is not first


def test_a_batch_of_no_rows_is_not_handed_over() -> None:
    channel = ResultChannel(1)
    assert channel.offer(changes((7, "a", 1)).slice(0, 0))
    assert not channel.full and channel.next(0) is None
