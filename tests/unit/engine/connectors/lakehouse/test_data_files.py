"""Data files: values that are the same in all rows, columns that a file lacks, and any place to go on at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, DATE, INT, STRING
from penstock.engine.connectors.lakehouse.data_files import DataFile, DataFileReader

FIELDS = (Field("P", INT), Field("k", BIGINT), Field("new", STRING))


def opened(
    path: Path, position: dict[str, Any] | None = None, value: Any = "7", **more: Any
) -> DataFileReader:
    file = DataFile(path.name, (("p", value),))
    fields = more.get("fields", FIELDS)
    return DataFileReader(pafs.LocalFileSystem(), str(path), file, fields, position or {})


def written(path: Path) -> Path:
    pq.write_table(pa.table({"k": pa.array(range(10), pa.int64())}), path, row_group_size=4)
    return path


@pytest.mark.parametrize("step", [1, 3, 4, 100])
def test_rows_after_any_position(tmp_path: Path, step: int) -> None:
    path = written(tmp_path / "a.parquet")
    found, position = [], None
    while True:
        reader = opened(path, position)
        rows = reader.poll(step)
        position = reader.position()
        reader.close()
        if rows is None:
            break
        found += rows.to_pylist()
    assert found == [{"P": 7, "k": key, "new": None} for key in range(10)]


def test_only_values_that_are_not_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet")
    reader = opened(path, value=pa.scalar(7), fields=(Field("p", INT),))
    assert sum(rows.num_rows for rows in iter(lambda: reader.poll(100), None)) == 10
    counted = opened(path, fields=())
    assert sum(rows.num_rows for rows in iter(lambda: counted.poll(100), None)) == 10


def test_a_file_that_is_gone_and_a_value_of_another_type(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="DAT-5310"):
        opened(tmp_path / "gone.parquet")
    with pytest.raises(PenstockError, match="DAT-5306"):
        opened(written(tmp_path / "a.parquet"), value="x", fields=(Field("p", DATE),))
