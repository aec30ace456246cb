"""The same rows as pyarrow, pandas, polars, DuckDB, Spark and penstock write them: one table over all of
them, on every reader.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal as Exact
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    Array,
    DataType,
    Decimal,
    Row,
)
from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedBackend
from penstock.engine.bounded.file_relations import FileRelation, file_relation
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.connectors.filesystem.partition_paths import NULL_PARTITION
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.planner.sql_generator.query import ScannedTable
from tests.harness.reading import read, table_of
from tests.unit.engine.bounded.test_one_answer import bounded, streamed
from tests.unit.engine.connectors.filesystem.test_partition_paths import VALUES, partitioned, write

KINDS: dict[str, tuple[pa.DataType, DataType]] = {
    "id": (pa.int64(), BIGINT),
    "small": (pa.int8(), TINYINT),
    "byte": (pa.uint8(), SMALLINT),
    "x": (pa.float64(), DOUBLE),
    "price": (pa.decimal128(10, 3), Decimal(12, 3)),
    "name": (pa.string(), STRING),
    "kind": (pa.dictionary(pa.int32(), pa.string()), STRING),
    "day": (pa.date32(), DATE),
    "ts": (pa.timestamp("us"), TIMESTAMP),
    "instant": (pa.timestamp("us", "Asia/Tokyo"), TIMESTAMP_LTZ),
    "ok": (pa.bool_(), BOOLEAN),
    "raw": (pa.binary(), BINARY),
    "items": (pa.list_(pa.int32()), Array(INT)),
    "deep": (pa.struct([("a", pa.int64()), ("b", pa.string())]), Row((("a", BIGINT), ("b", STRING)))),
    "none": (pa.null(), INT),
}
NATIVE = tuple(name for name in KINDS if name not in ("id", "small", "ts", "instant", "raw", "items", "deep"))
"""What backends read of all the files themselves: pandas has DOUBLE for integers with NULL, Spark INT96
for instants.
"""

_TIME = datetime(2024, 1, 2, 3, 4, 5, 678901)
_FIRST = (
    1,
    1,
    0,
    1.5,
    Exact("1.239"),
    "é",
    "a",
    date(2024, 2, 29),
    _TIME,
    _TIME.replace(tzinfo=UTC),
    True,
    b"\x00\xff",
    [1, None],
    {"a": 1, "b": "x"},
    None,
)
_OLD = (date(1582, 10, 4), datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC))
_SECOND = (
    2,
    -128,
    255,
    float("-inf"),
    Exact("-99999.999"),
    "",
    "b",
    *_OLD,
    False,
    b"",
    [],
    {"a": None, "b": None},
    None,
)
ROWS: list[tuple[Any, ...]] = [_FIRST, _SECOND, (None,) * len(KINDS)]


def arrow() -> pa.Table:
    return pa.table(
        {
            name: pa.array(values, kind)
            for (name, (kind, _)), values in zip(KINDS.items(), zip(*ROWS, strict=True), strict=True)
        }
    )


def by_pyarrow(directory: Path) -> None:
    pq.write_table(arrow(), directory / "plain.parquet", compression="none", use_dictionary=False)
    packed = {"id": "DELTA_BINARY_PACKED", "name": "DELTA_BYTE_ARRAY", "x": "BYTE_STREAM_SPLIT"}
    how: dict[str, Any] = {"use_dictionary": False, "column_encoding": packed, "data_page_version": "2.0"}
    pq.write_table(arrow(), directory / "packed.parquet", compression="gzip", **how)
    pq.write_table(arrow(), directory / "old.parquet", version="1.0", compression="lz4", store_schema=False)


def by_pandas(directory: Path) -> None:
    import pandas as pd

    columns = dict(zip(KINDS, zip(*ROWS, strict=True), strict=True))
    small = {
        name: pd.array(columns.pop(name), dtype=kind) for name, kind in (("small", "Int8"), ("byte", "UInt8"))
    }
    frame = pd.DataFrame({**{name: list(values) for name, values in columns.items()}, **small})
    frame["id"] = frame["id"].astype("float64")
    frame.to_parquet(directory / "pandas.parquet", index=True)


def by_duckdb(directory: Path) -> None:
    rows = arrow()  # noqa: F841  DuckDB reads it by its name
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        connection.execute(f"COPY (SELECT * FROM rows) TO '{directory}/duckdb.parquet' (FORMAT parquet)")
        connection.execute(
            f"COPY (SELECT * FROM rows) TO '{directory}/duckdb2.parquet' (FORMAT parquet, PARQUET_VERSION V2, CODEC zstd)"
        )


def by_polars(directory: Path) -> None:
    shutil.copy(Path(__file__).parent / "written" / "polars.parquet", directory)


WRITERS = (by_pyarrow, by_pandas, by_duckdb, by_polars)


def table_over(directory: Path) -> CatalogTable:
    columns = {name: kind for name, (_, kind) in KINDS.items()}
    return table_of(columns, {"connector": "filesystem", "path": str(directory), "format": "parquet"})


def check_readers(backend: BoundedBackend, directory: Path, native: tuple[str, ...]) -> None:
    table, files = table_over(directory), len(list(directory.rglob("*.parquet")))
    names = list(KINDS)
    for wanted in (tuple(names), native):
        places = tuple(names.index(name) for name in wanted)
        expected = sorted((tuple(row[place] for place in places) for row in ROWS * files), key=repr)
        assert sorted(streamed(table, places), key=repr) == expected
        assert sorted(bounded(backend, table, places, "Asia/Kolkata"), key=repr) == expected
    assert isinstance(
        file_relation(ScannedTable(table, tuple(names.index(name) for name in native))), FileRelation
    )


@pytest.fixture(scope="module")
def backends() -> Iterator[BoundedBackends]:
    made = BoundedBackends(Services(RegisteredTables()))
    yield made
    made.close()


def test_duckdb(backends: BoundedBackends, tmp_path: Path) -> None:
    for by in WRITERS:
        by(tmp_path)
    check_readers(backends.backend("duckdb"), tmp_path, NATIVE)


@pytest.mark.spark
def test_spark(backends: BoundedBackends, tmp_path: Path) -> None:
    """Spark reads all files, and its own are read by all; with INT96 for instants, and with microseconds."""
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    spark = backends.backend("spark")
    session = SESSIONS.new("UTC")
    simpler = {"byte": pa.int16(), "kind": pa.string(), "none": pa.int32()}  # what Spark has of them
    plain = arrow().cast(
        pa.schema([pa.field(name, simpler.get(name, kind)) for name, (kind, _) in KINDS.items()])
    )
    for kind in ("INT96", "TIMESTAMP_MICROS"):
        session.conf.set("spark.sql.parquet.outputTimestampType", kind)
        session.createDataFrame(plain).coalesce(1).write.parquet(f"file://{tmp_path}/{kind}")
    for by in WRITERS:
        by(tmp_path)
    check_readers(spark, tmp_path, NATIVE)
    check_readers(backends.backend("duckdb"), tmp_path, NATIVE)
    check_partitions(session, spark, tmp_path / "partitions")


def check_partitions(session: Any, spark: BoundedBackend, directory: Path) -> None:
    known = [value for value in VALUES if value != ""]  # which Spark writes as NULL, and cannot read
    write(partitioned(directory / "ours", "parquet"), known, pa.string())
    rows = session.read.schema("id INT, k STRING").parquet(f"file://{directory}/ours").collect()
    assert [row["k"] for row in sorted(rows, key=lambda row: row["id"])] == known
    theirs = [value for value in known if value != NULL_PARTITION]  # which Spark writes over its NULL
    frame = session.createDataFrame(pa.table({"id": pa.array(range(len(theirs)), pa.int32()), "k": theirs}))
    frame.write.partitionBy("k").parquet(f"file://{directory}/theirs")
    for name, expected in (("ours", known), ("theirs", theirs)):
        table = partitioned(directory / name, "parquet")
        assert [row["k"] for row in sorted(read(table), key=lambda row: row["id"])] == expected
        assert [k for k, _ in sorted(bounded(spark, table, (0, 1)), key=lambda row: row[1])] == expected
