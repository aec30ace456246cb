"""A snapshot is what the state was at its barrier, whatever changes before it is made, and while it is. For every
kind of state; where what is saved before a change is lost, each of them is seen to fail.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT, STRING
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import KeyGroups, TrackedState
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.frozen_arrays import FrozenArrays
from penstock.engine.state.groups.group_state import GroupState
from penstock.engine.state.groups.partition_accumulators import PartitionTotals
from penstock.engine.state.groups.session_state import SessionWindowState
from penstock.engine.state.groups.window_state import WindowState
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.partitioned.partition_rows import PartitionKeys
from penstock.engine.state.partitioned.state_variables import MapVariable
from penstock.engine.state.rows.batch_buffer import BatchBuffer
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.rows.match_buffer import MatchRows
from penstock.engine.state.time_to_live import LastWrites
from penstock.engine.windowing.window_assigner import AssignedRows
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.logical.windows import HopWindow

GROUPS = KeyGroups(0, 128, 128)
ROWS = pa.schema([("v", pa.int64()), ("s", pa.string())])
V, S = Column(BIGINT, True, index=0), Column(STRING, True, index=1)
COUNT = AggregateCall("count", (), BIGINT)
Change = Callable[[Random], None]
Kind = Callable[[], tuple[TrackedState, Change]]


def some(random: Random, slots: np.ndarray) -> np.ndarray:
    """Return all slots, every second one or every third one; kernels want an array of their own."""
    return slots[:: random.randrange(1, 4)].copy()


def text(random: Random) -> str | None:
    return None if random.random() < 0.1 else "x" * random.randrange(60) + str(random.randrange(40))


def rows(random: Random, count: int) -> pa.RecordBatch:
    numbers = pa.array([random.choice((None, *range(9))) for _ in range(count)], pa.int64())
    return pa.RecordBatch.from_arrays([numbers, pa.array([text(random) for _ in range(count)])], schema=ROWS)


def numbers(random: Random, count: int) -> pa.Array:
    return pa.array([random.choice((None, *range(50))) for _ in range(count)], pa.int64())


def texts(random: Random, count: int) -> pa.Array:
    return pa.array([text(random) for _ in range(count)], pa.string())


def lists(random: Random, count: int) -> pa.Array:
    return pa.array([[random.randrange(6), random.randrange(6)] for _ in range(count)], pa.list_(pa.int64()))


MAKERS = {pa.int64(): numbers, pa.string(): texts, pa.list_(pa.int64()): lists}


def groups(*types: pa.DataType, calls: tuple[AggregateCall, ...] = (COUNT,), appends: bool = False) -> Kind:
    def kind() -> tuple[TrackedState, Change]:
        clock = ManualClock()
        state = GroupState(
            types, Accumulators((*calls, COUNT), insert_only=appends), 128, LastWrites(1000, clock)
        )

        def change(random: Random) -> None:
            clock.advance(20)
            count = random.randrange(1, 60)
            slots = state.slots([MAKERS[one](random, count) for one in types], count)
            touched = np.unique(slots)
            state.mark(touched)
            weights = None if appends else np.array([random.choice((-1, 1, 1)) for _ in range(count)])
            state.accumulators.add(slots, rows(random, count), weights)
            assert state.writes is not None
            state.writes.touch(touched, state.keys.capacity)
            state.remove(touched[state.accumulators.last_counts(touched) <= 0])
            if random.random() < 0.3:
                live = state.keys.live_slots()
                state.remove(some(random, live))

        return state, change

    return kind


def windows() -> tuple[TrackedState, Change]:
    calls = (AggregateCall("sum", (V,), BIGINT), AggregateCall("max", (S,), STRING))
    state = WindowState(HopWindow(1, 30, 10), [pa.string()], Accumulators(calls, True), GROUPS)

    def change(random: Random) -> None:
        count = random.randrange(1, 60)
        ends = np.array([random.randrange(1, 9) * 10 for _ in range(count)])
        missed = np.array([random.randrange(3) for _ in range(count)]) if random.random() < 0.5 else None
        state.add([texts(random, count)], AssignedRows(Batch(rows(random, count)), ends, None, missed))
        if random.random() < 0.4:
            slices, _, _ = state.slices()
            state.remove(slices[: random.randint(0, slices.size)])
            state.closed.us = random.randrange(90)

    return state, change


def sessions() -> tuple[TrackedState, Change]:
    calls = (AggregateCall("sum", (V,), BIGINT), AggregateCall("max", (S,), STRING))
    state = SessionWindowState([pa.int64()], Accumulators(calls, True), 128)

    def change(random: Random) -> None:
        count = random.randrange(1, 40)
        times = np.array([random.randrange(300) for _ in range(count)])
        opened = state.open([numbers(random, count)], times, times + 4)
        state.accumulators.add(opened, rows(random, count))
        if random.random() < 0.4:
            state.remove(state.ended(random.choice((100, 200, 1000))))

    return state, change


def totals() -> tuple[TrackedState, Change]:
    clock = ManualClock()
    keys, writes = KeyIndex([pa.string()]), LastWrites(1000, clock)
    counts = Accumulators((AggregateCall("sum", (V,), BIGINT, distinct=True),), insert_only=True)
    state = PartitionTotals([pa.string()], keys, counts, 128, writes)

    def change(random: Random) -> None:
        clock.advance(20)
        count = random.randrange(1, 40)
        slots = keys.lookup_or_insert([texts(random, count)])
        state.reserve()
        state.add(slots, rows(random, count), np.unique(slots))
        writes.touch(slots, keys.capacity)
        if random.random() < 0.4:
            gone = some(random, keys.live_slots())
            state.clear(gone)
            keys.remove(gone)

    return state, change


def side(*, retracting: bool) -> Kind:
    def kind() -> tuple[TrackedState, Change]:
        clock, keys = ManualClock(), KeyIndex([pa.int64()])
        state = JoinSide(
            ROWS,
            [0],
            keys,
            128,
            retracting=retracting,
            counts=True,
            writes=LastWrites(1000, clock),
            by_key=retracting,
            numbered=not retracting,
            lates=not retracting,
        )

        def change(random: Random) -> None:
            clock.advance(20)
            count = random.randrange(1, 60)
            weights = np.array([random.choice((-1, 1, 1)) for _ in range(count)]) if retracting else None
            late = not retracting and random.random() < 0.5
            batch = Batch(rows(random, count), weights, np.arange(count) if late else None)
            batch, _ = state.without_absent(state.consolidated(batch, keep=True))
            slots = keys.lookup_or_insert([batch.rows.column(0)])
            keys.remove(state.change(batch, slots, np.zeros(batch.num_rows, np.int64)))
            live = state.store.live_ids()
            third = live[::3].copy()
            state.match(third, np.ones(third.size, np.int64))
            if random.random() < 0.3:
                gone = some(random, live)
                keys.remove(state.remove(gone))

        return state, change

    return kind


def timed() -> tuple[TrackedState, Change]:
    clock, keys = ManualClock(), KeyIndex([pa.string()])
    schema = pa.schema([*ROWS, ("t", pa.int64())])
    state = MatchRows(schema, [1], 2, keys, GROUPS, 4, LastWrites(1000, clock), numbered=True)

    def change(random: Random) -> None:
        clock.advance(20)
        count = random.randrange(1, 60)
        times = pa.array([random.randrange(100) for _ in range(count)])
        columns = [*rows(random, count).columns, times]
        state.hold(pa.RecordBatch.from_arrays(columns, schema=schema))
        due = state.due(random.randrange(100))
        state.keep(due[::2].copy())
        state.forget(due[:0], due[1::2].copy())
        linked = state.linked_ids()
        second = linked[::2].copy()
        state.mark(second, np.full(second.size, random.randrange(9)))
        if random.random() < 0.4:
            state.forget(some(random, linked), linked[:0])

    return state, change


def variables() -> tuple[TrackedState, Change]:
    clock, partitions = ManualClock(), PartitionKeys.of([pa.string(), pa.int64()], 128)
    state = MapVariable(pa.string(), pa.int64(), partitions, LastWrites(1000, clock))

    def change(random: Random) -> None:
        clock.advance(20)
        count = random.randrange(1, 40)
        slots = partitions.keys.lookup_or_insert([texts(random, count), numbers(random, count)])
        state.set(slots, texts(random, count), numbers(random, count))
        if random.random() < 0.4:
            gone = some(random, partitions.keys.live_slots())
            state.clear(gone)
            partitions.keys.remove(gone)

    return state, change


def buffered() -> tuple[TrackedState, Change]:
    state = BatchBuffer(ROWS, [1], 128)

    def change(random: Random) -> None:
        state.add(Batch(rows(random, random.randrange(1, 20))))
        if random.random() < 0.2:
            state.release()

    return state, change


def pending() -> tuple[TrackedState, Change]:
    schema = pa.schema([*ROWS, ("t", pa.int64())])
    state = EventTimeBuffer(schema, [1], 2, 128)

    def change(random: Random) -> None:
        count = random.randrange(1, 20)
        times = pa.array([random.randrange(100) for _ in range(count)])
        columns = [*rows(random, count).columns, times]
        state.add(Batch(pa.RecordBatch.from_arrays(columns, schema=schema)))
        if random.random() < 0.4:
            state.due(random.randrange(100))

    return state, change


SUM = AggregateCall("sum", (V,), BIGINT)
KINDS: dict[str, Kind] = {
    "numbers": groups(pa.int64(), calls=(SUM,)),
    "texts": groups(pa.string()),
    "several columns": groups(pa.int64(), pa.string(), pa.string()),
    "nested keys": groups(pa.list_(pa.int64()), pa.int64()),
    "distinct": groups(pa.int64(), calls=(AggregateCall("count", (S,), BIGINT, distinct=True), SUM)),
    "retracted extremes": groups(pa.int64(), calls=(AggregateCall("min", (S,), STRING),)),
    "greatest text": groups(pa.string(), calls=(AggregateCall("max", (S,), STRING),), appends=True),
    "most frequent": groups(pa.int64(), calls=(AggregateCall("mode", (V,), BIGINT),)),
    "windows": windows,
    "sessions": sessions,
    "totals": totals,
    "join side, retracted": side(retracting=True),
    "join side": side(retracting=False),
    "rows in time": timed,
    "map of partitions": variables,
    "batches": buffered,
    "rows pending": pending,
}
UNCHANGING = ("batches", "rows pending")
"""Their parts never change: there is nothing to save."""


def leaks(kind: Kind, seed: int) -> bool:
    """Return whether a snapshot, whole or of what has changed, differs from what it was at its barrier."""
    random = Random(seed)
    state, change = kind()
    for _ in range(random.randrange(1, 8)):
        change(random)
    changed = None
    if seed % 2:
        number = state.changes.seal()
        for _ in range(random.randrange(1, 5)):
            change(random)
        changed = state.changes.since(number)
    at_once, later = state.freeze(changed), state.freeze(changed)
    expected = pa.concat_tables(at_once())
    made: list[pa.Table] = []
    for _ in range(random.randrange(1, 12)):
        change(random)
    maker = Thread(target=lambda: made.append(pa.concat_tables(later())))
    maker.start()
    while maker.is_alive():
        change(random)
    maker.join()
    return not made or not made[0].combine_chunks().equals(expected.combine_chunks())


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_is_the_state_at_its_barrier(kind: str) -> None:
    for seed in range(16):
        assert not leaks(KINDS[kind], seed), f"seed {seed}"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in UNCHANGING])
def test_what_is_saved_before_a_change_is_needed(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = FrozenArrays.save

    # zeros, and not what is there now: places in an arena that has been replaced may not be read
    def emptied(frozen: FrozenArrays, slots: np.ndarray) -> None:
        known = len(frozen._saved)
        saved(frozen, slots)
        for _, arrays in frozen._saved[known:]:
            for array in arrays:
                array[:] = 0

    monkeypatch.setattr(FrozenArrays, "save", emptied)
    assert any(leaks(KINDS[kind], seed) for seed in range(16))
