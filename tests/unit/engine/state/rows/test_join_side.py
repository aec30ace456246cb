"""The stored rows of one side of a join against a dict: found by key, retracted by all columns, expired,
restored.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.clock import ManualClock
from penstock.engine.api.key_groups import key_group_range
from penstock.engine.api.operator import KeyGroups
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.time_to_live import LastWrites

SCHEMA = pa.schema([("k", pa.int64()), ("s", pa.string())])
Row = tuple[int | None, str | None]
ROWS: list[Row] = [(k, s) for k in (None, 1, 2**62) for s in (None, "", "a")]


def side(*, retracting: bool = True, counts: bool = False, **more: Any) -> JoinSide:
    return JoinSide(SCHEMA, [0], KeyIndex([pa.int64()]), 128, retracting=retracting, counts=counts, **more)


def batch(rows: list[Row], weights: list[int] | None = None, behind: list[int] | None = None) -> Batch:
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(SCHEMA)]
    return Batch(
        pa.RecordBatch.from_arrays(columns, schema=SCHEMA),
        None if weights is None else np.array(weights, np.int64),
        None if behind is None else np.array(behind, np.int64),
    )


def change(state: JoinSide, one: Batch, arrived: np.ndarray | None = None) -> np.ndarray:
    one = state.consolidated(one, keep=True)
    slots = state._keys.lookup_or_insert([one.rows.column(0)], one.num_rows)
    return state.change(one, slots, np.zeros(one.num_rows, np.int64), arrived)


def stored(state: JoinSide) -> Counter[Row]:
    """All rows with their weights, found by way of their keys."""
    found: Counter[Row] = Counter()
    _, ids = state.links.expand(state._keys.live_slots())
    assert sorted(ids.tolist()) == state.store.live_ids().tolist()
    for row, weight in zip(state.store.take(ids).to_pylist(), state.store.weights(ids).tolist(), strict=True):
        found[row["k"], row["s"]] += weight
    return found


@pytest.mark.parametrize("retracting", [False, True])
def test_rows_are_those_of_a_counter(retracting: bool) -> None:
    for seed in range(20):
        random, state, model = Random(seed), side(retracting=retracting), Counter[Row]()
        for _ in range(6):
            rows = random.choices(ROWS, k=random.randrange(1, 8))
            weights = (
                [random.choice((1, 2, -1)) for _ in rows] if retracting and random.random() < 0.7 else None
            )
            for piece in (
                [slice(None)] if random.random() < 0.5 else [slice(i, i + 1) for i in range(len(rows))]
            ):
                emptied = change(state, batch(rows[piece], None if weights is None else weights[piece]))
                for row, weight in zip(rows[piece], (weights or [1] * len(rows))[piece], strict=True):
                    model[row] += weight
                keys = {row[0] for row, count in model.items() if count}
                assert not keys & set(state._keys.keys(emptied)[0].to_pylist()), "these keys have rows left"
                state._keys.remove(emptied)
            if random.random() < 0.3:
                table, state = state.snapshot(), side(retracting=retracting)
                state.restore(table.slice(0, 2))
                state.restore(table.slice(2))
            assert dict(stored(state)) == {row: count for row, count in model.items() if count}, (
                f"seed {seed}"
            )
        if retracting:
            assert len(state) == len(state._identity or ()), "each row is there once"


def test_rows_that_cancel_in_a_batch_are_not_stored() -> None:
    state = side()
    one = state.consolidated(batch([(1, "a"), (1, "b"), (1, "a")], [1, 2, -1]), keep=True)
    assert one.rows.to_pylist() == [{"k": 1, "s": "b"}] and one.weights is not None
    assert one.weights.tolist() == [2]
    change(state, one)
    assert stored(state) == {(1, "b"): 2}
    assert state._identity is not None and len(state._identity) == 1, "only of the row that is stored"


def test_consolidated_rows_stay_in_the_order_they_came() -> None:
    one = side().consolidated(
        batch([(2, "b"), (1, "a"), (2, "b"), (1, "c")], [1, 1, 1, -1], [5, 6, 7, 8]), keep=False
    )
    assert [row["s"] for row in one.rows.to_pylist()] == ["b", "a", "c"]
    assert one.behind is not None and one.behind.tolist() == [5, 6, 8]


def test_retractions_of_absent_rows_are_counted_and_left_out() -> None:
    state = side()
    change(state, batch([(1, "a"), (1, "b")], [2, 1]))
    rows = batch([(1, "a"), (1, "b"), (1, "c"), (2, "d")], [-5, -1, -2, 1])
    left, absent = state.without_absent(rows)
    assert absent == 3 + 2 and left.rows.column(1).to_pylist() == ["a", "b", "d"]
    assert left.weights is not None and left.weights.tolist() == [-2, -1, 1]
    same, absent = state.without_absent(batch([(1, "a")], [-2]))
    assert absent == 0 and same.num_rows == 1


def test_match_counts_follow_their_rows_through_a_snapshot() -> None:
    state, again = side(counts=True), side(counts=True)
    change(state, batch(ROWS[3:6]))
    ids = state.ids_of(batch(ROWS[3:6]))
    before, after = state.match(ids, np.array([2, 0, 5]))
    assert (before.tolist(), after.tolist()) == ([0, 0, 0], [2, 0, 5])
    assert state.match(ids[:1], np.array([-2]))[1].tolist() == [0]
    again.restore(state.snapshot())
    assert again.matches[again.ids_of(batch(ROWS[3:6]))].tolist() == [0, 0, 5]


def test_late_rows_remember_what_they_were_behind() -> None:
    state = side(retracting=False, lates=True)
    change(state, batch(ROWS[:2]))
    assert state.behind(np.arange(2)) is None, "all on time: there is no array"
    change(state, batch(ROWS[2:4], behind=[7, 9]))
    for one in (state, side(retracting=False, lates=True)):
        if one is not state:
            one.restore(state.snapshot())
        ids = one.store.live_ids()
        found = one.behind(ids)
        assert found is not None
        by_row = dict(zip(map(str, one.store.take(ids).to_pylist()), found.tolist(), strict=True))
        assert sorted(by_row.values()) == [MIN_WATERMARK_US] * 2 + [7, 9]
        assert by_row[str({"k": None, "s": "a"})] == 7


@pytest.mark.parametrize("by_key", [False, True])
def test_rows_expire_by_their_last_write_or_that_of_their_key(by_key: bool) -> None:
    clock = ManualClock()

    def made() -> JoinSide:
        return side(writes=LastWrites(1_000, clock), by_key=by_key)

    state = made()
    change(state, batch([(1, "a"), (2, "b")]))
    clock.advance(500)
    change(state, batch([(1, "c")]))
    for one in (state, made()):
        if one is not state:
            one.restore(state.snapshot())
        due = one.due(clock.wall_ms() + 505)
        rows = one.links.expand(due)[1] if by_key else due
        found = {row["s"] for row in one.store.take(rows).to_pylist()}
        assert found == ({"b"} if by_key else {"a", "b"}), "a key is as young as its youngest row"


def test_a_copy_of_all_rows_writes_the_key_groups_of_its_subtask() -> None:
    copies = []
    for subtask in range(3):
        state = side()
        state.copy_of(key_group_range(128, 3, subtask))
        change(state, batch([(k, "a") for k in range(40)]))
        copies.append(state)
    tables = [state.snapshot() for state in copies]
    keys = [key for table in tables for key in table.column("c0").to_pylist()]
    assert sorted(keys) == list(range(40)) and all(table.num_rows for table in tables)
    again = side()
    again.copy_of(KeyGroups(0, 1, 128))
    for table in tables:
        again.restore(table)
    assert len(again) == 40, "all rows are restored, whatever the subtask owns"


def test_keys_are_read_in_pieces_whose_rows_fit_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    state = side(retracting=False)
    change(state, batch([(k, "x" * 50) for k in (1, 2, 3) for _ in range(4)]))
    slots = state._keys.live_slots()
    assert [piece.tolist() for piece in state.at_once(slots)] == [slots.tolist()]
    monkeypatch.setattr(LIMITS, "chunk_bytes", 300)
    assert [piece.tolist() for piece in state.at_once(slots)] == [[slot] for slot in slots.tolist()]


def test_a_cleared_side_is_empty_and_no_earlier_snapshot_is_its_base() -> None:
    state = side()
    change(state, batch(ROWS))
    first = state.changes.seal()
    state.clear()
    assert len(state) == 0 and state.changes.since(first) is None
    change(state, batch(ROWS[:1]))
    assert stored(state) == {ROWS[0]: 1}
