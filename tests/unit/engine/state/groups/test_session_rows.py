"""Sessions that are computed from their rows, so that a retraction may split one."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa

from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.groups.session_rows import SessionRows, Sessions
from penstock.engine.state.index.key_index import KeyIndex

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us")), ("v", pa.int64())])
GAP = 5
Row = tuple[int | None, int, int]
Session = tuple[int | None, int, int, tuple[Row, ...]]


def state() -> SessionRows:
    return SessionRows(SCHEMA, [0], 1, GAP, KeyIndex([pa.int64()]), 128)


def change(made: SessionRows, rows: list[Row], weights: list[int]) -> None:
    columns = [pa.array([row[i] for row in rows], pa.int64()).cast(SCHEMA.types[i]) for i in range(3)]
    batch = Batch(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), np.array(weights, np.int64))
    batch = made.consolidated(batch, keep=True)
    slots = made._keys.lookup_or_insert([batch.rows.column(0)], batch.num_rows)
    made._keys.remove(made.change(batch, slots, np.zeros(batch.num_rows, np.int64)))


def read(made: SessionRows, sessions: Sessions) -> list[Session]:
    keys = made._keys.keys(sessions.key_slots)[0].to_pylist()
    rows = [column.cast(pa.int64()).to_pylist() for column in made.store.take(sessions.ids).columns]
    of = sessions.of.tolist()
    assert of == sorted(of) and len(sessions) == len(keys)
    members: list[list[Row]] = [[] for _ in keys]
    for session, row in zip(of, zip(*rows, strict=True), strict=True):
        members[session].append(row)
    bounds = zip(keys, sessions.starts.tolist(), sessions.ends.tolist(), strict=True)
    assert all([row[1] for row in each] == sorted(row[1] for row in each) for each in members)
    return [(*one, tuple(sorted(each))) for one, each in zip(bounds, members, strict=True)]


def expected(model: Counter[Row]) -> list[Session]:
    """Sessions of the rows that are there, by end, then start."""
    found: list[Session] = []
    for key in {row[0] for row in model}:
        mine = sorted(
            (row for row, count in model.items() if row[0] == key and count > 0), key=lambda row: row[1:]
        )
        part: list[Row] = []
        for row in mine:
            if part and row[1] > max(one[1] for one in part) + GAP:
                found.append(session(key, part))
                part = []
            part.append(row)
        if part:
            found.append(session(key, part))
    return sorted(found, key=lambda one: (one[2], one[1], repr(one[0])))


def session(key: int | None, rows: list[Row]) -> Session:
    return key, min(row[1] for row in rows), max(row[1] for row in rows) + GAP, tuple(sorted(rows))


def in_order(sessions: list[Session]) -> list[Session]:
    """Sessions of one end and start go by the age of their key, which the reference does not know."""
    return sorted(sessions, key=lambda one: (one[2], one[1], repr(one[0])))


def test_sessions_are_those_of_the_rows_that_are_left() -> None:
    for seed in range(30):
        random, made, model = Random(seed), state(), Counter[Row]()
        for _ in range(6):
            rows: list[Row] = [
                (random.choice((None, 1, 2)), random.randrange(40), random.randrange(2))
                for _ in range(random.randrange(1, 8))
            ]
            weights = [random.choice((1, 1, 2, -1)) for _ in rows]
            for row, weight in zip(rows, weights, strict=True):
                model[row] += weight
            gone = [row for row, count in model.items() if count > 0 and random.random() < 0.3]
            change(made, rows + gone, weights + [-model[row] for row in gone])
            for row in gone:
                model[row] = 0
            model = Counter({row: count for row, count in model.items() if count})
            found = read(made, made.of_slots(made._keys.live_slots()))
            assert [one[1:3][::-1] for one in found] == sorted(one[1:3][::-1] for one in found)
            assert in_order(found) == expected(model), f"seed {seed}"
            time = random.randrange(25)
            ended = made.ended(time)
            over = [one for one in expected(model) if one[2] < time]
            assert in_order(read(made, ended)) == over
            if random.random() < 0.5:
                made.forget(ended, time)
                members = {row for one in over for row in one[3]}
                model = Counter(
                    {
                        row: count
                        for row, count in model.items()
                        if row not in members and not (count < 0 and row[1] + GAP < time)
                    }
                )
            if random.random() < 0.3:
                table, made = made.snapshot(), state()
                made.restore(table)
            assert len(made) == len(model) and len(made._keys) == len({row[0] for row in model})


def test_a_retraction_splits_a_session() -> None:
    made = state()
    change(made, [(1, 0, 0), (1, 4, 0), (1, 8, 0)], [1, 1, 1])
    whole = made.of_slots(np.array([0]))
    assert (whole.starts.tolist(), whole.ends.tolist()) == ([0], [13])
    change(made, [(1, 4, 0)], [-1])
    parts = made.of_slots(np.array([0]))
    assert (parts.starts.tolist(), parts.ends.tolist()) == ([0, 8], [5, 13])


def test_a_filter_keeps_the_rows_of_its_sessions() -> None:
    made = state()
    change(made, [(1, 0, 0), (1, 20, 0), (1, 22, 0), (1, 50, 0)], [1, 1, 1, 1])
    sessions = made.of_slots(np.array([0])).filter(np.array([False, True, True]))
    assert sessions.starts.tolist() == [20, 50] and sessions.of.tolist() == [0, 0, 1]
    times = made.store.take(sessions.ids).column(1).cast(pa.int64()).to_pylist()
    assert times == [20, 22, 50]
