"""Writes the rows of test_other_writers as polars writes them; see written/README.md."""

from __future__ import annotations

import sys
from datetime import date, datetime
from decimal import Decimal

import polars as pl

_INSTANTS = [datetime(2024, 1, 2, 3, 4, 5, 678901), datetime(1969, 12, 31, 23, 59, 59), None]

if __name__ == "__main__":
    columns = {
        "id": pl.Series([1, 2, None], dtype=pl.Int64),
        "small": pl.Series([1, -128, None], dtype=pl.Int8),
        "byte": pl.Series([0, 255, None], dtype=pl.UInt8),
        "x": pl.Series([1.5, float("-inf"), None], dtype=pl.Float64),
        "price": pl.Series([Decimal("1.239"), Decimal("-99999.999"), None], dtype=pl.Decimal(10, 3)),
        "name": pl.Series(["é", "", None], dtype=pl.String),
        "kind": pl.Series(["a", "b", None], dtype=pl.Categorical),
        "day": pl.Series([date(2024, 2, 29), date(1582, 10, 4), None], dtype=pl.Date),
        "ts": pl.Series(
            [datetime(2024, 1, 2, 3, 4, 5, 678901), datetime(1, 1, 1), None], dtype=pl.Datetime("us")
        ),
        "instant": pl.Series(_INSTANTS, dtype=pl.Datetime("us"))
        .dt.replace_time_zone("UTC")
        .dt.convert_time_zone("Asia/Tokyo"),
        "ok": pl.Series([True, False, None], dtype=pl.Boolean),
        "raw": pl.Series([b"\x00\xff", b"", None], dtype=pl.Binary),
        "items": pl.Series([[1, None], [], None], dtype=pl.List(pl.Int32)),
        "deep": pl.Series(
            [{"a": 1, "b": "x"}, {"a": None, "b": None}, None],
            dtype=pl.Struct({"a": pl.Int64, "b": pl.String}),
        ),
        "none": pl.Series([None, None, None], dtype=pl.Null),
    }
    pl.DataFrame(columns).write_parquet(sys.argv[1])
