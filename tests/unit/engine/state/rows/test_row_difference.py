"""Two sets of rows as changes, against Counters; and which of neighbouring pairs of rows differ."""

from __future__ import annotations

import math
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.rows.row_difference import changed_pairs, difference, net_weights

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int64()))])
Row = tuple[int | None, str | None, tuple[int, ...]]


def batch(rows: list[Row], weights: list[int] | None = None) -> Batch:
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(SCHEMA)]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA), None if weights is None else np.array(weights)
    )


def drawn(random: Random) -> tuple[list[Batch], Counter[Row]]:
    """Batches of rows of which many are equal, and how often each row is there."""
    batches, model = [], Counter()
    for _ in range(random.randrange(3)):
        rows: list[Row] = [
            (random.choice((None, 1)), random.choice((None, "", "a")), random.choice(((), (1,))))
            for _ in range(random.randrange(1, 8))
        ]
        weights = random.choice((None, [random.choice((1, 2, -1)) for _ in rows]))
        for row, weight in zip(rows, weights or [1] * len(rows), strict=True):
            model[row] += weight
        batches.append(batch(rows, weights))
    return batches, model


def changes(batches: list[Batch]) -> list[tuple[Row, int]]:
    return [
        ((row["k"], row["s"], tuple(row["l"])), weight)
        for one in batches
        for row, weight in zip(
            one.rows.to_pylist(),
            [1] * one.num_rows if one.weights is None else one.weights.tolist(),
            strict=True,
        )
    ]


def test_the_difference_of_two_sets_of_rows_is_that_of_their_counts() -> None:
    for seed in range(150):
        random = Random(seed)
        (before, old), (after, new) = drawn(random), drawn(random)
        found = changes(difference(before, after))
        new.subtract(old)
        assert dict(found) == {row: count for row, count in new.items() if count}
        assert len(found) == len(dict(found)), "each row once"
        signs = [weight > 0 for _, weight in found]
        assert signs == sorted(signs), "retractions come first"


def test_nothing_changed_is_no_batch() -> None:
    rows: list[Row] = [(1, "a", ()), (2, "b", (1,))]
    assert difference([], []) == []
    assert difference([batch(rows)], [batch(rows[:1]), batch(rows[1:])]) == []
    assert difference([batch(rows[:0])], []) == []


def test_additions_alone_bring_no_weights() -> None:
    (found,) = difference([], [batch([(1, "a", ())])])
    assert found.weights is None
    (found,) = difference([batch([(1, "a", ())])], [])
    assert found.weights is not None and found.weights.tolist() == [-1]


def test_net_weights_name_the_first_of_equal_rows() -> None:
    pieces = [batch([(1, "a", ()), (2, "b", ())]), batch([(2, "b", ()), (1, "a", ()), (3, None, ())])]
    first, net = net_weights(pieces, np.array([1, 2, -2, 4, 1]))
    assert dict(zip(first.tolist(), net.tolist(), strict=True)) == {0: 5, 1: 0, 4: 1}


def interleaved(old: pa.Array, new: pa.Array) -> pa.Array:
    order = np.arange(2 * len(old)).reshape(2, -1).T.ravel()
    return pa.concat_arrays([old, new]).take(pa.array(order))


def test_changed_pairs() -> None:
    old = [
        pa.array([1, None, 3, None]),
        pa.array(["a", None, "", "x"]),
        pa.array([float("nan"), 1.0, 0.0, None]),
    ]
    new = [
        pa.array([1, 2, 3, None]),
        pa.array(["a", None, None, "x"]),
        pa.array([float("nan"), 1.0, -0.0, 1.0]),
    ]
    assert not changed_pairs(list(map(interleaved, old, old)), 4).any()
    assert changed_pairs(list(map(interleaved, old, new)), 4).tolist() == [False, True, True, True]
    assert changed_pairs([pa.array([1.0, 2.0], pa.float32())], 1).tolist() == [True]
    assert changed_pairs([], 2).tolist() == [False, False]


VALUES: dict[pa.DataType, list[Any]] = {
    pa.float64(): [None, 0.0, 1.5, math.nan, math.inf],
    pa.decimal128(38, 0): [None, 2**70, 2**70 + 1, 0, -1],
    pa.bool_(): [None, True, False],
    pa.binary(): [None, b"", b"\x00", b"\x00\x00"],
    pa.list_(pa.float64()): [None, [], [None], [1.0], [1.0, 2.0], [math.nan], [2.0, 1.0]],
    pa.list_(pa.list_(pa.string())): [None, [], [[]], [["a"]], [["a"], []], [["a", None]], [None]],
    pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))]): [
        None,
        {"a": 1, "b": []},
        {"a": None, "b": []},
        {"a": 1, "b": None},
        {"a": 1, "b": [2]},
    ],
    pa.map_(pa.string(), pa.int64()): [None, [], [("k", 1)], [("k", None)], [("l", 1)], [("k", 1), ("l", 1)]],
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_each_value_differs_from_every_other_and_not_from_itself(kind: pa.DataType) -> None:
    values = VALUES[kind]
    pairs = [(old, new) for old in values for new in values]
    old, new = (pa.array([pair[k] for pair in pairs], kind) for k in (0, 1))
    found = changed_pairs([interleaved(old, new)], len(pairs)).tolist()
    assert found == [repr(one) != repr(other) for one, other in pairs]
