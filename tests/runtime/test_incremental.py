"""Incremental checkpoints: the layers of a state give exactly the state, whatever was given up in between, and cost what has changed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from catalog.schema import Field, Schema
from catalog.types import BIGINT
from engine.chain import OperatorSnapshot
from engine.elements import Batch
from engine.job_messages import TaskId
from engine.job_options import JobOptions
from engine.layers import MOST_LAYERS, Layers
from engine.memory_storage import MemoryStorage
from engine.operator import KeyedState, TrackedState
from engine.operators.group_aggregate import GroupAggregateOperator
from engine.snapshot_writer import SnapshotWriter
from engine.snapshots import WrittenTask, read_state
from engine.state.held_rows import HeldRows
from engine.state.join_side import JoinSide
from engine.state.key_index import KeyIndex
from planner.expressions import AggregateCall, Column
from planner.logical import Phase
from planner.physical import GroupAggregateSpec
from tests.engine.operators.changelogs import Collected, context

ROWS = pa.schema([("k", pa.int64()), ("v", pa.string()), ("n", pa.int64())])
TASK = TaskId(3, 0)


class Checkpoints:
    """Snapshots one state as a task does, and keeps what of it is complete."""

    def __init__(self, state: KeyedState, layers: type[Layers] = Layers) -> None:
        self.storage, self.state, self.layers = MemoryStorage(), state, layers(True)
        self.writer = SnapshotWriter(self.storage, 1, 1)
        self.number = 0

    def take(self) -> tuple[WrittenTask, int]:
        """Write one checkpoint; return what it consists of and the bytes it wrote."""
        self.number += 1
        before = sum(map(self.storage.size, self.storage.list()))
        snapshot = OperatorSnapshot("op", {"rows": self.layers.freeze("op", "rows", self.state, self.number)})
        written = self.writer.write(self.number, TASK, [snapshot])
        return written, sum(map(self.storage.size, self.storage.list())) - before

    def complete(self) -> None:
        self.layers.complete(self.number)

    def read(self, written: WrittenTask, start: int = 0, end: int = 128) -> pa.Table | None:
        return read_state(self.storage, written, written.layers("op", "rows"), start, end)

    def check(self, written: WrittenTask) -> None:
        """Demand that the layers give the state as it is, in any range of key groups."""
        whole = self.state.snapshot()
        found = self.read(written)
        assert (whole.schema.empty_table() if found is None else found.combine_chunks()).equals(whole.combine_chunks())
        groups = whole.column("key_group").to_numpy()
        part = self.read(written, 40, 77)
        assert (0 if part is None else part.num_rows) == int(((groups >= 40) & (groups < 77)).sum())


class ForgetsGivenUp(Layers):
    """Planted bug: tells changes against the last checkpoint taken, though it may have been given up."""

    def freeze(self, operator_id: str, name: str, state: KeyedState, checkpoint_id: int):  # type: ignore[no-untyped-def]
        frozen = super().freeze(operator_id, name, state, checkpoint_id)
        if self._base is not None and (operator_id, name) in self._taken.get(self._base, {}):
            taken = self._taken[checkpoint_id][operator_id, name]
            base = self._taken[self._base][operator_id, name]
            self._taken[self._base][operator_id, name] = type(base)(taken.snapshot, base.layers, base.changed)
        return frozen


def side(*, retracting: bool) -> tuple[JoinSide, Callable[[Random], None]]:
    keys = KeyIndex([pa.int64()])
    state = JoinSide(ROWS, [0], keys, 128, retracting=retracting, counts=True)

    def change(random: Random) -> None:
        count = random.randrange(1, 12) if len(state) else 200
        values = [(random.randrange(60), random.choice(["a", "bb", None]), random.randrange(3)) for _ in range(count)]
        rows = pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(zip(*values, strict=True), ROWS.types, strict=True)], schema=ROWS
        )
        batch = state.consolidated(Batch(rows), keep=True)
        slots = keys.lookup_or_insert([batch.rows.column(0)], batch.num_rows)
        state.change(batch, slots, np.zeros(batch.num_rows, np.int64))
        ids = state.store.live_ids()
        some = ids[np.array([random.random() < 0.02 for _ in ids], np.bool_)]
        state.match(some, np.ones(some.size, np.int64))
        gone = ids[np.array([random.random() < 0.04 for _ in ids], np.bool_)]
        state.remove(gone)
        if random.random() < 0.03:
            state.clear()

    return state, change


def groups() -> tuple[TrackedState, Callable[[Random], None]]:
    operator = aggregate()

    def change(random: Random) -> None:
        live = operator.keyed_states()["groups"].snapshot()
        known = live.column("k0").to_pylist()
        values = [random.randrange(500) for _ in range(20 if known else 400)] + random.sample(known, min(5, len(known)))
        add(operator, values, np.where(np.arange(len(values)) < (20 if known else 400), 1, -1))

    state = operator.keyed_states()["groups"]
    assert isinstance(state, TrackedState)
    return state, change


def aggregate() -> GroupAggregateOperator:
    source = Schema((Field("k", BIGINT), Field("v", BIGINT)))
    calls = (AggregateCall("count", (), BIGINT, False), AggregateCall("sum", (Column(BIGINT, True, index=1, name="v"),), BIGINT))
    schema = Schema((Field("k", BIGINT), Field("a0", BIGINT), Field("a1", BIGINT)))
    operator = GroupAggregateOperator(GroupAggregateSpec("op", "group", schema, source, (0,), calls, Phase.SINGLE, False), JobOptions())
    operator.open(context())
    return operator


def add(operator: GroupAggregateOperator, keys: list[int] | np.ndarray, weights: np.ndarray | None = None) -> None:
    column = pa.array(np.asarray(keys, np.int64))
    operator.on_batch(Batch(pa.RecordBatch.from_arrays([column, column], names=["k", "v"]), weights), 0, Collected())
    operator.before_barrier(0, Collected())


MAKERS = [lambda: side(retracting=False), lambda: side(retracting=True), groups]


def run(make: Callable[[], tuple[KeyedState, Callable[[Random], None]]], seed: int, layers: type[Layers] = Layers) -> set[int]:
    """Change a state and checkpoint it fifty times, two of five given up; return how many layers there were."""
    random = Random(seed)
    state, change = make()
    checkpoints = Checkpoints(state, layers)
    depths = set()
    for _ in range(50):
        for _ in range(random.randrange(3)):
            change(random)
        written, _ = checkpoints.take()
        checkpoints.check(written)
        depths.add(len(written.layers("op", "rows")))
        if random.random() < 0.6:
            checkpoints.complete()
    return depths


@pytest.mark.parametrize("make", MAKERS)
def test_layers_give_the_state_whatever_was_given_up(make: Callable[[], tuple[KeyedState, Callable[[Random], None]]]) -> None:
    depths = {depth for seed in range(6) for depth in run(make, seed)}
    assert max(depths) > 2


@pytest.mark.parametrize("make", MAKERS)
def test_changes_of_a_checkpoint_given_up_must_not_be_forgotten(make: Callable[[], tuple[KeyedState, Callable[[Random], None]]]) -> None:
    with pytest.raises(AssertionError):
        for seed in range(6):
            run(make, seed, ForgetsGivenUp)


KEYS = 100_000


def filled(which: str) -> tuple[KeyedState, Callable[[np.ndarray], None]]:
    """Return a state of KEYS entries and what touches some of its keys."""
    if which == "group aggregate":
        operator = aggregate()
        add(operator, np.arange(KEYS))
        return operator.keyed_states()["groups"], lambda keys: add(operator, keys)
    index = KeyIndex([pa.int64()])
    state = JoinSide(ROWS, [0], index, 128, retracting=False, counts=False)

    def append(keys: np.ndarray) -> None:
        text = pa.array([f"customer {key}" for key in keys.tolist()])
        rows = pa.RecordBatch.from_arrays([pa.array(keys), text, pa.array(keys)], schema=ROWS)
        state.change(Batch(rows), index.lookup_or_insert([rows.column(0)]), np.zeros(keys.size, np.int64))

    append(np.arange(KEYS))
    return state, append


@pytest.mark.parametrize("which", ["group aggregate", "join side"])
def test_one_percent_touched_costs_three_percent_at_most(which: str) -> None:
    state, touch = filled(which)
    checkpoints = Checkpoints(state)
    _, full = checkpoints.take()
    checkpoints.complete()
    assert full > KEYS * 24
    random = np.random.default_rng(1)
    for _ in range(5):
        touch(random.choice(KEYS, KEYS // 100, replace=False))
        written, changed = checkpoints.take()
        checkpoints.complete()
        assert 0 < changed <= 0.03 * full, f"{changed / full:.1%} of {full:,} bytes"
    checkpoints.check(written)
    written, nothing = checkpoints.take()
    assert nothing == 0 and len(written.files) == 6


def test_layers_are_few() -> None:
    state, touch = filled("group aggregate")
    checkpoints = Checkpoints(state)
    depths = []
    for number in range(2 * MOST_LAYERS):
        touch(np.arange(number, number + 3))
        written, _ = checkpoints.take()
        checkpoints.complete()
        depths.append(len(written.layers("op", "rows")))
    assert depths == [*range(1, MOST_LAYERS + 1)] * 2


def test_more_than_half_touched_is_written_whole() -> None:
    state, touch = filled("group aggregate")
    checkpoints = Checkpoints(state)
    for _ in range(2):
        touch(np.arange(KEYS // 2 + 10))
        written, _ = checkpoints.take()
        checkpoints.complete()
    assert len(written.layers("op", "rows")) == 1


def test_a_state_that_tracks_nothing_is_written_when_it_differs() -> None:
    state = HeldRows(ROWS, [0], 128)
    rows = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(["a", "b"]), pa.array([3, 4])], schema=ROWS)
    checkpoints = Checkpoints(state)
    sizes = []
    for step in range(5):
        if step in (0, 3):
            state.add(Batch(rows))
        written, size = checkpoints.take()
        checkpoints.check(written)
        if step != 1:
            checkpoints.complete()
        sizes.append(size > 0)
    assert sizes == [True, False, False, True, False]
