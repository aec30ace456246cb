"""Sorted partitions and peers against sorted() and groupby: bounds, origins, peer groups, the three ranks; NULL
equals NULL and NaN equals NaN.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, DOUBLE, STRING, DataType, Decimal, Row
from penstock.engine.operators.over.partitions import Partitions, Peers, partitioned
from penstock.engine.state.rows.total_order import RowOrder
from penstock.planner.expressions.nodes import Column, SortKey
from tests.harness.length import examples
from tests.unit.engine.operators.rank.test_top_n import place

SCHEMA = Schema((Field("x", DOUBLE), Field("s", STRING)))
KEYS = (
    SortKey(Column(DOUBLE, True, index=0, name="x"), True, False),
    SortKey(Column(STRING, True, index=1, name="s"), False, True),
)
NAN = float("nan")
ROW = st.tuples(
    st.sampled_from([None, 0.0, 1.5, NAN]),
    st.sampled_from([None, "", "a", "ä"]),
    st.sampled_from([0, 3, 900]),
)


def sorted_in(rows: list[tuple[Any, Any, int]]) -> Partitions:
    columns = [
        pa.array([x for x, _, _ in rows], pa.float64()),
        pa.array([s for _, s, _ in rows], pa.string()),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA.to_arrow())
    return partitioned(
        batch, np.array([slot for *_, slot in rows], np.int64), RowOrder(KEYS, SCHEMA.to_arrow(), "UTC")
    )


def peer(row: tuple[Any, Any, int]) -> tuple[Any, ...]:
    return place(row[0], True, False), place(row[1], False, True)


@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(rows=st.lists(ROW, max_size=15), mask=st.lists(st.booleans(), min_size=15, max_size=15))
def test_partitions_and_peers_are_those_of_sorted_rows(rows: list[Any], mask: list[bool]) -> None:
    part = sorted_in(rows)
    check(part, [rows[i] for i in part.origins], list(rows))
    chosen = np.array(mask[: len(rows)], np.bool_)
    some = part.filter(chosen)
    left = [rows[i] for i, one in zip(part.origins, chosen, strict=True) if one]
    assert some.origins.tolist() == part.origins[chosen].tolist()
    check(some, left, left)


def check(part: Partitions, rows: list[Any], whole: list[Any]) -> None:
    """``rows`` are those of a part in its order."""
    expected = sorted(whole, key=lambda row: (row[2], *peer(row)))
    assert repr(rows) == repr(expected), "rows equal in all keep their order"
    assert part.slots.tolist() == [row[2] for row in rows]
    peers, groups = Peers(KEYS, "UTC"), Peers(KEYS, "UTC").of(part)
    starts, ends, firsts, lasts, numbers, ranks = [], [], [], [], [], []
    group = 0
    for _, of_slot in groupby(range(len(rows)), key=lambda i: rows[i][2]):
        mine = list(of_slot)
        for dense, (_, same) in enumerate(groupby(mine, key=lambda i: peer(rows[i])), 1):
            equal = list(same)
            for i in equal:
                starts.append(mine[0])
                ends.append(mine[-1] + 1)
                firsts.append(equal[0])
                lasts.append(equal[-1] + 1)
                numbers.append(group)
                ranks.append((i - mine[0] + 1, equal[0] - mine[0] + 1, dense))
            group += 1
    assert (part.starts.tolist(), part.ends.tolist()) == (starts, ends)
    assert (groups.firsts.tolist(), groups.ends.tolist(), groups.numbers.tolist()) == (firsts, lasts, numbers)
    found = [peers.ranks(part, name).tolist() for name in ("row_number", "rank", "dense_rank")]
    assert list(zip(*found, strict=True)) == ranks


def test_without_an_order_a_partition_is_one_group() -> None:
    part = sorted_in([(1.0, "a", 0), (2.0, "b", 0), (1.0, "a", 3)])
    assert Peers((), "UTC").of(part).numbers.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("kind", "values", "numbers"),
    [
        (BIGINT, [1, 1, None, None, 2**62], [0, 0, 1, 1, 2]),
        (Decimal(38, 0), [None, 1, 2, 2**64 + 2, 2**64 + 2], [0, 1, 2, 3, 3]),
        (Row((("a", BIGINT), ("b", STRING))), [None, {"a": 1, "b": "x"}, {"a": 1, "b": "x"}, {"a": 1, "b": None}], [0, 1, 1, 2]),
    ],
    ids=["integers", "decimals", "rows"],
)  # fmt: skip
def test_peers_of_other_types_differ_by_value(kind: DataType, values: list[Any], numbers: list[int]) -> None:
    schema = Schema((Field("v", kind),)).to_arrow()
    rows = pa.RecordBatch.from_arrays([pa.array(values, schema.types[0])], schema=schema)
    zeros, count = np.zeros(len(values), np.int64), len(values)
    part = Partitions(rows, zeros, zeros, np.full(count, count), np.arange(count))
    assert (
        Peers((SortKey(Column(kind, True, index=0, name="v")),), "UTC").of(part).numbers.tolist() == numbers
    )
