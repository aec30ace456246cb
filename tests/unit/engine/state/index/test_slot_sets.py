"""Distinct slots of a batch, numbers of (run, slot) pairs, and use counts, against dicts."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.state.index import slot_sets
from penstock.engine.state.index.slot_sets import DistinctSlots, UseCounts, number_runs
from tests.harness.length import examples

SLOTS = st.lists(st.integers(0, 9), max_size=30)


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.lists(SLOTS, max_size=5))
def test_each_slot_of_a_batch_once_in_the_order_they_come(batches: list[list[int]]) -> None:
    """One set serves many batches: none sees the marks of an earlier one."""
    distinct = DistinctSlots()
    for capacity, slots in enumerate(batches, 10):
        assert distinct.of(np.array(slots, np.int64), capacity).tolist() == list(dict.fromkeys(slots))


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.lists(st.lists(SLOTS, max_size=4), max_size=5))
def test_each_slot_of_several_pieces_once(batches: list[list[list[int]]]) -> None:
    distinct = DistinctSlots()
    for pieces in batches:
        once = list(dict.fromkeys(slot for slots in pieces for slot in slots))
        # as many as there are keys, or more
        for most in (len(once), 10):
            arrays = [np.array(slots, np.int64) for slots in pieces]
            distinct.begin()
            assert distinct.unseen(arrays, 10, most).tolist() == once
            # as well one after another: none is named again
            distinct.begin()
            assert [slot for one in arrays for slot in distinct.unseen([one], 10, most).tolist()] == once


def test_batches_are_counted_from_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_sets, "_BATCHES_MOST", 3)
    distinct = DistinctSlots()
    for slots in ([1, 1], [2, 1], [0, 2, 0], [1, 2, 1], [3], [3, 3, 1]):
        assert distinct.of(np.array(slots), 4).tolist() == list(dict.fromkeys(slots))


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), max_size=30))
def test_pairs_of_runs_and_slots_are_numbered_in_order(pairs: list[tuple[int, int]]) -> None:
    pairs.sort(key=lambda pair: pair[0])
    runs, slots = (np.array([pair[k] for pair in pairs], np.int64) for k in (0, 1))
    numbers, firsts = number_runs(runs, slots, 5)
    once = list(dict.fromkeys(pairs))
    assert numbers.tolist() == [once.index(pair) for pair in pairs]
    assert firsts.tolist() == [pairs.index(pair) for pair in once]


def test_a_slot_is_unused_after_its_last_release() -> None:
    for seed in range(60):
        random, uses = Random(seed), UseCounts()
        model: Counter[int] = Counter()
        for capacity in range(5, 13):
            slots = random.choices(range(capacity), k=random.randrange(9))
            uses.retain(np.array(slots, np.int64), capacity)
            model.update(slots)
            gone = random.sample(list(model.elements()), random.randint(0, model.total()))
            model.subtract(gone)
            unused = uses.release(np.array(gone, np.int64)).tolist()
            assert sorted(unused) == sorted(slot for slot in set(gone) if not model[slot])
            model = +model
