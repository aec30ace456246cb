"""Columns as JSON: what JSON or JavaScript would change is text."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from penstock.client.server.web.json_rows import json_columns

_ROW = pa.struct([("a", pa.decimal128(5, 2)), ("b", pa.int64())])


@pytest.mark.parametrize(
    ("values", "kind", "shown"),
    [
        ([1, None], pa.int64(), [1, None]),
        ([1, 2**53], pa.int64(), ["1", "9007199254740992"]),
        ([-(2**60)], pa.int64(), [str(-(2**60))]),
        ([], pa.int64(), []),
        ([1.5, None], pa.float64(), [1.5, None]),
        ([1.5, float("nan"), float("inf")], pa.float64(), ["1.5", "nan", "inf"]),
        ([True, None], pa.bool_(), [True, None]),
        (["<b>", None], pa.string(), ["<b>", None]),
        ([b"\x00\xff", None], pa.binary(), ["\\x00ff", None]),
        ([Decimal("1.10")], pa.decimal128(5, 2), ["1.10"]),
        ([date(2026, 1, 2)], pa.date32(), ["2026-01-02"]),
        ([datetime(2026, 1, 2, 3, 4, 5, 600)], pa.timestamp("us"), ["2026-01-02 03:04:05.000600"]),
        ([[1, None], None], pa.list_(pa.int64()), [[1, None], None]),
        ([{"a": Decimal("1.5"), "b": 2**60}], _ROW, [{"a": "1.50", "b": str(2**60)}]),
    ],
)
def test_values(values: list[object], kind: pa.DataType, shown: list[object]) -> None:
    columns = json_columns(pa.table({"a": pa.array(values, kind)}))
    assert columns == [shown]
    assert json.loads(json.dumps(columns, allow_nan=False)) == columns
