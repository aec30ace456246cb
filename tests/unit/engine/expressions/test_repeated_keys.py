"""Keys that are twice in a map: found by comparing few texts with each other, by codes otherwise."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.expressions.datum import repeated
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.nested.lists import lists_of
from penstock.engine.expressions.nested.map_functions import checked_keys


def first_again(maps: list[list[str] | None]) -> str | None:
    for keys in maps:
        seen: set[str] = set()
        for key in keys or ():
            if key in seen:
                return key
            seen.add(key)
    return None


@pytest.mark.parametrize("most", [1, 3, 16, 40])
def test_the_first_key_that_is_twice_is_found(most: int) -> None:
    chance = random.Random(most)
    for size in range(60):
        # the letters are few for some maps, and enough for all of others
        letters = [f"é{n}" for n in range(chance.choice([most, 40 * most, 4_000]))]
        maps = [
            None if chance.random() < 0.1 else chance.choices(letters, k=chance.randint(0, most))
            for _ in range(size)
        ]
        column = pa.array([["a", "a"], *maps], pa.list_(pa.string())).slice(1)
        again = first_again(maps)
        if again is None:
            checked_keys(lists_of(column))
        else:
            with pytest.raises(Fault, match=f"the key '{again}' occurs twice in a map"):
                checked_keys(lists_of(column))


def test_numbers_and_nulls_are_refused_as_texts_are() -> None:
    checked_keys(lists_of(pa.array([[1, 2], [], None, [1]])))
    with pytest.raises(Fault, match="the key 2 occurs twice"):
        checked_keys(lists_of(pa.array([[1, 2], [2, 2]])))
    with pytest.raises(Fault, match="NULL"):
        checked_keys(lists_of(pa.array([["a", None]])))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["a", None, "b"]]),
        pa.array([[]], pa.list_(pa.int64())),
        pa.array([None], pa.list_(pa.int64())),
        pa.array([[("a", [1]), ("b", None)]], pa.map_(pa.string(), pa.list_(pa.int64()))),
    ],
)
def test_a_constant_list_is_repeated(column: pa.Array) -> None:
    for count in (0, 1, 3):
        many = repeated(column[0], count)
        assert many.type == column.type and many.to_pylist() == column.to_pylist() * count


def test_lists_are_those_of_any_slice() -> None:
    maps = pa.array([[("a", 1), ("b", None)], [], [("c", 3)], None], pa.map_(pa.string(), pa.int64()))
    pairs = [[{"key": key, "value": value} for key, value in one] for one in maps.to_pylist()[:3]]
    # entries that are a slice themselves
    entries = pa.array([{"key": key, "value": 0} for key in "xyz"], maps.type.field(0).type).slice(1)
    of_slice = pa.Array.from_buffers(
        maps.type, 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32))], children=[entries]
    )
    for column, expected in [
        (maps.slice(0, 3), pairs),
        (maps.slice(1, 2), pairs[1:]),
        (maps.slice(2), [pairs[2], None]),
        (of_slice.slice(1), [[{"key": "z", "value": 0}]]),
        (pa.array([[1], [2, 3], [], None]).slice(1, 2), [[2, 3], []]),
        (pa.array([[1], None, [2, 3]]).slice(1), [None, [2, 3]]),
        (pa.array([], pa.list_(pa.int64())), []),
    ]:
        lists = lists_of(column)
        assert lists.column().to_pylist() == expected
        assert lists.lengths.dtype == np.int64 and lists.flat.to_pylist() == [
            part for one in expected for part in one or ()
        ]
