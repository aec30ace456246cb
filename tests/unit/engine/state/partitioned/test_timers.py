"""Timers: named ones move, equal ones are one, and what is due comes in order of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.state.partitioned.partition_rows import PartitionKeys
from penstock.engine.state.partitioned.timers import LATEST_US, Timers


def made(partitions: PartitionKeys, *timers: tuple[int, str | None, int]) -> Timers:
    held = Timers(partitions)
    put(held, partitions, *timers)
    return held


def put(held: Timers, partitions: PartitionKeys, *timers: tuple[int, str | None, int]) -> None:
    slots = partitions.keys.lookup_or_insert([pa.array([key for key, _, _ in timers])])
    names = pa.array([name for _, name, _ in timers], pa.string())
    held.set(slots, names, np.array([time for _, _, time in timers], np.int64))


def shown(held: Timers, partitions: PartitionKeys, ids: np.ndarray) -> list[tuple[int, str | None, int]]:
    keys = partitions.keys.keys(held.owners(ids))[0].to_pylist()
    names = held.take(ids).column(0).to_pylist()
    return list(zip(keys, names, held.times(ids).tolist(), strict=True))


def test_a_named_timer_moves_and_an_equal_one_is_the_same() -> None:
    partitions = PartitionKeys.of([pa.int64()], 128)
    held = made(partitions, (1, "a", 10), (1, "a", 20), (1, None, 10), (1, None, 10), (2, "a", 5))
    assert len(held) == 3
    assert shown(held, partitions, held.take_due(10)) == [(1, None, 10), (2, "a", 5)]
    assert held.take_due(15).size == 0, "they are watched no more"
    put(held, partitions, (1, "a", 12))
    assert shown(held, partitions, held.take_due(15)) == [(1, "a", 12)]
    slots = partitions.keys.lookup([pa.array([1, 2])])
    held.clear_named(slots, pa.array(["a", "b"]))
    assert sorted(shown(held, partitions, held._store.live_ids())) == [(1, None, 10), (2, "a", 5)]


def test_rounds_have_the_next_timer_of_each_partition() -> None:
    partitions = PartitionKeys.of([pa.int64()], 128)
    held = made(partitions, (1, "b", 7), (1, "a", 7), (1, None, 7), (1, "z", 3), (2, None, 9))
    rounds = held.rounds(held.take_due(LATEST_US))
    assert [sorted(shown(held, partitions, ids)) for ids in rounds] == [
        [(1, "z", 3), (2, None, 9)],
        [(1, None, 7)],
        [(1, "a", 7)],
        [(1, "b", 7)],
    ]
    assert held.rounds(np.zeros(0, np.int64)) == []


def test_restored_timers_are_due() -> None:
    partitions = PartitionKeys.of([pa.int64()], 128)
    held = made(partitions, (1, "a", 10), (2, None, 20))
    others = PartitionKeys.of([pa.int64()], 128)
    again = Timers(others)
    again.restore(held.snapshot())
    assert shown(again, others, again.take_due(10)) == [(1, "a", 10)]
    assert shown(again, others, again.take_due(LATEST_US)) == [(2, None, 20)]
