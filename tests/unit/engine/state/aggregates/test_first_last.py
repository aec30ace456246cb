"""FIRST_VALUE, LAST_VALUE, MIN_BY and MAX_BY by slot, and the order of rows within slots, against sorted
lists.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import INT, Array
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.aggregates.first_last import BestRow, SlotOrder
from penstock.planner.expressions.nodes import AggregateCall, Column, Direction
from tests.harness.aggregates import Reference, follows_its_reference, order

DIRECTIONS = [Direction(down, first) for down in (False, True) for first in (False, True)]


def sort_rank(value: Any, direction: Direction) -> tuple[bool, Any]:
    """Where a value sorts among others of an ascending key."""
    if value is None:
        return direction.nulls_first == direction.descending, 0
    return direction.nulls_first != direction.descending, order(value)


def in_order(rows: list[tuple[Any, ...]], directions: list[Direction]) -> list[tuple[Any, ...]]:
    """Sort rows by their last columns as ``directions`` say, then by all columns, NULL first."""
    first = len(rows[0]) - len(directions) if rows else 0
    rows = sorted(rows, key=lambda row: [sort_rank(value, Direction(False, True)) for value in row])
    for index, direction in reversed(list(enumerate(directions, first))):
        rows.sort(
            key=lambda row, index=index, direction=direction: sort_rank(row[index], direction),
            reverse=direction.descending,
        )
    return rows


KINDS = {
    "plain": (pa.int64(), pa.float64(), [None, 0, -3, 2**62], [None, 0.5, -1.0, math.nan]),
    "texts": (pa.string(), pa.int32(), [None, "", "a", "é", "ab"], [None, 1, 2]),
    "ordered by texts": (pa.int64(), pa.string(), [None, 1, 2], [None, "a", "b", ""]),
}


def struct(kinds: list[pa.DataType]) -> pa.DataType:
    return pa.struct([pa.field(f"v{i}", kind) for i, kind in enumerate(kinds)])


def reference(name: str, direction: Direction, last: bool, insert_only: bool) -> Reference:
    value, key, values, keys = KINDS[name]
    kind = struct([value, key])

    def expected(rows: list[dict[str, Any]]) -> dict[str, Any]:
        ordered = in_order([tuple(row.values()) for row in rows], [direction])
        return {"best": ordered[-1 if last else 0][0] if ordered else None}

    return Reference(
        lambda: BestRow(kind, (direction,), last, insert_only),
        kind,
        [{"v0": one, "v1": other} for one in values for other in keys],
        lambda part, slots: {"best": part.best(slots)},
        expected,
        not insert_only,
    )


@pytest.mark.parametrize("insert_only", [True, False], ids=["inserts", "retractions"])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("name", KINDS)
def test_the_first_and_the_last_row_are_those_of_a_sorted_list(
    name: str, last: bool, insert_only: bool
) -> None:
    for direction in DIRECTIONS:
        follows_its_reference(reference(name, direction, last, insert_only), 12)


def test_under_inserts_only_the_best_row_is_stored() -> None:
    kind = struct([pa.int64(), pa.int64()])
    stored = []
    for insert_only in (True, False):
        part = BestRow(kind, (Direction(),), False, insert_only)
        part.reserve(1)
        rows = pa.array([{"v0": i, "v1": -i} for i in range(50)], kind)
        part.add(np.zeros(50, np.int64), rows, np.ones(50, np.int64))
        assert part.best(np.zeros(1, np.int64)).to_pylist() == [49]
        stored.append(len(part._counts))
    assert stored == [1, 50]


@pytest.mark.parametrize("kinds", [(pa.int64(), pa.float64()), (pa.string(), pa.float64())], ids=str)
def test_rows_sort_within_their_slots(kinds: tuple[pa.DataType, ...]) -> None:
    """Fixed-width columns are sorted by their words, others by Arrow: in the same order."""
    random = Random(1)
    texts = pa.types.is_string(kinds[0])
    for descending in DIRECTIONS:
        rows = [
            (random.randrange(3), random.choice([None, "b", "a"] if texts else [None, -5, 2]), number)
            for number in random.choices([None, 1.0, -2.5, math.nan], k=20)
        ]
        columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds, 1)]
        found = SlotOrder(kinds, [descending]).sorted(np.array([row[0] for row in rows]), columns)
        expected = [
            (slot, *row)
            for slot in range(3)
            for row in in_order([row[1:] for row in rows if row[0] == slot], [descending])
        ]
        assert repr([rows[i] for i in found]) == repr(expected)


def test_extremes_of_nested_types() -> None:
    kind = Array(INT)
    accumulators = Accumulators(
        [AggregateCall(name, (Column(kind, True, index=0),), kind) for name in ("any_value", "max")], False
    )
    accumulators.reserve(2)
    rows = pa.record_batch(
        [pa.array([[2], None, [1, 5], [2], [], [None, 9]], pa.list_(pa.int32()))], names=["a"]
    )
    accumulators.add(np.array([0, 1, 0, 0, 0, 0]), rows)
    assert [column.to_pylist() for column in accumulators.results(np.arange(2))] == [[[], None], [[2], None]]
    accumulators.add(np.zeros(3, np.int64), rows.take(pa.array([0, 3, 4])), np.full(3, -1))
    assert [column.to_pylist() for column in accumulators.results(np.arange(2))] == [
        [[None, 9], None],
        [[1, 5], None],
    ]
