"""NearestSide: rows are in order while their weight is above zero, also after a restore."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.nearest_side import NearestSide

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us")), ("v", pa.int64())])
Row = tuple[int, int, int]


def side(*, retracting: bool = True, latest: bool = True, shift: int = 0) -> NearestSide:
    keys = KeyIndex([pa.int64()])
    return NearestSide(SCHEMA, [0], 1, keys, 128, latest=latest, shift=shift, retracting=retracting)


def change(state: NearestSide, rows: list[Row], weights: list[int] | None = None) -> None:
    columns = [pa.array([row[i] for row in rows], pa.int64()).cast(SCHEMA.types[i]) for i in range(3)]
    rows_of = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    batch = Batch(rows_of, None if weights is None else np.array(weights, np.int64))
    batch = state.consolidated(batch, keep=True)
    slots = state._keys.lookup_or_insert([batch.rows.column(0)], batch.num_rows)
    state.change(batch, slots, np.zeros(batch.num_rows, np.int64))


def words(state: NearestSide) -> list[int]:
    return sorted(
        word for run in state.runs._runs for word in run.words[run.is_live(np.arange(run.words.size))]
    )


def test_a_row_is_in_order_while_it_is_there() -> None:
    state = side()
    change(state, [(1, 5, 0), (1, 5, 0), (1, 7, 0)])
    assert words(state) == [5, 7], "equal rows are one"
    change(state, [(1, 5, 0)], [-1])
    assert words(state) == [5, 7]
    change(state, [(1, 5, 0), (1, 9, 0)], [-1, -1])
    assert words(state) == [7], "a row whose insertion is still to come is in no order"
    change(state, [(1, 9, 0), (1, 9, 0)], [1, 1])
    assert words(state) == [7, 9]


@pytest.mark.parametrize("retracting", [True, False])
def test_a_restored_side_is_in_order(retracting: bool) -> None:
    state, again = side(retracting=retracting), side(retracting=retracting)
    change(state, [(key, time, key) for key in range(3) for time in (4, 2, 9)])
    again.restore(state.snapshot())
    assert words(again) == words(state) == [2, 2, 2, 4, 4, 4, 9, 9, 9]
    slots = again._keys.lookup([pa.array([1], pa.int64())])
    again.forget_keys(slots)
    assert words(again) == [2, 2, 4, 4, 9, 9] and len(again) == 6


def test_words_follow_the_direction() -> None:
    rows = pa.record_batch(
        [pa.array([0, 0]), pa.array([3, 8], pa.timestamp("us")), pa.array([0, 0])], schema=SCHEMA
    )
    assert side().words(rows).tolist() == [3, 8]
    assert side(latest=False).words(rows).tolist() == [~3, ~8]
    assert side(shift=-1).words(rows).tolist() == [2, 7]
    least = pa.record_batch(
        [pa.array([0]), pa.array([-(2**63)]).cast(pa.timestamp("us")), pa.array([0])], schema=SCHEMA
    )
    assert side(shift=-1).words(least).tolist() == [-(2**63)], "nothing is before the least time"
