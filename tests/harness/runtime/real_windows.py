"""The real window aggregate between the fakes: the same job shape, with TUMBLE, HOP, CUMULATE and SESSION
windows over timestamps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Operator, Output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.factory import build_operator
from penstock.planner.expressions.nodes import AggregateCall, Column
from penstock.planner.logical.aggregate import Phase, WindowAggregate
from penstock.planner.logical.distribution import Forward, Partition
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.windows import (
    CumulateWindow,
    HopWindow,
    SessionWindow,
    TumbleWindow,
    Windowing,
    window_fields,
)
from penstock.planner.physical.operator_specs import AnyOperatorSpec, Chain, ChainEdge, JobGraph, OperatorSpec
from tests.harness.operator_specs import window_aggregate_spec
from tests.harness.runtime import fakes
from tests.harness.runtime.fakes import ROWS, SCHEMA, Row, ledger_spec, numbers_spec

TIMED = Schema((Field("key", BIGINT), Field("value", BIGINT), Field("time", TIMESTAMP, role=Role.EVENT_TIME)))
TIMED_ROWS = TIMED.to_arrow()
WINDOWED = Schema((Field("key", BIGINT), Field("total", BIGINT), *window_fields()))
WINDOWS = (
    TumbleWindow(2, 10),
    HopWindow(2, 20, 5),
    CumulateWindow(2, 20, 10),
    SessionWindow(2, 7),
)


@dataclass(frozen=True)
class Cast(LogicalPlan):
    """Keep three columns, the last as another type."""

    columns: tuple[int, int, int] = (0, 1, 2)
    to_time: bool = False


class CastOperator(Operator):
    def __init__(self, node: Cast) -> None:
        self._node = node

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        columns = [batch.rows.column(i) for i in self._node.columns]
        columns[2] = columns[2].view(pa.timestamp("us") if self._node.to_time else pa.int64())
        out.collect(
            batch.with_rows(
                pa.RecordBatch.from_arrays(columns, schema=TIMED_ROWS if self._node.to_time else ROWS)
            )
        )


def build(spec: AnyOperatorSpec, options: JobOptions) -> Operator:
    if isinstance(spec.node, WindowAggregate):
        return build_operator(spec, options)
    return CastOperator(spec.node) if isinstance(spec.node, Cast) else fakes.build(spec, options)


def real_job(splits: Sequence[Sequence[Row]], window: Windowing, random: Random) -> JobGraph:
    """source -> cast | partition by key | window aggregate -> cast | ledger."""
    parallelism = random.choice([1, 2, 3])
    source = numbers_spec("src", "numbers", SCHEMA, tuple(map(tuple, splits)), random.choice([2, 4, 10]))
    total = AggregateCall("sum", (Column(BIGINT, True, 1, "value"),), BIGINT)
    aggregate = window_aggregate_spec(
        "agg", "window", WINDOWED, TIMED, window, (0,), (total,), Phase.SINGLE, True
    )
    chains = (
        Chain(0, (source, OperatorSpec("in", "cast", TIMED, Cast(to_time=True))), random.choice([1, 2, 3])),
        Chain(1, (aggregate, OperatorSpec("out", "cast", SCHEMA, Cast((0, 1, 3)))), parallelism),
        Chain(2, (ledger_spec("sink", "ledger", SCHEMA),), parallelism),
    )
    edge = Forward() if random.random() < 0.5 else Partition((0,))
    return JobGraph(chains, (ChainEdge(0, 1, 0, Partition((0,))), ChainEdge(1, 2, 0, edge)), 16)


def expected(splits: Sequence[Sequence[Row]], window: Windowing) -> Counter[Row]:
    """Window sums as (key, total, window end), one row at a time."""
    rows = [row for split in splits for row in split]
    if isinstance(window, SessionWindow):
        return sessions(rows, window.size_us)
    sums: Counter[tuple[int, int]] = Counter()
    for key, value, time in rows:
        for end in ends(time, window):
            sums[key, end] += value
    return Counter((key, total, end) for (key, end), total in sums.items())


def ends(time: int, window: Windowing) -> list[int]:
    size, step = window.size_us, window.step_us or window.size_us
    if isinstance(window, CumulateWindow):
        start = time // size * size
        return list(range(start + (time - start) // step * step + step, start + size + 1, step))
    return [end for end in range((time // step + 1) * step, time + size + 1, step) if end - size <= time]


def sessions(rows: Sequence[Row], gap: int) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for key in {row[0] for row in rows}:
        total, last = 0, None
        for _, value, time in sorted((row for row in rows if row[0] == key), key=lambda row: row[2]):
            if last is not None and time >= last + gap:
                found[key, total, last + gap] += 1
                total = 0
            total, last = total + value, time
        found[key, total, last + gap] += 1
    return found
