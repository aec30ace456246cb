"""Iceberg tables as other tools write them: delete files, and metadata of a newer format version."""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate
from pyiceberg.typedef import Record

from tests.unit.engine.connectors.iceberg.iceberg_files import loaded

_PATH, _POSITION = "2147483546", "2147483545"


class _DeleteManifestWriter(ManifestWriterV2):
    """The library writes manifests of data files only."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


@dataclass(frozen=True)
class Written:
    """A file to commit. ``partition``: its values. ``ids``: the columns of equality deletes. ``path``: of a file
    that is there."""

    rows: pa.Table
    content: DataFileContent = DataFileContent.DATA
    ids: tuple[int, ...] | None = None
    partition: tuple[Any, ...] = ()
    spec: int | None = None
    path: str | None = None


def positions_of(file: str, *positions: int) -> pa.Table:
    """Return the rows of a file of deleted positions."""
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": _PATH}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": _POSITION}),
        ]
    )
    return pa.table([[file] * len(positions), list(positions)], schema=schema)


def delete_at(path: Path, file: str, *positions: int) -> None:
    """Commit a file of positions that are deleted of a data file."""
    commit(path, Written(positions_of(file, *positions), DataFileContent.POSITION_DELETES))


def delete_equal(path: Path, column: str, field_id: int, *values: int) -> None:
    """Commit a file of values whose rows are deleted, as Flink writes for a stream of changes."""
    schema = pa.schema([pa.field(column, pa.int64(), True, {"PARQUET:field_id": str(field_id)})])
    deleted = pa.table([list(values)], schema=schema)
    commit(path, Written(deleted, DataFileContent.EQUALITY_DELETES, (field_id,)))


def puffin(file: str, *positions: int) -> bytes:
    """Return a file of one deletion vector: a roaring bitmap of one container in a blob of Puffin."""
    container = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16)
    container += struct.pack(f"<{len(positions)}H", *positions)
    vector = b"\xd1\xd3\x39\x64" + struct.pack("<qI", 1, 0) + container
    blob = struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    described = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(blob),
        "properties": {"referenced-data-file": file, "cardinality": str(len(positions))},
    }
    footer = json.dumps({"blobs": [described], "properties": {}}).encode()
    return b"PFA1" + blob + b"PFA1" + footer + struct.pack("<II", len(footer), 0) + b"PFA1"


def next_file(path: Path, number: int = 0) -> str:
    """Return the URL that the ``number``-th file of the next commit has."""
    return f"file://{path}/written-{len(loaded(path).metadata.snapshots)}-{number}.parquet"


def commit(path: Path, *files: Written) -> int:
    """Commit data files and files of deletes in one snapshot, as Flink's sink does; return the snapshot."""
    found = loaded(path)
    newest = found.current_snapshot()
    parent = None if newest is None else newest.snapshot_id
    number = (parent or 1000) + 1
    entries = [_entry(found, next_file(path, at), file, number) for at, file in enumerate(files)]
    manifests = [] if newest is None else list(newest.manifests(found.io))
    by_kind: dict[tuple[int, bool], list[ManifestEntry]] = {}
    for entry in entries:
        is_data = entry.data_file.content == DataFileContent.DATA
        by_kind.setdefault((entry.data_file.spec_id, is_data), []).append(entry)
    for (spec, is_data), some in by_kind.items():
        output = found.io.new_output(f"file://{path}/written-{number}-{spec}-{is_data}.avro")
        kind = ManifestWriterV2 if is_data else _DeleteManifestWriter
        with kind(found.specs()[spec], found.schema(), output, number, "null") as writer:
            for entry in some:
                writer.add_entry(entry)
        manifests.insert(0, writer.to_manifest_file())
    listed, sequence = f"file://{path}/written-{number}-list.avro", found.metadata.last_sequence_number + 1
    with write_manifest_list(2, found.io.new_output(listed), number, parent, sequence, "null") as lists:
        lists.add_manifests(manifests)
    only_data = all(file.content == DataFileContent.DATA for file in files)
    only_deletes = all(file.content != DataFileContent.DATA for file in files)
    operation = Operation.APPEND if only_data else Operation.DELETE if only_deletes else Operation.OVERWRITE
    snapshot = Snapshot(
        snapshot_id=number,
        parent_snapshot_id=parent,
        sequence_number=sequence,
        timestamp_ms=found.metadata.last_updated_ms + 1,
        manifest_list=listed,
        summary=Summary(operation),
        schema_id=found.metadata.current_schema_id,
    )
    found.catalog.commit_table(
        found,
        (AssertRefSnapshotId(ref="main", snapshot_id=parent),),
        (
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate(ref_name="main", snapshot_id=number, type="branch"),
        ),
    )
    return number


def _entry(found: Any, url: str, file: Written, snapshot: int) -> ManifestEntry:
    place, rows = Path((file.path or url).removeprefix("file://")), file.rows
    if file.path is None:
        ids = {column.name: column.field_id for column in found.schema().fields}
        schema = pa.schema(
            [
                column
                if column.metadata
                else column.with_metadata({"PARQUET:field_id": str(ids[column.name])})
                for column in rows.schema
            ]
        )
        pq.write_table(rows.cast(schema), place)
    data_file = DataFile.from_args(
        content=file.content,
        file_path=f"file://{place}",
        file_format=FileFormat.PUFFIN if place.suffix == ".puffin" else FileFormat.PARQUET,
        partition=Record(*file.partition),
        record_count=rows.num_rows,
        file_size_in_bytes=place.stat().st_size,
        equality_ids=None if file.ids is None else list(file.ids),
    )
    data_file.spec_id = found.spec().spec_id if file.spec is None else file.spec
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=snapshot, data_file=data_file
    )


def edit_metadata(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change a table's newest metadata in place, to what the library does not write: format version 3."""
    with sqlite3.connect(path / "catalog.db") as catalog:
        ((location,),) = catalog.execute("SELECT metadata_location FROM iceberg_tables")
    file = Path(location.removeprefix("file://"))
    metadata = json.loads(file.read_text())
    metadata["format-version"], metadata["next-row-id"] = 3, 100
    for snapshot in metadata["snapshots"]:
        snapshot |= {"first-row-id": 0, "added-rows": 3}
    edit(metadata)
    file.write_text(json.dumps(metadata))
