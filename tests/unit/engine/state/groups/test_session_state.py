"""Open sessions with their aggregates, against a list of intervals that is merged again for each row."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.session_state import SessionWindowState
from penstock.planner.expressions.nodes import AggregateCall, Column

CALLS = (AggregateCall("sum", (Column(BIGINT, True, index=0),), BIGINT), AggregateCall("count", (), BIGINT))
GAP = 5
Key = int | None
Interval = tuple[Key, int, int, int, int]
"""Key, start, end, sum, count."""


def state() -> SessionWindowState:
    return SessionWindowState([pa.int64()], Accumulators(CALLS, True), 128)


def add(made: SessionWindowState, rows: list[tuple[Key, int, int]]) -> np.ndarray:
    """Add rows of key, time and value."""
    times = np.array([time for _, time, _ in rows], np.int64)
    sessions = made.open([pa.array([key for key, _, _ in rows], pa.int64())], times, times + GAP)
    aggregate(made, sessions, [value for *_, value in rows])
    return sessions


def aggregate(made: SessionWindowState, sessions: np.ndarray, values: list[int]) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["v"])
    made.accumulators.add(sessions, batch)


def read(made: SessionWindowState, sessions: np.ndarray | None = None) -> list[Interval]:
    sessions = made.ended(2**62) if sessions is None else sessions
    starts, ends = made.bounds(sessions)
    results = [column.to_pylist() for column in made.accumulators.results(sessions)]
    keys = made.key_columns(sessions)[0].to_pylist()
    return list(zip(keys, starts.tolist(), ends.tolist(), *results, strict=True))


def merge(model: list[Interval], row: tuple[Key, int, int]) -> list[Interval]:
    """Add a row to a list of sessions; those that it touches become one."""
    key, time, value = row
    united = (key, time, time + GAP, value, 1)
    apart = []
    for one in sorted(model, key=lambda each: each[1:]):
        if one[0] == key and one[1] <= united[2] and united[1] <= one[2]:
            starts, ends = (one[1], united[1]), (one[2], united[2])
            united = (key, min(starts), max(ends), one[3] + united[3], one[4] + united[4])
        else:
            apart.append(one)
    return [*apart, united]


def in_order(model: list[Interval]) -> list[str]:
    return sorted(map(repr, model))


def test_sessions_are_those_of_a_list_of_intervals() -> None:
    for seed in range(40):
        random, made = Random(seed), state()
        model: list[Interval] = []
        for _ in range(6):
            rows = [
                (random.choice((None, 1, 2)), random.randrange(60), random.randrange(9))
                for _ in range(random.randrange(1, 7))
            ]
            for piece in [rows] if random.random() < 0.5 else [[row] for row in rows]:
                add(made, piece)
            for row in rows:
                model = merge(model, row)
            if random.random() < 0.3:
                time = random.randrange(40)
                ended = made.ended(time)
                assert in_order(read(made, ended)) == in_order([one for one in model if one[2] < time])
                assert [one[1:3] for one in read(made, ended)] == sorted(
                    (one[1:3] for one in read(made, ended)), key=lambda bounds: bounds[::-1]
                )
                made.remove(ended)
                model = [one for one in model if one[2] >= time]
            if random.random() < 0.3:
                table, made = made.snapshot(), state()
                made.restore(table.slice(0, 2))
                made.restore(table.slice(2))
            assert in_order(read(made)) == in_order(model) and len(made) == len(model), f"seed {seed}"
            assert len(made.keys) == len({one[0] for one in model}), "a key goes with its last session"


@pytest.mark.parametrize("times", ["ascending", "descending", "shuffled"])
def test_rows_of_one_key_in_any_order(times: str) -> None:
    """Rows far from the order of their times are sorted as a whole."""
    rows = [(key, 3 * time + 10 * (time // 20), 1) for time in range(200) for key in range(3)]
    if times == "descending":
        rows.reverse()
    elif times == "shuffled":
        Random(7).shuffle(rows)
    made = state()
    add(made, rows[:30])
    add(made, rows[30:])
    model: list[Interval] = []
    for row in rows:
        model = merge(model, row)
    assert in_order(read(made)) == in_order(model) and len(model) == 30


def test_a_session_that_begins_where_another_ends_touches_it() -> None:
    made = state()
    assert len(set(add(made, [(1, 0, 1), (1, GAP, 1)]).tolist())) == 1
    assert len(set(add(made, [(2, 0, 1), (2, GAP + 1, 1)]).tolist())) == 2
    assert read(made)[:1] == [(2, 0, GAP, 1, 1)]


def test_a_row_between_two_sessions_makes_them_one() -> None:
    made = state()
    add(made, [(1, 0, 1), (1, 10, 2)])
    (session,) = set(add(made, [(1, 5, 4)]).tolist())
    assert read(made) == [(1, 0, 15, 7, 3)] and session in made.of_keys([pa.array([1])], 1).tolist()
    assert made.of_keys([pa.array([1, 1, 3])], 3).tolist() == [session], "each once, none of unknown keys"


def test_many_sessions_grow_past_the_first_capacity() -> None:
    made = state()
    add(made, [(key, key, key) for key in range(500)])
    assert read(made) == [(key, key, key + GAP, key, 1) for key in range(500)]


def test_late_rows_join_only_sessions_that_had_not_ended_for_them() -> None:
    made = state()
    add(made, [(1, 10, 1)])
    rows = [(1, 12, 20), (1, 14, 14), (2, 3, 30), (2, 3, 5), (1, 40, 20)]
    keys = [pa.array([key for key, *_ in rows])]
    times, turns = (np.array([row[k] for row in rows]) for k in (1, 2))
    sessions = made.open_in_turn(keys, times, GAP, turns)
    # (1, 12): behind 20, where the session up to 15 (with the row of 14: up to 19) had ended
    # (2, 3): a window up to 8 had ended by 30, but not by 5
    assert (sessions >= 0).tolist() == [False, True, False, True, True]
    accepted = sessions >= 0
    aggregate(made, sessions[accepted], [1] * int(accepted.sum()))
    assert in_order(read(made)) == in_order([(1, 10, 19, 2, 2), (2, 3, 8, 1, 1), (1, 40, 45, 1, 1)])


def test_keys_of_rows_that_no_session_accepted_are_forgotten() -> None:
    made = state()
    sessions = made.open_in_turn([pa.array([7])], np.array([0]), GAP, np.array([100]))
    assert sessions.tolist() == [-1] and len(made.keys) == 0 and len(made) == 0


def test_changed_sessions_are_frozen_alone() -> None:
    made = state()
    add(made, [(1, 0, 1), (2, 0, 1), (3, 0, 1)])
    first = made.changes.seal()
    changed_sessions = add(made, [(2, 3, 5)])
    made.remove(made.of_keys([pa.array([3])], 1))
    changed = made.changes.since(first)
    assert changed is not None and changed.size == 2 and changed_sessions[0] in changed
    (table,) = made.freeze(changed)()
    assert table.column("k0").to_pylist() == [2] and table.column("end").to_pylist() == [8]
