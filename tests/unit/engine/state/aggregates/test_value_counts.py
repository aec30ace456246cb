"""How often each slot has each value, against a Counter; what of it appeared and what is gone."""

from __future__ import annotations

import math
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.state.aggregates.value_counts import Change, CountedPart, ValueCounts
from tests.harness.aggregates import SLOTS, add_rows

STRUCT = pa.struct([pa.field("a", pa.string()), pa.field("b", pa.int64())])
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, -1, 2**63 - 1, 7],
    pa.string(): ["", "a", "x" * 40, "é"],
    pa.float64(): [0.0, math.inf, 2.5],
    STRUCT: [{"a": a, "b": b} for a in (None, "", "a") for b in (None, 1)],
}
Pairs = dict[tuple[int, str], int]


def listed(counts: ValueCounts, entries: np.ndarray) -> Pairs:
    """Entries as (slot, value) with their counts; each entry must be another pair."""
    slots, values = counts.slots_of(entries).tolist(), counts.values_of(entries).to_pylist()
    found = {
        (slot, repr(value)): count
        for slot, value, count in zip(slots, values, counts.counts(entries).tolist(), strict=True)
    }
    assert len(found) == entries.size
    return found


def stored(counts: ValueCounts) -> Pairs:
    positions, entries = counts.entries(np.arange(SLOTS))
    assert positions.tolist() == counts.slots_of(entries).tolist()
    return listed(counts, entries)


def check_change(counts: ValueCounts, change: Change, before: Pairs, after: Counter[tuple[int, str]]) -> None:
    def pairs(entries: np.ndarray) -> set[tuple[int, str]]:
        return set(listed(counts, entries))

    touched = pairs(change.touched)
    assert {pair for pair in {*before, *after} if before.get(pair, 0) != after[pair]} <= touched
    assert pairs(change.appeared) == {
        pair for pair in touched if before.get(pair, 0) <= 0 and after[pair] > 0
    }
    assert pairs(change.gone) == {pair for pair in touched if before.get(pair, 0) > 0 and after[pair] <= 0}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_counts_are_those_of_a_counter(kind: pa.DataType) -> None:
    for seed in range(40):
        random, counts = Random(seed), ValueCounts(kind)
        model: Counter[tuple[int, str]] = Counter()
        for _ in range(6):
            rows = [
                (random.randrange(SLOTS), random.choice(VALUES[kind]), random.choice((-2, -1, 1, 2)))
                for _ in range(random.randrange(1, 8))
            ]
            before = stored(counts)
            for slot, value, weight in rows:
                model[slot, repr(value)] += weight
            slots, values, weights = zip(*rows, strict=True)
            change = counts.add(np.array(slots), pa.array(values, kind), np.array(weights))
            check_change(counts, change, before, model)
            counts.forget(change.touched)
            if random.random() < 0.3:
                cleared = random.randrange(SLOTS)
                counts.clear(np.array([cleared]))
                model = Counter({pair: count for pair, count in model.items() if pair[0] != cleared})
            if random.random() < 0.3:
                order, again = np.array(random.sample(range(SLOTS), SLOTS)), ValueCounts(kind)
                again.forget(again.add(*again.read(order, counts.freeze(SLOTS)(None)(order))).touched)
                counts = again
            assert stored(counts) == {pair: count for pair, count in model.items() if count}
            assert len(counts) == len(stored(counts))
            assert len(counts.values) == len({value for _, value in stored(counts)}), (
                "unused values are freed"
            )


def test_counts_of_other_slots_are_added_by_a_merge() -> None:
    one, other = ValueCounts(pa.string()), ValueCounts(pa.string())
    one.add(np.array([0, 1]), pa.array(["a", "b"]), np.array([1, 1]))
    other.add(np.array([0, 1, 1]), pa.array(["a", "a", "b"]), np.array([2, 3, -1]))
    change = one.merge(np.array([1, 1]), other, np.array([0, 1]))
    assert listed(one, change.appeared) == {(1, "'a'"): 5}
    assert listed(one, change.gone) == {(1, "'b'"): 0}
    one.forget(change.touched)
    assert stored(one) == {(0, "'a'"): 1, (1, "'a'"): 5}


def test_rows_without_weights_count_as_one() -> None:
    part = CountedPart(pa.int64())
    add_rows(part, pa.int64(), [(0, 5, 1), (0, 5, 1), (1, 5, 1)], weighted=False)
    assert stored(part._counts) == {(0, "5"): 2, (1, "5"): 1}


def test_a_restored_part_goes_on_from_its_counts() -> None:
    part, again = CountedPart(pa.int64()), CountedPart(pa.int64())
    add_rows(part, pa.int64(), [(0, 5, 2), (1, 6, -1)])
    again.restore(np.array([1, 0]), part.freeze(2)(None)(np.array([1, 0])))
    add_rows(again, pa.int64(), [(0, 5, -2), (1, 6, 2)])
    assert stored(again._counts) == {(1, "6"): 1}


def test_the_width_of_a_value_is_that_of_its_first_field() -> None:
    counts = ValueCounts(STRUCT)
    change = counts.add(np.zeros(1, np.int64), pa.array([{"a": "x" * 40, "b": 1}], STRUCT), np.ones(1))
    assert counts.widths_of(change.touched).tolist() == [40]
