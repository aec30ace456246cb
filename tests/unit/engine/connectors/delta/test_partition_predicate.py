"""The predicate of partitions: constants of each type, NULL, quotes; the library finds the files by it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.delta.partition_predicate import partition_predicate

deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")


def test_the_library_finds_the_partitions(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, 3, 4, 5, 678)
    values = pa.table(
        {
            "Day": pa.array([date(2026, 1, 1), None, date(2026, 1, 2)]),
            "s": ["a'b", None, "x"],
            "ts": pa.array([at, None, at], pa.timestamp("us")),
            "z": pa.array([at.replace(tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
            "n": pa.array([-5, None, 1], pa.int64()),
            "b": [True, None, False],
            "d": pa.array([Decimal("1.50"), None, Decimal("1.50")], pa.decimal128(8, 2)),
        }
    )
    columns = values.column_names
    rows = values.append_column("id", pa.array([1, 2, 3]))
    deltalake.write_deltalake(str(tmp_path), rows, partition_by=columns)
    predicate = partition_predicate(values.slice(0, 2), columns, "the table")
    new = rows.slice(0, 2).set_column(len(columns), "id", pa.array([11, 12]))
    deltalake.write_deltalake(str(tmp_path), new, mode="overwrite", predicate=predicate)
    found = deltalake.DeltaTable(str(tmp_path)).to_pyarrow_table().column("id").to_pylist()
    assert sorted(found) == [3, 11, 12]


def test_bytes_are_refused() -> None:
    with pytest.raises(PenstockError, match="DAT-5305"):
        partition_predicate(pa.table({"b": pa.array([b"x"])}), ["b"], "the table")
