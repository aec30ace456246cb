"""Sessions that never close, against those of all rows sorted anew after each change."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.groups.updated_sessions import Bounds, UpdatedSessions
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.time_to_live import LastWrites

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us")), ("v", pa.int64())])
GAP = 5
Row = tuple[int | None, int, int]


def state(writes: LastWrites | None = None) -> UpdatedSessions:
    return UpdatedSessions(SCHEMA, [0], 1, GAP, KeyIndex([pa.int64()]), 128, writes)


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    return list(zip(*(column.cast(pa.int64()).to_pylist() for column in batch.columns), strict=True))


class Shown:
    """The rows with the bounds of their sessions that the changes of a state add up to."""

    def __init__(self) -> None:
        self.sums: Counter[tuple[Row, int, int]] = Counter()

    def take(self, made: UpdatedSessions, rows: list[Row], weights: list[int] | None) -> None:
        columns = [pa.array([row[i] for row in rows], pa.int64()).cast(SCHEMA.types[i]) for i in range(3)]
        batch = Batch(
            pa.RecordBatch.from_arrays(columns, schema=SCHEMA), None if weights is None else np.array(weights)
        )
        batch = made.consolidated(batch, keep=True)
        if not batch.num_rows:
            return
        slots = made._keys.lookup_or_insert([batch.rows.column(0)], batch.num_rows)
        batch, slots = made.one_each(batch, slots)
        changes = made.changes_of(batch, slots)
        stored = rows_of(made.store.take(changes.ids))
        came = [rows_of(batch.rows)[place] for place in changes.places.tolist()]
        self._add(stored, changes.before, -1)
        self._add(stored, changes.after, 1)
        self._add(came, changes.coming, 1)
        made._keys.remove(made.apply(batch, slots, changes))

    def _add(self, rows: list[Row], bounds: Bounds, sign: int) -> None:
        columns = bounds.starts.tolist(), bounds.ends.tolist(), bounds.weights.tolist()
        for row, start, end, weight in zip(rows, *columns, strict=True):
            if weight:
                self.sums[row, start, end] += sign * weight
                assert self.sums[row, start, end] >= 0

    @property
    def rows(self) -> Counter[tuple[Row, int, int]]:
        return +self.sums


def expected(model: Counter[Row]) -> Counter[tuple[Row, int, int]]:
    found: Counter[tuple[Row, int, int]] = Counter()
    for key in {row[0] for row in model}:
        mine = sorted((row for row in model if row[0] == key and model[row] > 0), key=lambda row: row[1:])
        part: list[Row] = []
        for row in [*mine, None]:
            if part and (row is None or row[1] - part[-1][1] > GAP):
                found.update({(one, part[0][1], part[-1][1] + GAP): model[one] for one in part})
                part = []
            part += [] if row is None else [row]
    return found


@pytest.mark.parametrize("most", [1, 4, 60], ids=["one by one", "some", "many"])
def test_sessions_are_those_of_all_rows(most: int) -> None:
    for seed in range(3):
        dice, made, shown = Random(seed), state(), Shown()
        model: Counter[Row] = Counter()
        wide = dice.choice((20, 60, 200))
        for step in range(200 // most + 20):
            rows, weights = [], []
            for _ in range(dice.randint(1, most)):
                there = [row for row in model if model[row] > 0]
                # retractions, also of rows that have not come
                if there and dice.random() < 0.5:
                    rows.append(dice.choice(there))
                    weights.append(-1)
                else:
                    rows.append((dice.choice((None, 1, 2)), dice.randint(-wide, wide), dice.randint(0, 2)))
                    weights.append(dice.choice((1, 1, 1, 2, -1)))
            only_inserts = all(weight == 1 for weight in weights)
            model.update(dict.fromkeys(rows, 0))
            for row, weight in zip(rows, weights, strict=True):
                model[row] += weight
            shown.take(made, rows, None if only_inserts else weights)
            assert shown.rows == expected(model)
            if step % 17 == 16:
                earlier, made = made, state()
                made.restore(earlier.snapshot())
                assert len(made) == len(earlier)


def test_keys_that_expire_leave_nothing() -> None:
    clock = ManualClock(1_000)
    made, shown = state(LastWrites(100, clock)), Shown()
    shown.take(made, [(1, 0, 0), (1, 4, 0), (2, 0, 0)], None)
    clock.advance(60)
    shown.take(made, [(2, 3, 0)], None)
    clock.advance(60)
    due = made.due(clock.wall_ms())
    assert made._keys.keys(due)[0].to_pylist() == [1]
    made.forget_keys(due)
    made._keys.remove(due)
    assert len(made) == 2
    again = Shown()
    again.take(made, [(1, 9, 0), (2, 20, 0)], None)
    assert again.rows == {((1, 9, 0), 9, 14): 1, ((2, 20, 0), 20, 25): 1}
