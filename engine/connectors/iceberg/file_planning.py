"""The data files of a snapshot, each with the deletes that apply to it.

The library plans data files and deleted positions. It knows no equality deletes: those are found here, by the
partitions and sequence numbers of Iceberg's specification.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.connectors.iceberg.equality_deletes import EqualityDeletes


@dataclass(frozen=True)
class PlannedFile:
    """A data file. ``task``: the library's, with its files of deleted positions. ``equality``: the equality
    deletes that are newer than the file.
    """

    task: Any
    sequence: int
    equality: tuple[EqualityDeletes, ...] = ()

    @property
    def path(self) -> str:
        return str(self.task.file.file_path)

    @property
    def deletes(self) -> frozenset[str]:
        """The paths of its files of deletes."""
        positions = {str(file.file_path) for file in self.task.delete_files}
        return frozenset(positions.union(*(deletes.paths for deletes in self.equality)))


@dataclass(frozen=True)
class SnapshotContent:
    """What a snapshot has done: the data files it has added, whether it has removed any, and whether it has
    added deletes.
    """

    added: tuple[PlannedFile, ...]
    removes_rows: bool


def plan_snapshot(found: Any, snapshot: Any, row_filter: Any) -> list[PlannedFile]:
    """Return the data files that a snapshot has, in the order of their paths. The library's errors are raised
    as they are.

    The filter leaves out data files, and no deletes: a delete may have other columns than the filter tests.
    """
    from pyiceberg.manifest import ManifestContent
    from pyiceberg.table import ManifestGroupPlanner

    manifests = snapshot.manifests(found.io)
    sequences: dict[str, int] = {}
    planner = ManifestGroupPlanner(found.metadata, found.io, row_filter)
    tasks = planner.plan_files(manifests, lambda entry: _is_planned(entry, sequences))
    deletes = [manifest for manifest in manifests if manifest.content == ManifestContent.DELETES]
    # most tables have none
    indexes = _equality_deletes(found, deletes) if deletes and tasks else {}
    files = []
    for task in tasks:
        sequence = sequences[task.file.file_path]
        own = _partition_of(found, task.file)
        # of another partition: only deletes of no partition at all
        groups = [*indexes.get(own, ()), *(indexes.get(None, ()) if own is not None else ())]
        newer = tuple(group for group in groups if group.newest > sequence)
        files.append(PlannedFile(task, sequence, newer))
    return sorted(files, key=_path_of)


def _path_of(file: PlannedFile) -> str:
    return file.path


def _is_planned(entry: Any, sequences: dict[str, int]) -> bool:
    """Return whether the library may plan an entry; note the sequence number of a data file."""
    from pyiceberg.manifest import DataFileContent

    if entry.data_file.content == DataFileContent.DATA:
        sequences[entry.data_file.file_path] = entry.sequence_number or 0
    return bool(entry.data_file.content != DataFileContent.EQUALITY_DELETES)


def _equality_deletes(found: Any, manifests: list[Any]) -> dict[Any, list[EqualityDeletes]]:
    """Return the equality deletes by partition; None is that of all partitions."""
    from pyiceberg.manifest import DataFileContent

    groups: dict[tuple[Any, tuple[int, ...]], EqualityDeletes] = {}
    for manifest in manifests:
        for entry in manifest.fetch_manifest_entry(found.io):
            file = entry.data_file
            if file.content != DataFileContent.EQUALITY_DELETES or not file.record_count:
                continue
            ids = tuple(sorted(file.equality_ids or ()))
            group = groups.setdefault((_partition_of(found, file), ids), EqualityDeletes(ids))
            group.add(file, entry.sequence_number or 0)
    partitions: dict[Any, list[EqualityDeletes]] = {}
    for (partition, _), group in groups.items():
        partitions.setdefault(partition, []).append(group)
    return partitions


def has_equality_deletes(found: Any) -> bool:
    """Return whether the newest snapshot of a table has equality deletes."""
    from pyiceberg.manifest import DataFileContent, ManifestContent

    snapshot = found.current_snapshot()
    manifests = () if snapshot is None else snapshot.manifests(found.io)
    return any(
        entry.data_file.content == DataFileContent.EQUALITY_DELETES
        for manifest in manifests
        if manifest.content == ManifestContent.DELETES
        for entry in manifest.fetch_manifest_entry(found.io)
    )


def _partition_of(found: Any, file: Any) -> Any:
    """Return a file's partition: its specification and values, None for a file of an unpartitioned one."""
    from pyiceberg.transforms import VoidTransform

    number = file.spec_id or 0
    spec = found.metadata.specs()[number]
    if all(isinstance(field.transform, VoidTransform) for field in spec.fields):
        return None
    return number, file.partition


def content_of(found: Any, snapshot: Any) -> SnapshotContent:
    """Return what a snapshot has added and removed, by its own entries: the operation that its writer names
    may say less.
    """
    from pyiceberg.manifest import DataFileContent
    from pyiceberg.table import FileScanTask

    added, removes = [], False
    for entry in _entries(found, snapshot):
        is_data = entry.data_file.content == DataFileContent.DATA
        if is_data and entry.status.name == "ADDED":
            added.append(PlannedFile(FileScanTask(entry.data_file), entry.sequence_number or 0))
        elif is_data or entry.status.name == "ADDED":
            removes = True
    return SnapshotContent(tuple(sorted(added, key=_path_of)), removes)


def _entries(found: Any, snapshot: Any) -> Iterator[Any]:
    """Return the entries that a snapshot has added or removed."""
    for manifest in snapshot.manifests(found.io):
        # the entries of another snapshot's manifest are its own
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in manifest.fetch_manifest_entry(found.io, discard_deleted=False):
            if entry.snapshot_id == snapshot.snapshot_id and entry.status.name != "EXISTING":
                yield entry
