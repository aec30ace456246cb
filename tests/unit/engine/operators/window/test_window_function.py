"""Windowing table functions: each row once per window."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TIMESTAMP
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.window.window_function import WindowFunctionOperator
from penstock.planner.logical.windows import CumulateWindow, HopWindow, TumbleWindow, Windowing, window_fields
from tests.harness.operator_specs import window_table_spec
from tests.harness.operators import Remembered, opened

INPUT = Schema((Field("ts", TIMESTAMP, role=Role.EVENT_TIME), Field("n", BIGINT)))


def timed(times: list[int | None], behind: list[int] | None = None) -> Batch:
    columns = [pa.array(times, pa.int64()).view(pa.timestamp("us")), pa.array(range(len(times)), pa.int64())]
    rows = pa.RecordBatch.from_arrays(columns, schema=INPUT.to_arrow())
    return Batch(rows, np.arange(1, len(times) + 1), None if behind is None else np.array(behind))


@pytest.mark.parametrize(
    ("windowing", "windows"),
    [
        (TumbleWindow(0, 10), [(0, 0, 10), (2, -10, 0)]),
        (HopWindow(0, 10, 5), [(0, 0, 10), (0, 5, 15), (2, -10, 0), (2, -5, 5)]),
        (CumulateWindow(0, 10, 5), [(0, 0, 10), (2, -10, 0)]),
    ],
)
def test_each_row_once_per_window(windowing: Windowing, windows: list[tuple[int, int, int]]) -> None:
    operator = WindowFunctionOperator(
        window_table_spec("id", "window", INPUT.concat(Schema(window_fields())), windowing), JobOptions()
    )
    context, out = opened(operator), Remembered()
    operator.on_batch(timed([7, None, -1], [1, 2, 3]), 0, out)
    (batch,) = out.batches
    columns = [batch.rows.column(i).cast(pa.int64()).to_pylist() for i in (1, 2, 3, 4)]
    assert list(zip(*columns[:3], strict=True)) == windows
    assert columns[3] == [end - 1000 for end in columns[2]]
    assert batch.weights is not None and batch.weights.tolist() == [n + 1 for n, _, _ in windows]
    assert batch.behind is not None and batch.behind.tolist() == [n + 1 for n, _, _ in windows]
    assert context.metrics.counters == {"null_time_rows": 1}


def test_rows_without_time_alone_give_nothing() -> None:
    operator = WindowFunctionOperator(
        window_table_spec("id", "window", INPUT.concat(Schema(window_fields())), TumbleWindow(0, 10)),
        JobOptions(),
    )
    opened(operator)
    out = Remembered()
    operator.on_batch(timed([None]), 0, out)
    assert not out.events
