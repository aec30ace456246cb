"""The order of rows by sort keys against ``sorted`` in Python: NULL, NaN, text, nested values, ties."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT, BOOLEAN, DOUBLE, STRING, Array
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.state.rows.total_order import RowOrder
from penstock.planner.expressions.nodes import Column, SortKey
from tests.harness.aggregates import order

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("l", pa.list_(pa.int64())),
    ]
)
TYPES = [BIGINT, DOUBLE, STRING, BOOLEAN, Array(BIGINT)]
VALUES: list[list[Any]] = [
    [None, 0, -1, 2**63 - 1],
    [None, math.nan, 1.5, -math.inf, 0.0],
    [None, "", "a", "é", "Z"],
    [None, True, False],
    [None, [], [1], [1, 2], [None], [2]],
]
Row = tuple[Any, ...]


def key(index: int, descending: bool = False, nulls_first: bool = False) -> SortKey:
    return SortKey(Column(TYPES[index], True, index=index), descending, nulls_first)


def sort_rank(value: Any, descending: bool, nulls_first: bool) -> tuple[bool, Any]:
    if value is None:
        return nulls_first == descending, 0
    if isinstance(value, list):  # item by item, NULL least
        return nulls_first != descending, [(item is not None, item or 0) for item in value]
    return nulls_first != descending, order(value)


def drawn(random: Random, count: int = 25) -> list[Row]:
    return [tuple(random.choice(values) for values in VALUES) for _ in range(count)]


def batch(rows: list[Row]) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def sorted_rows(rows: list[Row], keys: list[SortKey]) -> list[int]:
    """Positions in order, ties in the order of arrival."""
    found = list(range(len(rows)))
    for one in reversed(keys):
        index = one.expression.index  # type: ignore[attr-defined]
        found.sort(
            key=lambda at, index=index, one=one: sort_rank(rows[at][index], one.descending, one.nulls_first),
            reverse=one.descending,
        )
    return found


def test_rows_are_sorted_as_python_sorts_them_ties_by_arrival() -> None:
    for seed in range(120):
        random = Random(seed)
        rows = drawn(random)
        keys = [
            key(index, random.random() < 0.5, random.random() < 0.5)
            for index in random.sample(range(len(VALUES)), random.randint(1, 3))
        ]
        found = RowOrder(keys, SCHEMA, "UTC", arrival=1).sorted(batch(rows))
        assert found.tolist() == sorted_rows(rows, keys), f"seed {seed}"


def test_arrival_in_reverse_and_by_numbers() -> None:
    rows, arrived = [(1, 0.0, "a", True, [])] * 4, np.array([5, 9, 2, 7])
    for arrival, numbers, expected in (
        (1, None, [0, 1, 2, 3]),
        (-1, None, [3, 2, 1, 0]),
        (1, arrived, [2, 0, 3, 1]),
        (-1, arrived, [1, 3, 0, 2]),
    ):
        found = RowOrder([key(0)], SCHEMA, "UTC", arrival).sorted(batch(rows), numbers)
        assert found.tolist() == expected


def test_equal_sets_of_rows_are_in_one_order() -> None:
    """Ties go by all columns, so the order in which rows came does not matter."""
    random, by_number = Random(1), RowOrder([key(0, True)], SCHEMA, "UTC")
    rows = drawn(random, 60)
    texts = set()
    for _ in range(5):
        random.shuffle(rows)
        texts.add(repr([rows[at] for at in by_number.sorted(batch(rows))]))
    assert len(texts) == 1


def test_ties_go_by_columns_from_the_first_with_null_first() -> None:
    rows = [(2, 1.0, "b", None, None), (None, 1.0, "c", None, None), (2, 1.0, "a", None, None)]
    assert RowOrder([key(1)], SCHEMA, "UTC").sorted(batch(rows)).tolist() == [1, 2, 0]


def test_no_rows_and_no_keys() -> None:
    assert RowOrder([key(0)], SCHEMA, "UTC").sorted(batch([])).tolist() == []
    assert RowOrder([], pa.schema([]), "UTC").sorted(batch(drawn(Random(1), 3))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("limit", [10, 2**31 - 1])
def test_pieces_are_sorted_as_one_batch(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = drawn(Random(2), 40)
    by_text = RowOrder([key(2, True)], SCHEMA, "UTC", arrival=1)
    whole = by_text.sorted(batch(rows)).tolist()
    monkeypatch.setattr(LIMITS, "array_bytes", limit)
    pieces = [batch(rows[:7]), batch(rows[7:8]), batch([]), batch(rows[8:])]
    assert by_text.sorted_pieces(pieces).tolist() == whole


def test_values_of_a_nested_key_that_fit_no_array_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "array_bytes", 10)
    with pytest.raises(TooLarge):
        RowOrder([key(4)], SCHEMA, "UTC", arrival=1).sorted_pieces([batch(drawn(Random(3), 9))] * 2)
