"""The groups of a GROUP BY against a dict of lists: new and removed keys, TTL, snapshots by key group."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.key_groups import key_group_range
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.group_state import GroupState
from penstock.engine.state.time_to_live import LastWrites
from penstock.planner.expressions.nodes import AggregateCall, Column

CALLS = (
    AggregateCall("sum", (Column(BIGINT, True, index=1),), BIGINT),
    AggregateCall("max", (Column(BIGINT, True, index=1),), BIGINT),
    AggregateCall("count", (), BIGINT, False),
)
Key = tuple[int | None, ...]


def state(width: int = 1, writes: LastWrites | None = None) -> GroupState:
    return GroupState([pa.int64()] * width, Accumulators(CALLS, False), 128, writes)


def keys_of(keys: list[Key], width: int) -> list[pa.Array]:
    return [pa.array([key[i] for key in keys], pa.int64()) for i in range(width)]


def add(
    made: GroupState, rows: list[tuple[Key, int]], weights: list[int] | None = None, width: int = 1
) -> np.ndarray:
    slots = made.slots(keys_of([key for key, _ in rows], width), len(rows))
    column = pa.array([value for _, value in rows], pa.int64())
    batch = pa.RecordBatch.from_arrays([column, column], names=["k", "v"])
    made.mark(slots)
    made.accumulators.add(slots, batch, None if weights is None else np.array(weights))
    return slots


def read(made: GroupState, width: int = 1) -> dict[Key, tuple[int | None, ...]]:
    slots = made.keys.live_slots()
    columns = [column.to_pylist() for column in made.keys.keys(slots)]
    keys = list(zip(*columns, strict=True)) if width else [()] * slots.size
    values = zip(*[column.to_pylist() for column in made.accumulators.results(slots)], strict=True)
    return dict(zip(keys, values, strict=True))


@pytest.mark.parametrize("width", [0, 1, 2])
def test_groups_are_those_of_a_dict(width: int) -> None:
    for seed in range(25):
        random, parts = Random(seed), [state(width)]
        model: dict[Key, list[int]] = {}
        for _ in range(5):
            made = parts[0]
            rows = [
                (tuple(random.choice((None, 1, 2**62)) for _ in range(width)), random.randrange(9))
                for _ in range(random.randrange(1, 9))
            ]
            add(made, rows, width=width)
            for key, value in rows:
                model.setdefault(key, []).append(value)
            gone = [(key, values.pop()) for key, values in model.items() if random.random() < 0.4]
            if gone:
                slots = add(made, gone, [-1] * len(gone), width)
                empty = [not model[key] for key, _ in gone]
                assert (made.accumulators.last_counts(slots) == 0).tolist() == empty
                made.remove(slots[np.array(empty)])
                model = {key: values for key, values in model.items() if values}
            if random.random() < 0.4:
                parts = rescaled(made, width, random.randint(1, 3))
                assert sum(len(part) for part in parts) == len(model)
                parts = [merged(parts, width)]
            assert read(parts[0], width) == {
                key: (sum(values), max(values), len(values)) for key, values in model.items()
            }, f"seed {seed}"


def rescaled(made: GroupState, width: int, parallelism: int) -> list[GroupState]:
    """Restore a snapshot into several subtasks, each with the key groups it owns."""
    table, parts = made.snapshot(), [state(width) for _ in range(parallelism)]
    groups = table.column("key_group").to_numpy()
    assert (np.diff(groups.astype(int)) >= 0).all()
    for subtask, part in enumerate(parts):
        owned = key_group_range(128, parallelism, subtask)
        part.restore(table.filter(pa.array((groups >= owned.start) & (groups < owned.end))))
    return parts


def merged(parts: list[GroupState], width: int) -> GroupState:
    again = state(width)
    for part in parts:
        again.restore(part.snapshot())
    return again


def test_only_live_groups_among_the_asked_are_frozen() -> None:
    made = state()
    slots = add(made, [((1,), 5), ((2,), 6), ((3,), 7)])
    first = made.changes.seal()
    add(made, [((2,), 1)])
    made.remove(slots[2:])
    changed = made.changes.since(first)
    assert changed is not None and changed.tolist() == slots[1:].tolist(), "the removed one too"
    (table,) = made.freeze(changed)()
    assert table.column("k0").to_pylist() == [2]
    (table,) = made.freeze(np.array([10_000]))()
    assert table.num_rows == 0


def test_groups_expire_after_their_last_write_also_when_restored() -> None:
    clock = ManualClock()
    made = state(writes=LastWrites(1_000, clock))
    for key in (1, 2):
        slots = add(made, [((key,), 5)])
        assert made.writes is not None
        made.writes.touch(slots, made.keys.capacity)
        clock.advance(500)
    again = state(writes=LastWrites(1_000, clock))
    again.restore(made.snapshot())
    for one in (made, again):
        assert one.keys.keys(one.due(clock.wall_ms() + 50))[0].to_pylist() == [1]
    old = made.snapshot().drop_columns(["written_ms"])
    younger = state(writes=LastWrites(1_000, clock))
    younger.restore(old)
    assert younger.due(clock.wall_ms() + 999).size == 0, "without a record they are written when restored"
    assert younger.due(clock.wall_ms() + 1_010).size == 2
    assert state().due(10**15).size == 0, "without a TTL nothing expires"


def test_a_removed_group_begins_empty_when_its_key_comes_again() -> None:
    made = state()
    slots = add(made, [((1,), 5), ((2,), 6)])
    made.remove(slots[:1])
    assert add(made, [((3,), 7)]).tolist() == slots[:1].tolist(), "the slot is used again"
    assert read(made) == {(2,): (6, 6, 1), (3,): (7, 7, 1)}


@pytest.mark.parametrize("width", [1, 2])
def test_a_frozen_state_is_made_later_as_it_was(width: int) -> None:
    for seed in range(15):
        random, clock = Random(seed), ManualClock(1)
        writes = LastWrites(1000, clock) if seed % 2 else None
        made, taken = state(width, writes), []
        for step in range(12):
            clock.advance(random.choice((0, 300)))
            # more and more keys, so that arrays grow; NULL and keys that come again
            rows = [
                (tuple(random.choice((None, random.randrange(9 * step + 1))) for _ in range(width)), step)
                for _ in range(random.randrange(1, 30))
            ]
            slots = add(made, rows, width=width)
            if writes is not None:
                writes.touch(slots, made.keys.capacity)
            if random.random() < 0.4:
                live = made.keys.live_slots()
                made.remove(live if random.random() < 0.2 else live[:: random.choice((2, 5))].copy())
            if random.random() < 0.5:
                some = None if random.random() < 0.5 else np.flatnonzero(np.arange(200) % 3)
                # made now, and again at the end
                taken.append((pa.concat_tables(made.freeze(some)()), made.freeze(some)))
        for now, later in taken:
            assert pa.concat_tables(later()).equals(now)
