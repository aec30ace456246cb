"""Incremental checkpoints: the layers of a state give exactly the state, whatever was given up in between,
and cost what has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import KeyedState, KeyGroups, TrackedState
from penstock.engine.api.stream_elements import Batch
from penstock.engine.checkpoint.snapshot_format import WrittenTask, read_state
from penstock.engine.checkpoint.snapshot_writer import SnapshotWriter
from penstock.engine.operators.aggregate.group_aggregate import GroupAggregateOperator
from penstock.engine.operators.window.session_aggregate import SessionAggregateOperator
from penstock.engine.operators.window.window_aggregate import WindowAggregateOperator
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.partition_accumulators import PartitionTotals
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.batch_buffer import BatchBuffer
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.rows.match_buffer import MatchRows
from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.task.incremental_snapshots import MAX_INCREMENTS, IncrementalSnapshots
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.logical.aggregate import Phase
from penstock.planner.logical.windows import HopWindow, SessionWindow, TumbleWindow, Windowing, window_fields
from tests.harness.operator_specs import group_aggregate_spec, window_aggregate_spec
from tests.unit.engine.operators.changelogs import Collected, context

TIMED = pa.schema([("k", pa.int64()), ("t", pa.timestamp("us"))])
ROWS = pa.schema([("k", pa.int64()), ("v", pa.string()), ("n", pa.int64())])
TASK = TaskId(3, 0)


class Checkpoints:
    """Snapshots one state as a task does, and keeps what of it is complete."""

    def __init__(
        self, state: KeyedState, increments: type[IncrementalSnapshots] = IncrementalSnapshots
    ) -> None:
        self.storage, self.state, self.increments = MemoryStorage(), state, increments(True)
        self.writer = SnapshotWriter(self.storage, 1, 1)
        self.number = 0

    def take(self) -> tuple[WrittenTask, int]:
        """Write one checkpoint; return what it consists of and the bytes it wrote."""
        self.number += 1
        before = sum(map(self.storage.size, self.storage.list()))
        snapshot = OperatorSnapshot(
            "op", {"rows": self.increments.freeze("op", "rows", self.state, self.number)}
        )
        written = self.writer.write(self.number, TASK, [snapshot])
        return written, sum(map(self.storage.size, self.storage.list())) - before

    def complete(self) -> None:
        self.increments.complete(self.number)

    def read(self, written: WrittenTask, start: int = 0, end: int = 128) -> pa.Table | None:
        return read_state(self.storage, written, written.increments("op", "rows"), start, end)

    def check(self, written: WrittenTask) -> None:
        """Demand that the layers give the state as it is but for how far time had come, in any range of
        key groups.
        """
        whole = self.state.snapshot()
        found = self.read(written)
        assert entries(whole.schema.empty_table() if found is None else found).equals(entries(whole))
        groups = whole.column("key_group").to_numpy()
        part = self.read(written, 40, 77)
        assert (0 if part is None else part.num_rows) == int(((groups >= 40) & (groups < 77)).sum())


def entries(table: pa.Table) -> pa.Table:
    """A state without what time makes of its entries, which is state of its own."""
    return table.drop_columns(
        [name for name in ("passed_us", "missed") if name in table.column_names]
    ).combine_chunks()


class ForgetsGivenUp(IncrementalSnapshots):
    """Planted bug: tells changes against the last checkpoint taken, though it may have been given up."""

    def freeze(self, operator_id: str, name: str, state: KeyedState, checkpoint_id: int):  # type: ignore[no-untyped-def]
        frozen = super().freeze(operator_id, name, state, checkpoint_id)
        if self._base is not None and (operator_id, name) in self._bases.get(self._base, {}):
            taken = self._bases[checkpoint_id][operator_id, name]
            base = self._bases[self._base][operator_id, name]
            self._bases[self._base][operator_id, name] = type(base)(
                taken.snapshot, base.increments, base.changed
            )
        return frozen


def side(*, retracting: bool) -> tuple[JoinSide, Callable[[Random], None]]:
    keys = KeyIndex([pa.int64()])
    state = JoinSide(ROWS, [0], keys, 128, retracting=retracting, counts=True)

    def change(random: Random) -> None:
        count = random.randrange(1, 12) if len(state) else 200
        values = [
            (random.randrange(60), random.choice(["a", "bb", None]), random.randrange(3))
            for _ in range(count)
        ]
        rows = pa.RecordBatch.from_arrays(
            [
                pa.array(column, kind)
                for column, kind in zip(zip(*values, strict=True), ROWS.types, strict=True)
            ],
            schema=ROWS,
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
        values = [random.randrange(500) for _ in range(20 if known else 400)] + random.sample(
            known, min(5, len(known))
        )
        add(operator, values, np.where(np.arange(len(values)) < (20 if known else 400), 1, -1))

    state = operator.keyed_states()["groups"]
    assert isinstance(state, TrackedState)
    return state, change


def aggregate() -> GroupAggregateOperator:
    source = Schema((Field("k", BIGINT), Field("v", BIGINT)))
    calls = (
        AggregateCall("count", (), BIGINT, False),
        AggregateCall("sum", (Column(BIGINT, True, index=1, name="v"),), BIGINT),
    )
    schema = Schema((Field("k", BIGINT), Field("a0", BIGINT), Field("a1", BIGINT)))
    operator = GroupAggregateOperator(
        group_aggregate_spec("op", "group", schema, source, (0,), calls, Phase.SINGLE, False), JobOptions()
    )
    operator.open(context())
    return operator


def add(
    operator: GroupAggregateOperator, keys: list[int] | np.ndarray, weights: np.ndarray | None = None
) -> None:
    column = pa.array(np.asarray(keys, np.int64))
    operator.on_batch(
        Batch(pa.RecordBatch.from_arrays([column, column], names=["k", "v"]), weights), 0, Collected()
    )
    operator.before_barrier(0, Collected())


def window_aggregate(kind: type[Windowing]) -> WindowAggregateOperator:
    window = kind(1, 6, 2 if kind is HopWindow else 0)
    calls = (
        AggregateCall("count", (), BIGINT, False),
        AggregateCall("count", (Column(BIGINT, True, index=0, name="k"),), BIGINT, distinct=True),
    )
    source = Schema((Field("k", BIGINT), Field("t", TIMESTAMP, True, Role.EVENT_TIME)))
    made = SessionAggregateOperator if kind is SessionWindow else WindowAggregateOperator
    calls = calls[:1] if kind is SessionWindow else calls
    schema = Schema(
        (Field("k", BIGINT), *(Field(f"a{i}", BIGINT) for i in range(len(calls))), *window_fields())
    )
    operator = made(
        window_aggregate_spec("op", "window", schema, source, window, (0,), calls, Phase.SINGLE, True),
        JobOptions(),
    )
    operator.open(context())
    return operator  # type: ignore[return-value]


def timed_batch(keys: list[int] | np.ndarray, times_us: list[int] | np.ndarray) -> Batch:
    columns = [
        pa.array(np.asarray(keys, np.int64)),
        pa.array(np.asarray(times_us, np.int64)).view(pa.timestamp("us")),
    ]
    return Batch(pa.RecordBatch.from_arrays(columns, schema=TIMED))


def windows(kind: type[Windowing]) -> tuple[KeyedState, Callable[[Random], None]]:
    operator = window_aggregate(kind)
    state, *_ = operator.keyed_states().values()
    clock = [0]

    def change(random: Random) -> None:
        count = 5 if len(state.snapshot()) else 200
        operator.on_batch(
            timed_batch(
                random.choices(range(60), k=count), [clock[0] + random.randrange(40) for _ in range(count)]
            ),
            0,
            Collected(),
        )
        if random.random() < 0.2:
            clock[0] += random.randrange(8)
            operator.on_watermark(clock[0], Collected())

    return state, change


def matching() -> tuple[KeyedState, Callable[[Random], None]]:
    state = MatchRows(TIMED, [0], 1, KeyIndex([pa.int64()]), KeyGroups(0, 128, 128), 4)
    clock = [0]

    def change(random: Random) -> None:
        count = 4 if len(state) else 150
        state.hold(
            timed_batch(
                random.choices(range(30), k=count), [clock[0] + random.randrange(60) for _ in range(count)]
            ).rows
        )
        clock[0] += random.randrange(3)
        due = state.due(clock[0])
        state.keep(due[1:])
        old = np.setdiff1d(state.linked_ids(), due)
        state.forget(old[: random.randrange(4)], due[:1])
        some = state.linked_ids()[-random.randrange(1, 5) :]
        state.mark(some, np.full(some.size, random.randrange(3)))

    return state, change


def waiting() -> tuple[KeyedState, Callable[[Random], None]]:
    state = EventTimeBuffer(TIMED, [0], 1, 128)
    clock = [0]

    def change(random: Random) -> None:
        count = random.randrange(1, 9) if len(state) else 150
        state.add(
            timed_batch(
                random.choices(range(30), k=count), [clock[0] + random.randrange(99) for _ in range(count)]
            )
        )
        clock[0] += random.randrange(4) if random.random() < 0.98 else 100
        state.due(clock[0])

    return state, change


def held() -> tuple[KeyedState, Callable[[Random], None]]:
    state = BatchBuffer(TIMED, [0], 128)

    def change(random: Random) -> None:
        count = random.randrange(1, 9) if len(state) else 150
        state.add(timed_batch(random.choices(range(30), k=count), range(count)))  # type: ignore[arg-type]
        if random.random() < 0.03:
            state.release()

    return state, change


def totals() -> tuple[KeyedState, Callable[[Random], None]]:
    keys = KeyIndex([pa.int64()])
    state = PartitionTotals(
        [pa.int64()], keys, Accumulators((AggregateCall("count", (), BIGINT, False),), True), 128
    )

    def change(random: Random) -> None:
        rows = timed_batch(
            random.choices(range(400), k=4 if len(state) else 200), [0] * (4 if len(state) else 200)
        ).rows
        slots = keys.lookup_or_insert([rows.column(0)])
        state.reserve()
        state.add(slots, rows, slots[:1])
        state.count(slots[:1])
        gone = np.flatnonzero(state.rows)[: random.randrange(3)]
        state.clear(gone)
        keys.remove(gone)

    return state, change


MAKERS = {
    "side": lambda: side(retracting=False),
    "retracting side": lambda: side(retracting=True),
    "groups": groups,
    "windows": lambda: windows(TumbleWindow),
    "sliding windows": lambda: windows(HopWindow),
    "sessions": lambda: windows(SessionWindow),
    "rows in time": matching,
    "waiting rows": waiting,
    "held rows": held,
    "totals": totals,
}


def run(
    make: Callable[[], tuple[KeyedState, Callable[[Random], None]]],
    seed: int,
    increments: type[IncrementalSnapshots] = IncrementalSnapshots,
) -> set[int]:
    """Change a state and checkpoint it fifty times, two of five given up; return how many layers there
    were.
    """
    random = Random(seed)
    state, change = make()
    checkpoints = Checkpoints(state, increments)
    depths = set()
    for _ in range(50):
        for _ in range(random.randrange(3)):
            change(random)
        written, _ = checkpoints.take()
        checkpoints.check(written)
        depths.add(len(written.increments("op", "rows")))
        if random.random() < 0.6:
            checkpoints.complete()
    return depths


@pytest.mark.parametrize("which", MAKERS)
def test_layers_give_the_state_whatever_was_given_up(which: str) -> None:
    depths = {depth for seed in range(6) for depth in run(MAKERS[which], seed)}
    assert max(depths) > 2


@pytest.mark.parametrize("which", MAKERS)
def test_changes_of_a_checkpoint_given_up_must_not_be_forgotten(which: str) -> None:
    with pytest.raises(AssertionError):
        for seed in range(6):
            run(MAKERS[which], seed, ForgetsGivenUp)


KEYS = 100_000


def filled(which: str) -> tuple[KeyedState, Callable[[np.ndarray], None]]:
    """Return a state of KEYS entries and what touches some of its keys."""
    if which == "group aggregate":
        operator = aggregate()
        add(operator, np.arange(KEYS))
        return operator.keyed_states()["groups"], lambda keys: add(operator, keys)
    if which in WINDOWS:
        windowed = window_aggregate(WINDOWS[which])
        windowed.on_batch(timed_batch(np.arange(KEYS), np.zeros(KEYS)), 0, Collected())
        state, *_ = windowed.keyed_states().values()
        return state, lambda keys: windowed.on_batch(timed_batch(keys, np.zeros(keys.size)), 0, Collected())
    if which == "rows in time":
        rows = MatchRows(TIMED, [0], 1, KeyIndex([pa.int64()]), KeyGroups(0, 128, 128), 4)
        rows.hold(timed_batch(np.arange(KEYS), np.ones(KEYS)).rows)
        rows.keep(rows.due(2))
        return rows, lambda keys: rows.mark(keys, rows.marks(keys) + 1)
    index = KeyIndex([pa.int64()])
    state = JoinSide(ROWS, [0], index, 128, retracting=False, counts=False)

    def append(keys: np.ndarray) -> None:
        text = pa.array([f"customer {key}" for key in keys.tolist()])
        rows = pa.RecordBatch.from_arrays([pa.array(keys), text, pa.array(keys)], schema=ROWS)
        state.change(Batch(rows), index.lookup_or_insert([rows.column(0)]), np.zeros(keys.size, np.int64))

    append(np.arange(KEYS))
    return state, append


WINDOWS = {"windows": TumbleWindow, "sessions": SessionWindow}


@pytest.mark.parametrize("which", ["group aggregate", "join side", *WINDOWS, "rows in time"])
def test_one_percent_touched_costs_three_percent_at_most(which: str) -> None:
    state, touch = filled(which)
    checkpoints = Checkpoints(state)
    _, full = checkpoints.take()
    checkpoints.complete()
    assert full > KEYS * 16
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
    for number in range(2 * MAX_INCREMENTS):
        touch(np.arange(number, number + 3))
        written, _ = checkpoints.take()
        checkpoints.complete()
        depths.append(len(written.increments("op", "rows")))
    assert depths == [*range(1, MAX_INCREMENTS + 1)] * 2


def test_more_than_half_touched_is_written_whole() -> None:
    state, touch = filled("group aggregate")
    checkpoints = Checkpoints(state)
    for _ in range(2):
        touch(np.arange(KEYS // 2 + 10))
        written, _ = checkpoints.take()
        checkpoints.complete()
    assert len(written.increments("op", "rows")) == 1


class TracksNothing(KeyedState):
    """Held rows that do not say what has changed."""

    def __init__(self) -> None:
        self._rows = BatchBuffer(ROWS, [0], 128)
        self.add, self.snapshot = self._rows.add, self._rows.snapshot  # type: ignore[method-assign]


def test_a_state_that_tracks_nothing_is_written_when_it_differs() -> None:
    state = TracksNothing()
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
