"""NestedIndex against a dict: arrays, maps and rows to dense slots, which have their values again."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.state.index.nested_index import NestedIndex

VALUES: dict[pa.DataType, list[Any]] = {
    pa.list_(pa.int64()): [None, [], [None], [1], [1, 2], [2**63 - 1], *([i, i] for i in range(90))],
    pa.list_(pa.string()): [None, [], ["a", "b"], ['a","b'], ["a\\", "b"], ["null"], [None], [""]],
    pa.struct([("a", pa.string()), ("b", pa.list_(pa.int32()))]): [
        None,
        {"a": None, "b": None},
        {"a": "x", "b": [1]},
        {"a": "x", "b": None},
        {"a": "x", "b": []},
    ],
    pa.map_(pa.string(), pa.int64()): [None, [], [("k", 1)], [("k", 2)], [("k", None)], [("k", 1), ("l", 1)]],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_like_a_dict(kind: pa.DataType) -> None:
    for seed in range(25):
        random, index = Random(seed), NestedIndex(kind)
        model: dict[str, int] = {}
        by_text = {repr(value): value for value in VALUES[kind]}
        for _ in range(6):
            if random.random() < 0.6:
                values = random.choices(VALUES[kind], k=random.randrange(60))
                slots = index.lookup_or_insert(pa.array(values, kind)).tolist()
                for value, slot in zip(values, slots, strict=True):
                    assert model.setdefault(repr(value), slot) == slot
            elif model:
                gone = random.sample(list(model), random.randint(1, len(model)))
                index.remove(np.array([model.pop(text) for text in gone]))
            assert len(index) == len(model) == len(set(model.values()))
            assert index.live_slots().tolist() == sorted(model.values())
            assert all(slot < index.capacity for slot in model.values())
            assert index.lookup(pa.array(VALUES[kind], kind)).tolist() == [
                model.get(repr(value), -1) for value in VALUES[kind]
            ]
            keys = index.keys(np.array(list(model.values()), np.int64))
            assert keys.type == kind and keys.to_pylist() == [by_text[text] for text in model]


def test_equal_numbers_in_different_guise_are_one_key() -> None:
    index, kind = NestedIndex(pa.list_(pa.float64())), pa.list_(pa.float64())
    slots = index.lookup_or_insert(
        pa.array([[0.0], [-0.0], [float("nan")], [-float("nan")], [0.0, 1.0]], kind)
    )
    assert slots[0] == slots[1] and slots[2] == slots[3] and len(index) == 3


def test_the_width_of_a_value_grows_with_it() -> None:
    index = NestedIndex(pa.list_(pa.string()))
    short, long = index.widths(index.lookup_or_insert(pa.array([["a"], ["a" * 50, "b" * 50]]))).tolist()
    assert short < 10 < 100 <= long < 120


def test_values_of_removed_slots_are_forgotten() -> None:
    index = NestedIndex(pa.list_(pa.int64()))
    for number in range(60):
        index.remove(index.lookup_or_insert(pa.array([[number] * 9])))
    assert len(index) == len(index._values) == 0 and index.capacity < 100
