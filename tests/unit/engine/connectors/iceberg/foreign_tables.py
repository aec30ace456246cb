"""Iceberg tables as other tools write them: delete files, and metadata of a newer format version."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
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


def delete_at(path: Path, file: str, *positions: int) -> None:
    """Commit a file of positions that are deleted of a data file."""
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": _PATH}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": _POSITION}),
        ]
    )
    deleted = pa.table([[file] * len(positions), list(positions)], schema=schema)
    _commit_deletes(path, DataFileContent.POSITION_DELETES, deleted, None)


def delete_equal(path: Path, column: str, field_id: int, *values: int) -> None:
    """Commit a file of values whose rows are deleted, as Flink writes for a stream of changes."""
    schema = pa.schema([pa.field(column, pa.int64(), True, {"PARQUET:field_id": str(field_id)})])
    deleted = pa.table([list(values)], schema=schema)
    _commit_deletes(path, DataFileContent.EQUALITY_DELETES, deleted, [field_id])


def _commit_deletes(path: Path, content: DataFileContent, rows: pa.Table, ids: list[int] | None) -> None:
    found = loaded(path)
    newest = found.current_snapshot()
    number = newest.snapshot_id + 1
    place = path / f"deletes-{number}"
    pq.write_table(rows, f"{place}.parquet")
    file = DataFile.from_args(
        content=content,
        file_path=f"file://{place}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows.num_rows,
        file_size_in_bytes=Path(f"{place}.parquet").stat().st_size,
        equality_ids=ids,
    )
    output = found.io.new_output(f"file://{place}-manifest.avro")
    with _DeleteManifestWriter(found.spec(), found.schema(), output, number, "null") as writer:
        writer.add_entry(
            ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file)
        )
    manifests = [writer.to_manifest_file(), *newest.manifests(found.io)]
    listed, sequence = f"file://{place}-list.avro", found.metadata.last_sequence_number + 1
    with write_manifest_list(
        2, found.io.new_output(listed), number, newest.snapshot_id, sequence, "null"
    ) as lists:
        lists.add_manifests(manifests)
    snapshot = Snapshot(
        snapshot_id=number,
        parent_snapshot_id=newest.snapshot_id,
        sequence_number=sequence,
        timestamp_ms=newest.timestamp_ms + 1,
        manifest_list=listed,
        summary=Summary(Operation.DELETE),
        schema_id=found.metadata.current_schema_id,
    )
    found.catalog.commit_table(
        found,
        (AssertRefSnapshotId(ref="main", snapshot_id=newest.snapshot_id),),
        (
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate(ref_name="main", snapshot_id=number, type="branch"),
        ),
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
