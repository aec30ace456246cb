"""The states whose checkpoints ``bench.state.checkpoints`` and ``bench.state.snapshot_pauses`` measure: each with what touches keys of it, and how
many keys make 10 MB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, STRING, TIMESTAMP, DataType
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, KeyGroups, Services
from penstock.engine.api.stream_elements import Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.aggregate.group_aggregate import GroupAggregateOperator
from penstock.engine.operators.over.over import EventTimeOverOperator
from penstock.engine.operators.window.session_aggregate import SessionAggregateOperator
from penstock.engine.operators.window.window_aggregate import WindowAggregateOperator
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.partitioned.partition_rows import KeyedRows, PartitionKeys
from penstock.engine.state.rows.join_side import JoinSide
from penstock.planner.expressions.nodes import AggregateCall, Column, Literal, SortKey
from penstock.planner.logical.aggregate import Aggregate, WindowAggregate
from penstock.planner.logical.operator_facts import GroupFacts, OperatorFacts
from penstock.planner.logical.over import Frame, FrameUnit, Over, OverFacts
from penstock.planner.logical.windows import HopWindow, SessionWindow, TumbleWindow, Windowing, window_fields
from penstock.planner.physical.operator_specs import InputSchema, OperatorSpec

STATE_BYTES = 10_000_000
_HOUR_US = 3_600_000_000


@dataclass(frozen=True)
class Measured:
    """States of one operator, what touches keys of them, and how many keys make STATE_BYTES."""

    states: Mapping[str, KeyedState]
    touch: Callable[[np.ndarray], None]
    keys: int


class _Dropped:
    def collect(self, batch: Batch) -> None: ...

    def watermark(self, time_us: int) -> None: ...

    def idle(self) -> None: ...

    def split(self, event: object) -> None: ...


_V = Column(BIGINT, True, index=1, name="v")
_CALLS = (AggregateCall("count", (), BIGINT, False), AggregateCall("sum", (_V,), BIGINT))
_TIMED = Schema((Field("k", BIGINT), Field("v", BIGINT), Field("t", TIMESTAMP, True, Role.EVENT_TIME)))


def _context() -> Context:
    return Context("op", "op", 0, 1, KeyGroups(0, 128, 128), SystemClock(), OperatorMetrics(), Services())


def _timed(keys: np.ndarray, time_us: int) -> Batch:
    times = pa.array(np.full(keys.size, time_us)).view(pa.timestamp("us"))
    return Batch(
        pa.RecordBatch.from_arrays([pa.array(keys), pa.array(keys), times], schema=_TIMED.to_arrow())
    )


def _numbers(keys: np.ndarray) -> list[pa.Array]:
    return [pa.array(keys)]


def _texts(keys: np.ndarray) -> list[pa.Array]:
    return [pc.cast(pa.array(keys), pa.string())]


def _pairs(keys: np.ndarray) -> list[pa.Array]:
    return [pa.array(keys), pa.array(keys % 7)]


KEYS: dict[str, tuple[tuple[DataType, ...], Callable[[np.ndarray], list[pa.Array]]]] = {
    "one number": ((BIGINT,), _numbers),
    "one text": ((STRING,), _texts),
    "two columns": ((BIGINT, BIGINT), _pairs),
    "number, text": ((BIGINT, STRING), lambda keys: [pa.array(keys % 7), *_texts(keys)]),
}
"""The keys of an aggregate, and what makes their columns from numbers."""


def aggregate(kind: str = "one number", calls: tuple[AggregateCall, ...] = _CALLS) -> Measured:
    """Return a group aggregate by one of KEYS, planned for rows that may be retracted."""
    types, columns_of = KEYS[kind]
    keys = tuple(Field(f"k{i}", type_) for i, type_ in enumerate(types))
    source = Schema((Field("u", BIGINT), Field("v", BIGINT), *keys))
    names = tuple(f"a{i}" for i in range(len(calls)))
    schema = Schema((*keys, *(Field(name, BIGINT) for name in names)))
    by = tuple(range(2, 2 + len(keys)))
    operator = GroupAggregateOperator(
        OperatorSpec(
            "op",
            "group",
            schema,
            Aggregate(InputSchema(source), by, calls, names),
            GroupFacts((False,)),
        ),
        JobOptions(),
    )
    operator.open(_context())

    def touch(keys: np.ndarray) -> None:
        columns = [pa.array(keys), pa.array(keys), *columns_of(keys)]
        operator.on_batch(Batch(pa.RecordBatch.from_arrays(columns, schema=source.to_arrow())), 0, _Dropped())
        operator.before_barrier(0, _Dropped())

    return Measured(operator.keyed_states(), touch, STATE_BYTES // 40)


def join_side(*, retracting: bool = False) -> Measured:
    """Return the rows of a join's side; where they may be retracted an equal row adds to a weight."""
    schema = pa.schema([("k", pa.int64()), ("name", pa.string()), ("v", pa.int64())])
    index = KeyIndex([pa.int64()])
    side = JoinSide(schema, [0], index, 128, retracting=retracting, counts=True)

    def touch(keys: np.ndarray) -> None:
        names = pa.array([f"customer {key}" for key in keys.tolist()])
        rows = pa.RecordBatch.from_arrays([pa.array(keys), names, pa.array(keys)], schema=schema)
        side.change(Batch(rows), index.lookup_or_insert([rows.column(0)]), np.zeros(keys.size, np.int64))

    return Measured({"rows": side}, touch, STATE_BYTES // 60)


def windows(kind: type[Windowing]) -> Measured:
    """Return the windows of an aggregate, an hour long, or its sessions."""
    step_us = _HOUR_US // 4 if kind is HopWindow else 0
    schema = Schema((Field("k", BIGINT), Field("a0", BIGINT), Field("a1", BIGINT), *window_fields()))
    window = kind(2, _HOUR_US, step_us)
    node = WindowAggregate(InputSchema(_TIMED), window, (0,), _CALLS, ("a0", "a1"))
    spec = OperatorSpec("op", "window", schema, node, OperatorFacts((True,)))
    operator = (SessionAggregateOperator if kind is SessionWindow else WindowAggregateOperator)(
        spec, JobOptions()
    )
    operator.open(_context())
    return Measured(
        operator.keyed_states(),
        lambda keys: operator.on_batch(_timed(keys, 1), 0, _Dropped()),
        STATE_BYTES // 56,
    )


def over() -> Measured:
    """Return OVER in time: the last row of each partition and its totals."""
    lag = AggregateCall(
        "lag", (_V, Literal(BIGINT, False, value=1), Literal(BIGINT, True, value=None)), BIGINT
    )
    calls = (_CALLS[1], lag)
    schema = Schema((*_TIMED.fields, Field("s", BIGINT), Field("l", BIGINT)))
    order = (SortKey(Column(TIMESTAMP, True, index=2, name="t")),)
    node = Over(InputSchema(_TIMED), (0,), order, Frame(FrameUnit.ROWS), calls, ("s", "l"), True)
    spec = OperatorSpec("op", "over", schema, node, OverFacts((True,), in_time=True))
    operator = EventTimeOverOperator(spec, JobOptions())
    operator.open(_context())
    clock = [0]

    def touch(keys: np.ndarray) -> None:
        clock[0] += 1
        operator.on_batch(_timed(keys, clock[0]), 0, _Dropped())
        operator.on_watermark(clock[0] + 1, _Dropped())

    return Measured(operator.keyed_states(), touch, STATE_BYTES // 90)


def partition_rows() -> Measured:
    """Return the rows of partitions, as of a Top-N or of the last row of a key: a later row replaces one."""
    schema = pa.schema([("name", pa.string()), ("v", pa.int64())])
    partitions = PartitionKeys.of([pa.string()], 128)
    rows = KeyedRows(schema, partitions, lambda batch: [])

    def touch(keys: np.ndarray) -> None:
        (names,) = _texts(keys)
        slots = partitions.keys.lookup_or_insert([names])
        rows.put(slots, pa.RecordBatch.from_arrays([names, pa.array(keys)], schema=schema))

    return Measured({"rows": rows}, touch, STATE_BYTES // 60)


STATES: dict[str, Callable[[], Measured]] = {
    "group aggregate": aggregate,
    "join side": join_side,
    "window aggregate": lambda: windows(TumbleWindow),
    "sliding windows": lambda: windows(HopWindow),
    "sessions": lambda: windows(SessionWindow),
    "OVER in time": over,
}


_DISTINCT = AggregateCall("count", (_V,), BIGINT, distinct=True)
_RETRACTED = AggregateCall("min", (_V,), BIGINT)

LARGE_STATES: dict[str, Callable[[], Measured]] = {
    **{f"groups by {kind}": partial(aggregate, kind) for kind in KEYS},
    "DISTINCT": partial(aggregate, calls=(_DISTINCT,)),
    "MIN with retraction": partial(aggregate, calls=(_RETRACTED,)),
    "windows": lambda: windows(TumbleWindow),
    "sessions": lambda: windows(SessionWindow),
    "join side": join_side,
    "join side, retracted": partial(join_side, retracting=True),
    "OVER in time": over,
    "rows of partitions": partition_rows,
}
"""The kinds of state that ``bench.state.snapshot_pauses`` makes large."""
