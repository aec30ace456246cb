"""Partition directories: every value comes back, and Spark, Hive and DuckDB read in a name what we wrote
and we what they wrote.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BINARY, INT, STRING, TIMESTAMP, DataType
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.filesystem.partition_paths import (
    NULL_PARTITION,
    partition_directory,
    partition_values,
)
from tests.harness.length import examples
from tests.harness.reading import Taken, read, table_of
from tests.unit.engine.connectors.filesystem.test_sink import sink

VALUES = [
    " x ",
    "\t",
    " ",
    "",
    None,
    NULL_PARTITION,
    "é",
    "a/b",
    "%",
    "%41",
    "a+b",
    "a=b",
    "..",
    "a\nb",
    "x,y",
    "a'b",
]
VALUES += ["[x]", "{a,b}", "*?", "\\", "\x7f", "日本", "k#1"]


def partitioned(directory: Path, kind: str, key: DataType = STRING, *, key_name: str = "k") -> CatalogTable:
    options = {"connector": "filesystem", "path": str(directory), "format": kind}
    return table_of({key_name: key, "id": INT}, options, partitioned_by=[key_name])


def write(table: CatalogTable, values: list[object], kind: pa.DataType) -> None:
    name = table.partitioned_by[0]
    operator = sink(table)
    rows = pa.record_batch({name: pa.array(values, kind), "id": pa.array(range(len(values)), pa.int32())})
    operator.on_batch(Batch(rows), 0, Taken())
    operator.before_barrier(1, Taken())
    operator.on_checkpoint_complete(1)
    operator.close()


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "arrow"])
def test_every_value_comes_back(tmp_path: Path, kind: str) -> None:
    table = partitioned(tmp_path, kind)
    write(table, VALUES, pa.string())
    assert [row["k"] for row in sorted(read(table), key=lambda row: row["id"])] == VALUES


@given(
    st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
)
@settings(deadline=None, max_examples=examples(200))
def test_any_value_and_any_column_name(value: str | None, name: str) -> None:
    path = f"{partition_directory([name], [pa.array([value], pa.string())])}/part-0.parquet"
    assert path.count("/") == 1
    assert partition_values(path) == {name.lower(): value}


def test_values_of_other_types(tmp_path: Path) -> None:
    table = partitioned(tmp_path / "b", "parquet", BINARY)
    write(table, [b" x ", "é".encode(), None], pa.binary())
    assert [row["k"] for row in sorted(read(table), key=lambda row: row["id"])] == [
        b" x ",
        "é".encode(),
        None,
    ]
    with pytest.raises(
        PenstockError, match=r"DAT-4608.*a value of column k is bytes that are no text"
    ) as caught:
        write(table, [b"\xff"], pa.binary())
    assert caught.value.hint == "partition by hex(k)" and not caught.value.retriable
    table = partitioned(tmp_path / "t", "parquet", TIMESTAMP)
    times = pa.array([0, -1, None], pa.timestamp("us"))
    write(table, times.to_pylist(), times.type)
    assert [row["k"] for row in sorted(read(table), key=lambda row: row["id"])] == times.to_pylist()


def test_names_as_others_write_them() -> None:
    assert partition_values("K=a%20b/x=%C3%A9/f") == {"k": "a b", "x": "é"}  # DuckDB, and penstock before
    assert partition_values("k=é/x=a%E9/f") == {"k": "é", "x": "aé"}  # Spark; Hive
    assert partition_values(f"k={NULL_PARTITION}/x=%5F{NULL_PARTITION[1:]}/f") == {
        "k": None,
        "x": NULL_PARTITION,
    }
    assert partition_values("no/directory/k=1") == {}


def test_duckdb_reads_ours_and_we_read_duckdbs(tmp_path: Path) -> None:
    known = [value for value in VALUES if value not in ("", NULL_PARTITION)]
    write(partitioned(tmp_path / "ours", "parquet"), known, pa.string())
    query = f"SELECT k, id FROM read_parquet('{tmp_path}/ours/*/*.parquet', hive_partitioning = true, hive_types = {{'k': 'VARCHAR'}}) ORDER BY id"
    assert [k for k, _ in duckdb.connect().sql(query).fetchall()] == known
    rows = pa.table({"k": pa.array(known), "id": pa.array(range(len(known)), pa.int32())})  # noqa: F841  DuckDB reads it by its name
    duckdb.connect().sql(
        f"COPY (SELECT * FROM rows) TO '{tmp_path}/theirs' (FORMAT parquet, PARTITION_BY (k))"
    )
    read_back = sorted(read(partitioned(tmp_path / "theirs", "parquet")), key=lambda row: row["id"])
    assert [row["k"] for row in read_back] == known


def test_arrow_reads_ours_and_we_read_arrows(tmp_path: Path) -> None:
    known = [value for value in VALUES if value not in ("", None, NULL_PARTITION)]
    rows = pa.table({"k": pa.array(known), "id": pa.array(range(len(known)), pa.int32())})
    pq.write_to_dataset(rows, tmp_path / "theirs", partition_cols=["k"])
    read_back = sorted(read(partitioned(tmp_path / "theirs", "parquet")), key=lambda row: row["id"])
    assert [row["k"] for row in read_back] == known
