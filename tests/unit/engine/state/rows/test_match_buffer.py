"""The rows of MATCH_RECOGNIZE: each has a mark that survives its checkpoint."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa

from penstock.engine.api.operator import KeyGroups
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.match_buffer import BEFORE, MatchRows

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us"))])
TRANSITIONS = 4


def state() -> MatchRows:
    return MatchRows(SCHEMA, [0], 1, KeyIndex([pa.int64()]), KeyGroups(0, 128, 128), TRANSITIONS)


def passed(made: MatchRows, keys: list[int]) -> np.ndarray:
    """Add rows that have passed; return their ids."""
    known = set(made.linked_ids().tolist())
    times = pa.array(range(len(keys)), pa.int64()).cast(pa.timestamp("us"))
    made.link(pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), times], schema=SCHEMA))
    return np.array([at for at in made.linked_ids().tolist() if at not in known])


def marked(made: MatchRows) -> list[tuple[int, int]]:
    ids = made.linked_ids()
    keys = made.store.take(ids).column(0).to_pylist()
    return sorted(zip(keys, made.marks(ids).tolist(), strict=True))


def test_marks_follow_their_rows_through_checkpoints() -> None:
    for seed in range(30):
        random, made = Random(seed), state()
        model: dict[int, int] = {}
        for first in range(0, 200, 40):
            keys = list(range(first, first + random.randrange(1, 40)))
            ids = passed(made, keys)
            marks = [random.choice((BEFORE, *range(3 * TRANSITIONS))) for _ in keys]
            made.mark(ids, np.array(marks))
            model |= dict(zip(keys, marks, strict=True))
            gone = made.linked_ids()[: random.randrange(5)]
            for key in made.store.take(gone).column(0).to_pylist():
                del model[key]
            made.forget(gone, gone[:0])
            if random.random() < 0.4:
                table, made = made.snapshot(), state()
                assert table.schema.names == ["key_group", "waits", "passed_us", "c0", "c1", "mark"]
                made.restore(table)
            assert marked(made) == sorted(model.items()), f"seed {seed}"


def test_the_first_rows_of_unfinished_matches_are_found() -> None:
    """The number of a row in its match is its mark over the transitions: 0 begins one."""
    made = state()
    ids = passed(made, list(range(6)))
    made.mark(ids, np.array([BEFORE, 0, TRANSITIONS - 1, TRANSITIONS, 2, 3 * TRANSITIONS]))
    assert made.begun().tolist() == ids[[1, 2, 4]].tolist()


def test_only_a_mark_that_changed_is_a_change_of_its_row() -> None:
    made = state()
    ids = passed(made, [1, 2, 3])
    made.mark(ids, np.array([BEFORE, 5, 6]))
    first = made.changes.seal()
    made.mark(ids, np.array([BEFORE, 5, 7]))
    changed = made.changes.since(first)
    assert changed is not None and changed.tolist() == ids[[2]].tolist()


def test_waiting_rows_have_no_mark_until_they_have_passed() -> None:
    made = state()
    times = pa.array([5, 50], pa.int64()).cast(pa.timestamp("us"))
    made.hold(pa.RecordBatch.from_arrays([pa.array([1, 2]), times], schema=SCHEMA))
    assert made.begun().tolist() == [] and made.linked_ids().tolist() == []
    made.keep(made.due(10))
    assert len(made.linked_ids()) == 1
