"""Expiry by the clock, by event time and by window, against plain dictionaries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.state.time_to_live import Deadlines, LastWrites, PartitionEnds
from tests.harness.length import examples


@dataclass
class SetClock:
    """A clock that the test sets."""

    now_ms: int = 0

    def wall_ms(self) -> int:
        return self.now_ms


def due(writes: LastWrites, now_ms: int, live: list[int]) -> list[int]:
    return writes.due(now_ms, lambda: np.array(live, np.int64)).tolist()


def test_an_entry_expires_between_its_ttl_and_a_hundredth_more_after_its_last_write() -> None:
    clock = SetClock(5)
    writes = LastWrites(1_000, clock)
    writes.touch(np.array([0, 1]), 2)
    clock.now_ms = 500
    writes.touch(np.array([1]), 2)
    assert due(writes, 1_004, [0, 1]) == []
    assert due(writes, 1_015, [0, 1]) == [0]
    assert due(writes, 1_499, [1]) == []
    assert due(writes, 1_510, [1]) == [1]


def test_a_clock_that_goes_back_expires_nothing_early() -> None:
    clock = SetClock(10_000)
    writes = LastWrites(1_000, clock)
    writes.touch(np.array([0]), 1)
    clock.now_ms = 0
    writes.touch(np.array([0]), 1)
    assert writes.of(np.array([0])).tolist() == [10_000]
    assert due(writes, 10_999, [0]) == []
    assert due(writes, 11_000, [0]) == [0]


def test_restored_times_count_from_the_latest_of_an_entry() -> None:
    writes = LastWrites(1_000, SetClock())
    writes.restore(np.array([0, 0, 1]), np.array([700, 300, 100]), 2)
    assert writes.of(np.array([0, 1])).tolist() == [700, 100]
    assert due(writes, 1_100, [0, 1]) == [1]


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.lists(st.integers(-30, 30), max_size=12), st.integers(-35, 35)), max_size=12))
def test_deadlines_like_a_list(steps: list[tuple[list[int], int]]) -> None:
    deadlines, model, number = Deadlines(), [], 0
    for times, bound in steps:
        numbers = list(range(number, number + len(times)))
        number += len(times)
        deadlines.add(np.array(times, np.int64), np.array(numbers, np.int64))
        model += zip(times, numbers, strict=True)
        passed_times, passed = deadlines.due(bound)
        expected = [pair for pair in model if pair[0] < bound]
        model = [pair for pair in model if pair[0] >= bound]
        assert sorted(zip(passed_times.tolist(), passed.tolist(), strict=True)) == sorted(expected)


def test_deadlines_that_come_in_order_are_copied() -> None:
    deadlines, times, numbers = Deadlines(), np.arange(4), np.arange(4)
    deadlines.add(times, numbers)
    times[:] = numbers[:] = 9
    assert [part.tolist() for part in deadlines.due(3)] == [[0, 1, 2], [0, 1, 2]]


def test_partitions_end_in_the_order_of_their_windows() -> None:
    ends = PartitionEnds()
    ends.note(np.array([0, 1, 2]), np.array([300, 100, 200]), 3)
    live = np.arange(3)
    assert ends.due(live, 99).tolist() == []
    assert ends.due(live, 200).tolist() == [1, 2]
    assert ends.due(np.array([0]), 299).tolist() == []
    assert ends.due(np.array([0]), 300).tolist() == [0]
