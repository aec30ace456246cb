"""The pump: what a blocking iterator yields arrives whole and in order, at most so much ahead, and its error
after its items.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from penstock.engine.connectors.blocking_reader import Pump
from tests.harness.patience import PATIENCE_S, await_that


def all_of(pump: Pump, most: int) -> list[int]:
    taken: list[int] = []

    def ended() -> bool:
        taken.extend(pump.take(most))
        return pump.ended

    await_that(ended, lambda: f"the end behind {len(taken)} items")
    return taken


@pytest.mark.parametrize(("capacity", "most"), [(1, 1), (3, 100), (1000, 7)])
def test_all_items_arrive_in_their_order(capacity: int, most: int) -> None:
    assert all_of(Pump(iter(range(40)), "numbers", capacity), most) == list(range(40))


def test_an_empty_iterator_ends_and_a_poll_of_nothing_takes_nothing() -> None:
    pump = Pump(iter([]), "none")
    assert all_of(pump, 5) == [] and pump.take(5) == []
    other = Pump(iter([1]), "one")
    assert other.take(0) == [] and all_of(other, 1) == [1]


def test_an_arrival_is_reported_when_none_was_there_before_and_at_the_end() -> None:
    gate, reports = threading.Semaphore(0), threading.Semaphore(0)

    def items() -> Iterator[int]:
        for number in range(3):
            assert gate.acquire(timeout=PATIENCE_S)
            yield number

    pump = Pump(items(), "numbers", arrived=reports.release)
    gate.release()
    assert reports.acquire(timeout=PATIENCE_S) and not pump.is_empty
    # the second comes while the first is there: who polls looks for more
    gate.release()
    await_that(lambda: len(pump._ready) == 2)
    assert not reports.acquire(blocking=False)
    assert pump.take(9) == [0, 1] and pump.is_empty and pump.take(9) == []
    gate.release()
    for _ in ("an item", "the end"):
        assert reports.acquire(timeout=PATIENCE_S)
    assert pump.take(9) == [2] and pump.ended


def test_a_poll_never_waits_and_takes_what_has_arrived() -> None:
    gate = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        assert gate.wait(PATIENCE_S)
        yield 2

    pump, taken = Pump(items(), "slow"), list[int]()
    await_that(lambda: taken.extend(pump.take(9)) or taken, "the first item")
    assert taken == [1] and pump.take(9) == [] and not pump.ended
    gate.set()
    assert all_of(pump, 9) == [2]


def test_no_more_than_the_capacity_is_read_ahead() -> None:
    read, went_on = [], threading.Event()

    def items() -> Iterator[int]:
        for number in range(10):
            read.append(number)
            if number == 5:
                went_on.set()
            yield number

    pump = Pump(items(), "ahead", 3)
    await_that(lambda: len(read) >= 4, "three items ready and a fourth in hand")
    assert read == [0, 1, 2, 3]
    assert pump.take(2) == [0, 1]
    assert went_on.wait(PATIENCE_S), "room for two more"
    assert read == [0, 1, 2, 3, 4, 5]
    pump.close()


def test_an_error_comes_once_and_behind_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    pump = Pump(items(), "broken")
    await_that(lambda: pump._finished, "the error")
    assert pump.take(9) == [1] and not pump.ended
    with pytest.raises(OSError, match="gone"):
        pump.take(9)
    assert pump.ended and pump.take(9) == []


def test_a_closed_pump_reads_no_further() -> None:
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            for number in range(1_000):
                read.append(number)
                yield number
        finally:
            ended.set()

    read: list[int] = []
    made = items()
    pump = Pump(made, "closed", 1)
    await_that(lambda: len(read) == 2, "one item ready and one in hand")
    pump.close()
    await_that(lambda: pump._finished, "the end of its thread")
    assert len(read) == 2
    made.close()
    assert ended.is_set()
