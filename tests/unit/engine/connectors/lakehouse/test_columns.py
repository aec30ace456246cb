"""Declared columns against those that are there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, INT, STRING, Timestamp
from penstock.engine.connectors.lakehouse.columns import (
    RowsFitter,
    check_types,
    column_named,
    missing,
    refuse_missing,
)

THERE = pa.schema(
    [pa.field("K", pa.int64(), False), ("extra", pa.large_string()), ("ts", pa.timestamp("us"))]
)


def test_names_regardless_of_case() -> None:
    assert column_named(THERE, "k") == 0
    assert column_named(THERE, "x") is None
    assert missing([Field("k", BIGINT), Field("x", INT)], THERE) == [Field("x", INT)]


def test_types_are_those_of_the_engine() -> None:
    check_types([Field("k", BIGINT), Field("Extra", STRING), Field("ts", Timestamp(3))], THERE, "t")
    with pytest.raises(PenstockError, match="DAT-5306") as raised:
        check_types([Field("k", INT)], THERE, "t")
    assert raised.value.hint == "declare k BIGINT, and CAST in the query"
    with pytest.raises(PenstockError, match="DAT-5306"):
        refuse_missing([Field("x", INT)], THERE, "t", written=False)


def test_rows_in_the_order_of_the_table() -> None:
    fitter = RowsFitter([Field("ts", Timestamp(6)), Field("k", BIGINT)], THERE, "t", keep=1)
    rows = pa.record_batch(
        {"gone": [True], "a": pa.array([None], pa.timestamp("us")), "b": pa.array([7], pa.int64())}
    )
    fitted = fitter.fit(rows)
    assert fitted.schema.names == ["gone", "K", "extra", "ts"]
    assert fitted.to_pylist() == [{"gone": True, "K": 7, "extra": None, "ts": None}]


def test_a_column_that_allows_no_null_must_be_written() -> None:
    with pytest.raises(PenstockError, match="DAT-5306"):
        RowsFitter([Field("extra", STRING)], THERE, "t")
