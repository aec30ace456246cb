"""OrderedTableRows: rows come out in order once the watermark has passed them, however they came in."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from penstock.engine.operators.process.ordered_table_rows import OrderedTableRows
from penstock.planner.expressions.nodes import Column, SortKey

START, S = datetime(1970, 1, 1), 1_000_000


def table(role: Role = Role.EVENT_TIME) -> OrderedTableRows:
    schema = Schema((Field("k", BIGINT), Field("ts", TIMESTAMP, role=role), Field("v", BIGINT)))
    return OrderedTableRows(schema, (0,), [key(schema, i) for i in (1, 2)], JobOptions(), 128)


def key(schema: Schema, index: int, descending: bool = False) -> SortKey:
    field = schema[index]
    return SortKey(Column(field.type, field.nullable, index=index), descending)


def batch(rows: list[tuple[int | None, int | None]]) -> Batch:
    times = [None if second is None else START + timedelta(seconds=second) for second, _ in rows]
    columns = [
        pa.array([1] * len(rows), pa.int64()),
        pa.array(times, pa.timestamp("us")),
        pa.array([value for _, value in rows], pa.int64()),
    ]
    return Batch(pa.RecordBatch.from_arrays(columns, names=["k", "ts", "v"]))


def passed(ordered: OrderedTableRows, watermark_us: int) -> list[tuple[int, int | None]]:
    rows = [
        row
        for one in ordered.due(watermark_us)
        for row in zip(*map(list, one.rows.to_pydict().values()), strict=True)
    ]
    return [(int((time - START).total_seconds()), value) for _, time, value in rows]


@pytest.mark.parametrize("batch_rows", [1, 4, 100])
def test_rows_pass_in_order(batch_rows: int) -> None:
    dice = random.Random(batch_rows)
    rows = [(dice.randrange(20), dice.choice([None, 1, 2])) for _ in range(60)]
    ordered, metrics = table(), OperatorMetrics()
    for first in range(0, len(rows), batch_rows):
        ordered.add(batch(rows[first : first + batch_rows]), MIN_WATERMARK_US, metrics)
    wanted = sorted(rows, key=lambda row: (row[0], row[1] is not None, row[1] or 0))
    assert passed(ordered, 10 * S) == [row for row in wanted if row[0] < 10]
    again = table()
    again.rows.restore(ordered.rows.snapshot())
    assert passed(again, MAX_WATERMARK_US) == [row for row in wanted if row[0] >= 10]


def test_late_rows_and_rows_without_a_time_are_dropped_and_counted() -> None:
    ordered, metrics = table(), OperatorMetrics()
    ordered.add(batch([(3, 1), (9, 2), (10, 3), (None, 4)]), 10 * S, metrics)
    assert passed(ordered, MAX_WATERMARK_US) == [(10, 3)]
    assert metrics.late_rows == 2 and metrics.counters["null_time_rows"] == 1


def test_rows_of_a_window_wait_for_its_end() -> None:
    """window_time is a millisecond before the end: at that end the row has not passed."""
    ordered, metrics = table(Role.WINDOW_TIME), OperatorMetrics()
    ordered.add(batch([(10, 1)]), MIN_WATERMARK_US, metrics)
    assert passed(ordered, 10 * S + 1) == []
    assert passed(ordered, 10 * S + 1_000) == [(10, 1)]
