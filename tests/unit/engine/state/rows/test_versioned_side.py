"""The version of a key in force at a time, against a list of all versions there ever were."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.rows.versioned_side import VersionSide
from penstock.planner.expressions.nodes import Column, SortKey

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us")), ("v", pa.int64())])
TIES = RowOrder([SortKey(Column(BIGINT, True, index=2), True, False)], SCHEMA, "UTC")
"""Of versions of one time the one of the greatest value counts."""
Row = tuple[int, int, int]


def side(*, retracting: bool = True) -> VersionSide:
    keys = KeyIndex([pa.int64()])
    return VersionSide(SCHEMA, [0], 1, TIES, keys, 128, retracting=retracting, counts=False)


def change(state: VersionSide, rows: list[Row], weights: list[int] | None = None) -> None:
    columns = [pa.array([row[i] for row in rows], pa.int64()).cast(SCHEMA.types[i]) for i in range(3)]
    batch = Batch(
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA),
        None if weights is None else np.array(weights, np.int64),
    )
    batch = state.consolidated(batch, keep=True)
    slots = state._keys.lookup_or_insert([batch.rows.column(0)], batch.num_rows)
    state.change(batch, slots, np.zeros(batch.num_rows, np.int64))


def in_force(state: VersionSide, asked: list[tuple[int, int]]) -> list[int | None]:
    """The value of each (key, time), None where no version is in force."""
    slots = state._keys.lookup([pa.array([key for key, _ in asked], pa.int64())])
    ids = state.in_force(slots, np.array([time for _, time in asked], np.int64))
    values = state.store.take(np.maximum(ids, 0)).column(2).to_pylist() if len(state) else [None] * len(asked)
    return [value if at >= 0 else None for at, value in zip(ids.tolist(), values, strict=True)]


def expected(model: dict[Row, int], key: int, time: int) -> int | None:
    """The value of the last version up to a time; a row of negative weight ends it."""
    times = [row[1] for row, weight in model.items() if weight and row[0] == key and row[1] <= time]
    if not times:
        return None
    return max(
        (row[2] for row, weight in model.items() if weight > 0 and row[:2] == (key, max(times))), default=None
    )


@pytest.mark.parametrize("scale", [1, 1 << 58], ids=["near", "far apart"])
def test_the_version_in_force_is_the_last_one_that_began(scale: int) -> None:
    """Times so far apart that a key and a time fit no word are compared by their rank."""
    for seed in range(40):
        random, state = Random(seed), side()
        model: dict[Row, int] = {}
        passed = 0
        for _ in range(6):
            rows = {
                (random.randrange(3), random.randrange(passed, passed + 9) * scale, random.randrange(5))
                for _ in range(random.randrange(1, 6))
            }
            weights = [random.choice((1, 1, -1)) for _ in rows]
            # a retraction of a row that is there, or the end of the version in force; no row is there twice
            weights = [
                -1 if model.get(row, 0) > 0 else 1 if model.get(row, 0) < 0 else weight
                for row, weight in zip(rows, weights, strict=True)
            ]
            for row, weight in zip(rows, weights, strict=True):
                model[row] = model.get(row, 0) + weight
            change(state, list(rows), weights)
            asked = [(key, time * scale) for key in range(4) for time in range(passed, passed + 12)]
            assert in_force(state, asked) == [expected(model, *one) for one in asked], f"seed {seed}"
            passed += random.randrange(3)
            state._keys.remove(state.expire(passed * scale))
            assert in_force(state, asked[-8:]) == [expected(model, *one) for one in asked[-8:]]
            if random.random() < 0.3:
                table, state = state.snapshot(), side()
                state.restore(table)
                assert in_force(state, asked[-8:]) == [expected(model, *one) for one in asked[-8:]]


def test_only_the_version_in_force_and_later_ones_stay() -> None:
    state = side(retracting=False)
    change(state, [(1, 10, 1), (1, 20, 2), (1, 30, 3), (2, 5, 4)])
    assert state.expire(21).tolist() == []
    assert sorted(state.store.take(state.store.live_ids()).column(2).to_pylist()) == [2, 3, 4]
    assert in_force(state, [(1, 20), (1, 35), (2, 100), (1, 15)]) == [2, 3, 4, None]


def test_a_key_whose_version_was_ended_becomes_empty() -> None:
    state = side()
    change(state, [(1, 10, 1)])
    change(state, [(1, 20, 1)], [-1])
    assert in_force(state, [(1, 15), (1, 20)]) == [1, None]
    (emptied,) = state.expire(21)
    assert emptied == state._keys.lookup([pa.array([1])])[0] and len(state) == 0


def test_unknown_keys_and_times_before_the_first_version_have_none() -> None:
    state = side()
    assert in_force(state, [(1, 15)]) == [None]
    change(state, [(1, 10, 1)])
    assert in_force(state, [(1, 9), (2, 10), (1, 10), (1, -(2**62)), (1, 2**62)]) == [None, None, 1, None, 1]
