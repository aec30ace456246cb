"""Rows that wait for the watermark, and rows behind the watermark of their split, against lists."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer, RowsBehind, less
from penstock.engine.state.state_snapshot import SLOT

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us"))])
Row = tuple[int, int | None]


def batch(rows: list[Row], weights: list[int] | None = None, behind: list[int] | None = None) -> Batch:
    times = pa.array([time for _, time in rows], pa.int64()).cast(pa.timestamp("us"))
    return Batch(
        pa.RecordBatch.from_arrays([pa.array([k for k, _ in rows], pa.int64()), times], schema=SCHEMA),
        None if weights is None else np.array(weights, np.int64),
        None if behind is None else np.array(behind, np.int64),
    )


def counted(batches: list[Batch]) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for one in batches:
        times = one.rows.column(1).cast(pa.int64()).to_pylist()
        weights = [1] * one.num_rows if one.weights is None else one.weights.tolist()
        for k, time, weight in zip(one.rows.column(0).to_pylist(), times, weights, strict=True):
            found[k, time] += weight
    return found


def buffer() -> EventTimeBuffer:
    return EventTimeBuffer(SCHEMA, [0], 1, 128)


def net(model: Counter[Row]) -> dict[Row, int]:
    return {row: count for row, count in model.items() if count}


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_due_once_the_watermark_has_passed_them(weighted: bool) -> None:
    for seed in range(20):
        random, state, waiting = Random(seed), buffer(), Counter()
        for watermark in sorted(random.choices(range(-5, 40), k=8)):
            for _ in range(random.choice((0, 1, 3, 40))):  # more than 32 batches are merged
                rows: list[Row] = [(random.randrange(3), random.randrange(-9, 45)) for _ in range(3)]
                weights = [random.choice((1, 2, -1)) for _ in rows] if weighted else None
                state.add(batch(rows, weights))
                for row, weight in zip(rows, weights or [1] * 3, strict=True):
                    waiting[row] += weight
            due = {row: n for row, n in waiting.items() if row[1] is not None and row[1] < watermark}
            waiting = Counter({row: n for row, n in waiting.items() if row not in due})
            found = state.due(watermark)
            assert len(found) <= 1 and dict(counted(found)) == net(Counter(due)), f"seed {seed}"
            if random.random() < 0.3:
                table, state = state.snapshot(), buffer()
                state.restore(table)
        assert net(counted(state.release())) == net(waiting) and len(state) == 0


@pytest.mark.parametrize("limit", [100, 2**31 - 1], ids=["several arrays", "one array"])
def test_a_row_has_one_number_as_long_as_it_waits(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "array_bytes", limit)
    state = buffer()
    state.add(batch([(0, 5), (1, 50), (2, 60)]))
    first = state.changes.seal()
    state.due(10)
    for k in range(3, 40):
        state.add(batch([(k, 70)]))
    (table,) = state.freeze(None)()
    numbers = dict(zip(table.column("c0").to_pylist(), table.column(SLOT).to_pylist(), strict=True))
    assert numbers == {k: k for k in range(1, 40)}, "after a split and a merge of batches"
    changed = state.changes.since(first)
    assert changed is not None and changed.tolist() == [0, *range(3, 40)]
    (table,) = state.freeze(changed)()
    assert sorted(table.column("c0").to_pylist()) == list(range(3, 40))


def test_rows_are_numbered_anew_where_their_numbers_are_exhausted() -> None:
    state = buffer()
    state.add(batch([(0, 5)]))
    first = state.changes.seal()
    state.changes._next = (1 << 32) - 1
    state.add(batch([(1, 6), (2, 7)]))
    (table,) = state.freeze(None)()
    assert sorted(zip(table.column(SLOT).to_pylist(), table.column("c0").to_pylist(), strict=True)) == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]
    assert state.changes.since(first) is None, "the next snapshot is whole"


def test_rows_that_wait_for_time_are_not_spilled() -> None:
    state = buffer()
    state.add(batch([(0, 5)] * 1_000))
    assert state.spillable_bytes() == 0


def behind() -> RowsBehind:
    return RowsBehind(SCHEMA, [0], 1, 128)


def test_a_row_behind_waits_until_the_operator_is_past_what_it_was_behind() -> None:
    state, metrics = behind(), OperatorMetrics()
    rows = batch([(0, 30), (1, 5), (2, 15), (3, None)], behind=[0, 20, 10, 0])
    on_time = state.timely(rows, 0, 0, metrics)
    assert counted([on_time]) == {(0, 30): 1, (2, 15): 1} and len(state) == 1
    assert metrics.counters == {"null_time_rows": 1}
    assert state.turns(20) is None, "a row before 20 may still come"
    turns = state.turns(21)
    assert turns is not None and counted([turns.batch]) == {(1, 5): 1} and turns.reached.tolist() == [20]
    assert turns.batch.rows.schema == SCHEMA


@pytest.mark.parametrize(("lateness", "waits"), [(0, [0, 1]), (3, [0]), (20, [])])
def test_lateness_moves_the_watermark_back(lateness: int, waits: list[int]) -> None:
    state = behind()
    on_time = state.timely(batch([(0, 5), (1, 8), (2, 10)]), 10, lateness, OperatorMetrics())
    assert sorted(on_time.rows.column(0).to_pylist()) == sorted({0, 1, 2} - set(waits))
    assert len(state) == len(waits)


def test_turns_come_by_what_rows_were_behind() -> None:
    state = behind()
    rows = batch([(0, 1), (1, 1), (2, 1), (3, 1)], [1, 2, -1, 1], behind=[9, 3, 7, 3])
    assert not state.timely(rows, 2, 0, OperatorMetrics()).num_rows
    table, again = state.snapshot(), behind()
    again.restore(table)
    turns = again.turns(100)
    assert turns is not None and turns.reached.tolist() == [3, 3, 7, 9]
    assert sorted(turns.batch.rows.column(0).to_pylist()[:2]) == [1, 3]
    later = turns.of(np.array([2, 3]))
    assert later.batch.rows.column(0).to_pylist() == [2, 0] and later.reached.tolist() == [7, 9]
    assert later.batch.weights is not None and later.batch.weights.tolist() == [-1, 1]


def test_rows_of_one_turn_that_fit_no_batch_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    state = behind()
    for k in range(20):
        state.timely(batch([(k, 1)], behind=[5]), 0, 0, OperatorMetrics())
    monkeypatch.setattr(LIMITS, "array_bytes", 100)
    with pytest.raises(TooLarge):
        state.turns(6)


def test_no_watermark_goes_below_the_least_one() -> None:
    times = np.array([MIN_WATERMARK_US, MIN_WATERMARK_US + 3, 0, 50])
    assert less(times, 5).tolist() == [MIN_WATERMARK_US, MIN_WATERMARK_US, -5, 45]
    assert less(times, 0).tolist() == times.tolist()
