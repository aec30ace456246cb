"""UUID and FIXED columns of Iceberg tables: text and bytes to SQL, and back."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.types import FixedType, NestedField, UUIDType

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import BIGINT, BINARY, STRING, DataType
from penstock.engine.api.epoch_target import DELETED
from penstock.engine.connectors.iceberg.catalog import IcebergCatalog
from penstock.engine.connectors.iceberg.stored_types import as_stored
from penstock.engine.formats.file_types import read_as
from tests.unit.engine.connectors.iceberg.iceberg_files import catalog_options
from tests.unit.engine.connectors.iceberg.test_foreign_tables import made, read, write

IDS = [str(uuid.UUID(int=number * 0x0123456789ABCDEF0FEDCBA987654321 % (1 << 128))) for number in range(1, 5)]


def test_texts_of_uuids_and_back() -> None:
    texts = pa.array([*IDS, None, "ABCDEF00-0000-0000-0000-00000000000f"])
    stored = as_stored(texts, pa.uuid(), "u", "t")
    assert [None if value is None else str(value) for value in stored.to_pylist()] == [
        *IDS,
        None,
        "abcdef00-0000-0000-0000-00000000000f",
    ]
    for cut in (stored, stored.slice(2), stored.slice(2, 1), stored.slice(0, 0)):
        assert read_as(cut, STRING).to_pylist() == [
            None if value is None else str(value) for value in cut.to_pylist()
        ]
    for wrong in ("", "x" * 36, IDS[0][:-1], "0" * 32):
        with pytest.raises(PenstockError, match="is no UUID") as raised:
            as_stored(pa.array([None, wrong]), pa.uuid(), "u", "t")
        assert raised.value.code == "DAT-5314"


def test_bytes_of_one_length() -> None:
    fixed = as_stored(pa.array([b"abcd", None]), pa.binary(4), "f", "t")
    assert (fixed.type, fixed.to_pylist()) == (pa.binary(4), [b"abcd", None])
    with pytest.raises(PenstockError, match="has not 4 bytes"):
        as_stored(pa.array([b"abc"]), pa.binary(4), "f", "t")


def test_a_table_of_uuids(tmp_path: Path) -> None:
    table = made(
        tmp_path,
        NestedField(3, "u", UUIDType(), required=False),
        NestedField(4, "f", FixedType(2), required=False),
    )
    first = pa.array([uuid.UUID(IDS[0]).bytes], pa.binary(16))
    stored = pa.ExtensionArray.from_storage(pa.uuid(), first)
    table.append(pa.table({"k": [1], "v": ["a"], "u": stored, "f": pa.array([b"ab"], pa.binary(2))}))
    columns: dict[str, DataType] = {"k": BIGINT, "u": STRING, "f": BINARY}
    batch = pa.record_batch({"k": [2, 3], "u": [IDS[1], None], "f": pa.array([b"cd", None], pa.binary())})
    write(tmp_path, batch, columns=columns)
    assert read(tmp_path, columns) == [(1, IDS[0], b"ab"), (2, IDS[1], b"cd"), (3, None, None)]
    changed = pa.record_batch({DELETED: [False, True], "k": [1, 2], "u": [IDS[2], None], "f": [b"ef", None]})
    write(tmp_path, changed, columns=columns, key=("k",))
    assert read(tmp_path, columns) == [(1, IDS[2], b"ef"), (3, None, None)]
    described = IcebergCatalog({"type": "iceberg", **catalog_options(tmp_path)}).table("t", "db", "t")
    assert described is not None
    assert [field.type for field in described.schema] == [BIGINT, STRING, STRING, BINARY]


def test_keys_of_such_types(tmp_path: Path) -> None:
    made(
        tmp_path,
        NestedField(3, "u", UUIDType(), required=False),
        NestedField(4, "f", FixedType(2), required=False),
    )
    with pytest.raises(PenstockError, match="DAT-5305"):
        write(tmp_path, columns={"v": STRING, "u": STRING}, key=("u",))
    columns: dict[str, DataType] = {"v": STRING, "f": BINARY}
    for value in ("old", "new"):
        batch = pa.record_batch({DELETED: [False, False], "v": [value] * 2, "f": [b"ab", b"cd"]})
        write(tmp_path, batch, columns=columns, key=("f",))
    assert read(tmp_path, columns) == [("new", b"ab"), ("new", b"cd")]
