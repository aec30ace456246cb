"""A side of an interval join: its rows expire once they can match nothing more."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.interval_join_side import ExpiringJoinSide, least_deadlines

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us")), ("u", pa.timestamp("us"))])
Row = tuple[int, int, int]
DEADLINES = ((1, 10), (2, 4))


def batch(rows: list[Row], weights: list[int] | None = None) -> Batch:
    columns = [pa.array([row[i] for row in rows], pa.int64()).cast(SCHEMA.types[i]) for i in range(3)]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA),
        None if weights is None else np.array(weights, np.int64),
    )


def side(*, retracting: bool, lasting: tuple[int, int] | None = None) -> ExpiringJoinSide:
    return ExpiringJoinSide(
        SCHEMA,
        [0],
        KeyIndex([pa.int64()]),
        128,
        DEADLINES,
        lasting,
        retracting=retracting,
        counts=False,
        lates=False,
    )


def change(state: ExpiringJoinSide, one: Batch) -> None:
    one = state.consolidated(one, keep=True)
    slots = state._keys.lookup_or_insert([one.rows.column(0)], one.num_rows)
    state.change(one, slots, np.zeros(one.num_rows, np.int64))


def stored(state: ExpiringJoinSide, ids: np.ndarray) -> Counter[Row]:
    rows = state.store.take(ids)
    columns = [column.cast(pa.int64()).to_pylist() for column in rows.columns]
    return Counter(dict(zip(zip(*columns, strict=True), state.store.weights(ids).tolist(), strict=True)))


def deadline(row: Row, lasting: tuple[int, int] | None) -> int:
    least = min(row[column] + offset for column, offset in DEADLINES)
    return least if lasting is None else max(least, row[lasting[0]] + lasting[1])


@pytest.mark.parametrize("lasting", [None, (1, 12)])
@pytest.mark.parametrize("retracting", [False, True])
def test_rows_are_due_by_the_least_of_their_deadlines(
    retracting: bool, lasting: tuple[int, int] | None
) -> None:
    for seed in range(20):
        random, state, model = Random(seed), side(retracting=retracting, lasting=lasting), Counter[Row]()
        for now in sorted(random.choices(range(60), k=8)):
            rows = [
                (number, random.randrange(now, now + 30), random.randrange(now, now + 30))
                for number in random.sample(range(1_000), random.randrange(6))
            ]
            gone = [row for row in model if retracting and random.random() < 0.3]
            for row in rows:
                model[row] += 1
            for row in gone:
                del model[row]
            if rows or gone:
                weights = [1] * len(rows) + [-1] * len(gone)
                change(state, batch(rows + gone, weights if gone else None))
            ids = state.due(now)
            expected = {row for row in model if deadline(row, lasting) < now}
            assert set(stored(state, ids)) == expected and len(set(ids.tolist())) == ids.size
            state.remove(ids)
            for row in expected:
                del model[row]
            if random.random() < 0.3:
                table, state = state.snapshot(), side(retracting=retracting, lasting=lasting)
                state.restore(table)
            assert stored(state, state.store.live_ids()) == model, f"seed {seed}"


def test_an_id_that_was_used_again_is_due_by_its_new_row() -> None:
    state = side(retracting=True)
    change(state, batch([(1, 0, 0)]))
    change(state, batch([(1, 0, 0)], [-1]))
    change(state, batch([(2, 50, 50)]))
    assert state.store.live_ids().tolist() == [0]
    assert state.due(20).tolist() == [] and len(state) == 1
    assert state.due(55).tolist() == [0]


def test_what_a_row_meets_last_does_not_depend_on_how_long_it_stays() -> None:
    for lasting in (None, (1, 100)):
        state = side(retracting=True, lasting=lasting)
        change(state, batch([(1, 0, 3), (2, 0, 50)]))
        assert state.last_met(np.array([0, 1])).tolist() == [7, 10]
        assert state.due(11).tolist() == ([0, 1] if lasting is None else [])


def test_the_least_deadline_is_of_each_row() -> None:
    rows = batch([(1, 0, 0), (2, 0, 100)]).rows
    assert least_deadlines(rows, DEADLINES).tolist() == [4, 10]
    assert least_deadlines(rows, DEADLINES[:1]).tolist() == [10, 10]
