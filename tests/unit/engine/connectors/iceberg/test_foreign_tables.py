"""Iceberg tables of other tools: columns go by their ids, delete files count, partitions are hidden. What the
library cannot read or write is refused with a reason, never read wrong.
"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import transforms
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, LongType, NestedField, StringType, TimestampType, UUIDType

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, DATE, STRING, TIMESTAMP, DataType
from penstock.engine.api.epoch_target import DELETED
from penstock.engine.connectors.iceberg.iceberg_table import opened_catalog, refused
from penstock.engine.connectors.iceberg.source import IcebergSource
from tests.unit.engine.connectors.delta.delta_files import read_from, request, rows, upserts
from tests.unit.engine.connectors.iceberg.foreign_tables import delete_at, delete_equal, edit_metadata
from tests.unit.engine.connectors.iceberg.iceberg_files import (
    WRITER,
    catalog_options,
    declared,
    loaded,
    target,
    there,
)

KEY = ("k",)
STREAM = {"scan.mode": "full"}


def made(path: Path, *more: NestedField, version: str = "2") -> Any:
    """Create db.t with k, v and more columns, as the library does."""
    catalog = opened_catalog(catalog_options(path))
    catalog.create_namespace("db")
    fields = (
        NestedField(1, "k", LongType(), required=False),
        NestedField(2, "v", StringType(), required=False),
    )
    return catalog.create_table("db.t", Schema(*fields, *more), properties={"format-version": version})


def three(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "v": [f"v{key}" for key in keys]})


def read(path: Path, columns: dict[str, DataType] | None = None, **options: str) -> list[tuple[Any, ...]]:
    source = IcebergSource(request(declared(path, columns, options=options)))
    return sorted((row[1:] for row in read_from(source, *source.splits())[0]), key=str)


def write(path: Path, *batches: pa.RecordBatch, **how: Any) -> None:
    """Write one more epoch."""
    one = target(declared(path, **how))
    one.commit(WRITER, one.last_committed(WRITER) + 1, batches)


def refusal(act: Any, *args: Any, **how: Any) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        act(*args, **how)
    assert not raised.value.retriable
    return raised.value


@pytest.mark.parametrize("version", ["1", "2"])
def test_columns_go_by_their_ids(tmp_path: Path, version: str) -> None:
    table = made(tmp_path, version=version)
    table.append(three(1))
    first = table.current_snapshot().snapshot_id
    with table.update_schema() as update:
        update.rename_column("v", "former")
    with table.update_schema() as update:
        update.add_column("v", StringType())
        update.move_first("v")
    table.append(pa.table({"v": ["new"], "k": [2], "former": ["f"]}))
    columns: dict[str, DataType] = {"k": BIGINT, "v": STRING, "former": STRING}
    for options in ({}, STREAM):
        assert read(tmp_path, columns, **options) == [(1, None, "v1"), (2, "new", "f")]
    # another column has its name now, also in a snapshot of before
    assert read(tmp_path, **{"scan.snapshot-id": str(first)}) == [(1, None)]
    with table.update_schema() as update:
        update.delete_column("former")
    with table.update_schema() as update:
        update.add_column("former", StringType())
    assert read(tmp_path, columns) == [(1, None, None), (2, "new", None)]
    write(tmp_path, *rows(3))
    assert read(tmp_path, columns)[2] == (3, "v3", None)


def test_files_of_deleted_positions(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append(three(1, 2, 3))
    first = table.current_snapshot().snapshot_id
    (task,) = table.scan().plan_files()
    delete_at(tmp_path, task.file.file_path, 1)
    for options in ({}, STREAM):
        assert read(tmp_path, **options) == [(1, "v1"), (3, "v3")]
    after = {"scan.mode": "from-snapshot", "scan.snapshot-id": str(first)}
    assert refusal(read, tmp_path, **after).code == "DAT-5308"
    # a file that is written anew keeps none of its deleted rows
    write(tmp_path, *upserts(k1="new", k2="again"), key=KEY)
    assert there(tmp_path) == read(tmp_path) == [(1, "new"), (2, "again"), (3, "v3")]


def test_files_of_deleted_values(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.append(three(1, 2, 3))
    first = table.current_snapshot().snapshot_id
    delete_equal(tmp_path, "k", 1, 2)
    for options in ({}, STREAM):
        assert read(tmp_path, **options) == [(1, "v1"), (3, "v3")]
    assert read(tmp_path, **{"scan.snapshot-id": str(first)}) == [(1, "v1"), (2, "v2"), (3, "v3")]
    # rows that are only appended do not ask what was deleted
    write(tmp_path, *rows(4))
    assert loaded(tmp_path).current_snapshot().summary.operation.value == "append"


def test_format_version_3(tmp_path: Path) -> None:
    made(tmp_path).append(three(1, 2))

    def with_default(metadata: dict[str, Any]) -> None:
        column = {"id": 3, "name": "d", "type": "string", "required": False}
        metadata["schemas"][0]["fields"].append({**column, "initial-default": "old", "write-default": "new"})
        metadata["last-column-id"] = 3

    edit_metadata(tmp_path, with_default)
    # rows from before a column have its default
    columns: dict[str, DataType] = {"k": BIGINT, "v": STRING, "d": STRING}
    assert read(tmp_path, columns) == [(1, "v1", "old"), (2, "v2", "old")]
    for key in ((), KEY):
        error = refusal(write, tmp_path, *(upserts(k1="x") if key else rows(9)), key=key)
        assert (error.code, "cannot be written" in error.message) == ("DAT-5305", True)
    unknown = {"id": 3, "name": "d", "type": "variant", "required": False}
    edit_metadata(tmp_path, lambda metadata: metadata["schemas"][0]["fields"].__setitem__(2, unknown))
    assert refusal(read, tmp_path).code == "DAT-5305"


def test_a_library_that_is_missing() -> None:
    error = refused("t", "written", type("NotInstalledError", (Exception,), {})("pyiceberg_core"))
    assert (error.code, error.hint) == ("DAT-5300", "pip install 'penstock[iceberg]'")


_MORE = (
    NestedField(3, "at", TimestampType(), required=False),
    NestedField(4, "d", DateType(), required=False),
    NestedField(5, "u", UUIDType(), required=False),
)
_COLUMNS: dict[str, DataType] = {"k": BIGINT, "v": STRING, "at": TIMESTAMP, "d": DATE}
_ROWS = [
    (1, "a b/ü%", datetime(1969, 12, 31, 23, 0, 0, 1), date(1969, 12, 31)),
    (2, "", datetime(2026, 1, 1), date(2026, 1, 1)),
    (3, None, None, None),
    (-3, "=x&:", datetime(1, 1, 1), date(9999, 12, 31)),
]


@pytest.mark.parametrize(
    ("column", "transform"),
    [
        ("k", transforms.BucketTransform(4)),
        ("v", transforms.TruncateTransform(2)),
        ("at", transforms.DayTransform()),
        ("d", transforms.MonthTransform()),
        ("v", transforms.IdentityTransform()),
        ("v", transforms.VoidTransform()),
    ],
    ids=str,
)
def test_hidden_partitions_of_odd_values(tmp_path: Path, column: str, transform: Any) -> None:
    pytest.importorskip("pyiceberg_core", reason="transforms need it")
    table = made(tmp_path, *_MORE)
    with table.update_spec() as spec:
        spec.add_field(column, transform, "part")
    schema = pa.schema(
        [("k", pa.int64()), ("v", pa.string()), ("at", pa.timestamp("us")), ("d", pa.date32())]
    )
    batch = pa.record_batch([pa.array(values) for values in zip(*_ROWS, strict=True)], schema=schema)
    write(tmp_path, batch, columns=_COLUMNS)
    assert read(tmp_path, _COLUMNS) == sorted(_ROWS, key=str)
    gone = pa.array([False, True, False, False])
    changed = batch.set_column(1, "v", pa.array(["new"] * 4))
    named = pa.RecordBatch.from_arrays([gone, *changed.columns], [DELETED, *schema.names])
    write(tmp_path, named, columns=_COLUMNS, key=KEY)
    assert read(tmp_path, _COLUMNS) == sorted(((k, "new", at, d) for k, _, at, d in _ROWS if k != 2), key=str)
