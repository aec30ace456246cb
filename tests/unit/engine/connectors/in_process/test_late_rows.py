"""Late rows of a job: columns of its operators by name, NULL where one has none, the oldest dropped."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, STRING, Timestamp
from penstock.engine.api.operator import Services
from penstock.engine.api.stream_elements import MIN_WATERMARK_US
from penstock.engine.connectors.in_process.late_rows import LateRows, late_log

SCHEMA = Schema(
    (
        Field("operator", STRING),
        Field("window_end", Timestamp(6)),
        Field("watermark", Timestamp(6)),
        Field("k", BIGINT),
        Field("other", STRING),
    )
)


def _rows(count: int) -> pa.RecordBatch:
    return pa.record_batch({"k": pa.array(range(count), pa.int64())})


def test_rows_have_the_columns_of_the_table() -> None:
    late = LateRows()
    late.add("job", "window", _rows(1), np.array([MIN_WATERMARK_US]), None)
    late.add("job", "window", _rows(1), np.array([5]), np.array([7]))
    rows = late.arrow_table("job", SCHEMA)
    assert rows["operator"].to_pylist() == ["window", "window"]
    assert rows["watermark"].cast(pa.int64()).to_pylist() == [None, 5]
    assert rows["window_end"].cast(pa.int64()).to_pylist() == [None, 7]
    assert rows["k"].to_pylist() == [0, 0] and rows["other"].to_pylist() == [None, None]
    assert late.arrow_table("another job", SCHEMA).num_rows == 0


def test_the_oldest_rows_go() -> None:
    late = LateRows()
    late.add("job", "first", _rows(10), np.zeros(10, np.int64), None)
    late.add("job", "second", _rows(10_001), np.zeros(10_001, np.int64), None)
    rows = late.arrow_table("job", SCHEMA)
    assert rows.num_rows == 10_000 and set(rows["operator"].to_pylist()) == {"second"}
    assert rows["k"][0].as_py() == 1


def test_an_operator_reports_where_somebody_listens() -> None:
    assert late_log(Services(), "job", "window") is None
    late = LateRows()
    log = late_log(Services(late), "job", "window")
    assert log is not None
    log(_rows(2), np.zeros(2, np.int64), None)
    assert late.arrow_table("job", SCHEMA).num_rows == 2
