"""Delta tables as other tools write them: a log of any protocol, with features that the library does not write."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

_MAGIC = 1681511377
LONG_AND_TEXT = [("k", "long", {}), ("v", "string", {})]
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def foreign(
    path: Path,
    rows: pa.Table | None,
    fields: Sequence[tuple[str, str, dict[str, Any]]] = LONG_AND_TEXT,
    *,
    reader: Sequence[str] = (),
    writer: Sequence[str] = (),
    legacy: tuple[int, int] | None = None,
    parts: Sequence[str] = (),
    **configuration: str,
) -> Path:
    """Write version 0 of a table: one data file, or none. ``legacy``: versions of a protocol without features.
    Names of settings have a dot for each underscore.
    """
    (path / "_delta_log").mkdir(parents=True)
    protocol: dict[str, Any] = {"minReaderVersion": 3 if reader else 1, "minWriterVersion": 7}
    protocol["writerFeatures"] = [*reader, *writer]
    if reader:
        protocol["readerFeatures"] = list(reader)
    if legacy is not None:
        protocol = {"minReaderVersion": legacy[0], "minWriterVersion": legacy[1]}
    schema = [{"name": name, "type": kind, "nullable": True, "metadata": more} for name, kind, more in fields]
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE"}},
        {"protocol": protocol},
        {
            "metaData": {
                "id": path.name,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": schema}),
                "partitionColumns": list(parts),
                "configuration": {name.replace("_", "."): value for name, value in configuration.items()},
                "createdTime": 1,
            }
        },
    ]
    if rows is not None:
        pq.write_table(rows, path / "a.parquet")
        actions.append(added(path))
    add_version(path, actions)
    return path


def added(path: Path, vector: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the action that adds the data file, with some of its rows deleted by a vector."""
    size = (path / "a.parquet").stat().st_size
    action = {"path": "a.parquet", "partitionValues": {}, "size": size, "modificationTime": 1}
    stats = json.dumps({"numRecords": pq.read_metadata(path / "a.parquet").num_rows})
    more = {} if vector is None else {"deletionVector": vector, "stats": stats}
    return {"add": {**action, "dataChange": True, **more}}


def add_version(path: Path, actions: Sequence[dict[str, Any]]) -> None:
    """Write the next version."""
    log = path / "_delta_log"
    number = len(list(log.glob("*.json")))
    (log / f"{number:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def delete_by_vector(path: Path, *rows: int) -> None:
    """Write a version in which some rows of the data file are deleted."""
    size = (path / "a.parquet").stat().st_size
    gone = {"path": "a.parquet", "partitionValues": {}, "size": size, "deletionTimestamp": 1}
    add_version(
        path,
        [
            {"commitInfo": {"timestamp": 2, "operation": "DELETE"}},
            {"remove": {**gone, "dataChange": True, "extendedFileMetadata": True}},
            added(path, deletion_vector(rows)),
        ],
    )


def deletion_vector(rows: Sequence[int]) -> dict[str, Any]:
    """Return a vector that is in the log itself: a roaring bitmap of one container, as base 85."""
    container = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    bitmap = struct.pack("<iqI", _MAGIC, 1, 0) + container
    # a multiple of four bytes has one spelling
    text = _base_85(bitmap + b"\0" * (-len(bitmap) % 4))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(bitmap), "cardinality": len(rows)}


def vector_file(path: Path, rows: Sequence[int], prefix: str = "") -> dict[str, Any]:
    """Write a vector into a file behind another one; return where it is. Its bitmap is another library's."""
    bitmap = struct.pack("<i", _MAGIC) + BitMap64(rows).serialize()
    name = uuid4()
    place = path / prefix / f"deletion_vector_{name}.bin"
    place.parent.mkdir(exist_ok=True)
    before = b"\x01" + b"another vector"
    framed = struct.pack(">i", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    place.write_bytes(before + framed)
    text = prefix + _base_85(name.bytes)
    size = {"offset": len(before), "sizeInBytes": len(bitmap), "cardinality": len(rows)}
    return {"storageType": "u", "pathOrInlineDv": text, **size}


def _base_85(octets: bytes) -> str:
    return base64.b85encode(octets).decode().translate(str.maketrans(_B85, _Z85))
