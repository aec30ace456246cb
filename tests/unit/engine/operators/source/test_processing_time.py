"""Rows are stamped by the clock: stamps and watermarks never go back, neither with the clock nor over a
restore, and watermarks of the input end here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Field, Role, Schema
from penstock.catalog.types import BIGINT, TimestampLtz
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, Batch
from penstock.engine.operators.source.processing_time import ProcessingTimeOperator
from tests.harness.operator_specs import processing_time_spec
from tests.harness.operators import Remembered, opened


def test_stamps_and_watermarks_never_go_back() -> None:
    schema = Schema((Field("n", BIGINT), Field("p", TimestampLtz(3), False, Role.EVENT_TIME)))
    rows = pa.RecordBatch.from_arrays(
        [pa.array([1, 2], pa.int64()), pa.array([0, 0], pa.int64()).view(pa.timestamp("us", "UTC"))],
        schema=schema.to_arrow(),
    )
    spec, clock, out = processing_time_spec("id", "p", schema, 1), ManualClock(1_000), Remembered()
    operator = ProcessingTimeOperator(spec, JobOptions())
    opened(operator, clock)
    operator.on_batch(Batch(rows), 0, out)
    operator.on_processing_time(2_000, out)
    clock.now_ms = 500
    operator.on_processing_time(500, out)
    operator.on_batch(Batch(rows), 0, out)
    assert [batch.rows.column(1).cast(pa.int64()).to_pylist() for batch in out.batches] == [
        [1_000_000] * 2,
        [2_000_000] * 2,
    ]
    assert out.times == [2_000_000]
    again, told = ProcessingTimeOperator(spec, JobOptions()), Remembered()
    opened(again, clock)
    clock, earlier = again.list_states()["clock"], operator.list_states()["clock"]
    clock.restore_items([*earlier.snapshot_items(), {"reached_us": 3_000_000}])
    again.on_batch(Batch(rows), 0, told)
    again.on_watermark(MAX_WATERMARK_US, told)
    again.on_processing_time(9_000, told)
    assert told.batches[0].rows.column(1).cast(pa.int64()).to_pylist() == [3_000_000] * 2
    assert told.times == [], "time has ended"


def test_a_stamped_row_keeps_its_weight_and_is_behind_no_watermark() -> None:
    """No row is late by the clock, whatever its split's watermark was."""
    schema = Schema((Field("p", TimestampLtz(3), False, Role.EVENT_TIME), Field("n", BIGINT)))
    operator, out = (
        ProcessingTimeOperator(processing_time_spec("id", "p", schema, 0), JobOptions()),
        Remembered(),
    )
    at = opened(operator, ManualClock(1_000))
    times = pa.array([0, 0], pa.int64()).view(pa.timestamp("us", "UTC"))
    rows = pa.RecordBatch.from_arrays([times, pa.array([None, 2], pa.int64())], schema=schema.to_arrow())
    operator.on_batch(Batch(rows, np.array([-1, 2]), np.array([9, 9]), origin=3), 0, out)
    operator.on_batch(Batch(rows.slice(0, 0)), 0, out)
    stamped, empty = out.batches
    assert stamped.rows.column(1).to_pylist() == [None, 2] and empty.num_rows == 0
    assert stamped.weights is not None and stamped.weights.tolist() == [-1, 2]
    assert stamped.behind is None and stamped.origin == 3
    assert not operator.passes_time
    operator.on_watermark(5_000_000, out)
    assert out.times == [], "a watermark of the input is none of the clock"
    operator.on_processing_time(1_000, out)
    operator.on_processing_time(1_000, out)
    assert out.times == [1_000_000] and at.metrics.watermark_us == 1_000_000
