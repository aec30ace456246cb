"""Rows, groups of peers and aggregates that have passed of each OVER partition, against a dict; and when idle
partitions expire.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.operator import KeyGroups
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.partition_accumulators import PartitionLives, PartitionTotals
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from penstock.engine.state.time_to_live import LastWrites
from penstock.planner.expressions.nodes import AggregateCall, Column

SCHEMA = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us"))])
CALLS = (AggregateCall("max", (Column(BIGINT, True, index=0),), BIGINT), AggregateCall("count", (), BIGINT))


def totals(keys: KeyIndex, writes: LastWrites | None = None) -> PartitionTotals:
    return PartitionTotals([pa.int64()], keys, Accumulators(CALLS, True), 128, writes)


def rows(keys: list[int | None], times_us: list[int] | None = None) -> pa.RecordBatch:
    times = pa.array(times_us or [0] * len(keys), pa.int64()).cast(pa.timestamp("us"))
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int64()), times], schema=SCHEMA)


def add(state: PartitionTotals, index: KeyIndex, batch: pa.RecordBatch, groups: int) -> np.ndarray:
    slots = index.lookup_or_insert([batch.column(0)])
    state.reserve()
    state.add(slots, batch, slots[:groups])
    return slots


def read(state: PartitionTotals, index: KeyIndex) -> dict[int | None, tuple[int, ...]]:
    slots = np.flatnonzero(state.rows)
    columns = [column.to_pylist() for column in state.accumulators.results(slots)]
    keys = index.keys(slots)[0].to_pylist()
    counts = zip(state.rows[slots].tolist(), state.groups[slots].tolist(), *columns, strict=True)
    return dict(zip(keys, counts, strict=True))


def test_totals_are_those_of_a_dict() -> None:
    for seed in range(30):
        random, index = Random(seed), KeyIndex([pa.int64()])
        state, model = totals(index), {}
        for _ in range(6):
            keys = [random.choice((None, 1, 2, *range(10, 90))) for _ in range(random.randrange(1, 40))]
            groups = random.randint(0, len(keys))
            slots = add(state, index, rows(keys), groups)
            for position, key in enumerate(keys):
                count, peers, _, seen = model.get(key, (0, 0, None, 0))
                model[key] = (count + 1, peers + (position < groups), key, seen + 1)
            state.count(slots[:1])
            model[keys[0]] = (model[keys[0]][0] + 1, *model[keys[0]][1:])
            if random.random() < 0.4:
                gone = random.sample(list(model), random.randint(0, len(model)))
                state.clear(index.lookup([pa.array(gone, pa.int64())]))
                for key in gone:
                    del model[key]
            if random.random() < 0.4:
                table, index = state.snapshot(), KeyIndex([pa.int64()])
                state = totals(index)
                state.restore(table.slice(0, 3))
                state.restore(table.slice(3))
            assert read(state, index) == model and len(state) == len(model), f"seed {seed}"


def test_a_snapshot_has_the_slots_with_rows_among_the_asked() -> None:
    index = KeyIndex([pa.int64()])
    state = totals(index)
    slots = add(state, index, rows([1, 2, 3]), 1)
    first = state.changes.seal()
    state.count(slots[1:2])
    state.clear(slots[2:])
    changed = state.changes.since(first)
    assert changed is not None and changed.tolist() == slots[1:].tolist()
    index.lookup_or_insert(
        [pa.array(range(1_000))]
    )  # slots of others that these totals have not yet reserved
    (table,) = state.freeze(np.append(changed, 5_000))()
    assert table.column("k0").to_pylist() == [2] and table.column("rows").to_pylist() == [2]


@pytest.mark.parametrize("ttl_ms", [0, 1_000])
def test_idle_partitions_expire_but_their_pending_rows_do_not(ttl_ms: int) -> None:
    clock, index = ManualClock(), KeyIndex([pa.int64()])
    lives = PartitionLives(ttl_ms, clock)
    timed = TimedRows(SCHEMA, (0,), 1, index, KeyGroups(0, 128, 128), lives.writes)
    state = totals(index, lives.writes)
    timed.link(rows([1, 2], [1, 1]))
    timed.hold(rows([1], [99]))
    slots = add(state, index, rows([1, 2]), 2)
    lives.touch(slots, index.capacity)
    clock.advance(500)
    lives.touch(slots[1:], index.capacity)
    clock.advance(510)
    expired = lives.expire(clock.wall_ms(), index, timed, state)
    if not ttl_ms:
        assert not expired.size and len(state) == 2
        return
    assert expired.tolist() == slots[:1].tolist() and list(read(state, index)) == [2]
    assert timed.store.take(timed.linked_ids()).column(0).to_pylist() == [2] and timed.waiting.size == 1
    clock.advance(490)
    assert lives.expire(clock.wall_ms(), index, timed, state).tolist() == slots[1:].tolist()
    clock.advance(10_000)
    assert not lives.expire(clock.wall_ms(), index, timed, state).size, "nothing is stored of them any more"


def test_restored_partitions_are_as_old_as_they_were() -> None:
    clock, index, again = ManualClock(), KeyIndex([pa.int64()]), KeyIndex([pa.int64()])
    before, after = (LastWrites(1_000, clock) for _ in range(2))
    state, restored = totals(index, before), totals(again, after)
    before.touch(add(state, index, rows([1, 2]), 2), index.capacity)
    clock.advance(900)
    restored.restore(state.snapshot())
    assert after.due(clock.wall_ms() + 110, again.live_slots).size == 2
