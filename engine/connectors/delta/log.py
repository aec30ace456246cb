"""The log of a Delta table: the files of a version, and what one version added, removed and changed.

A version is one small JSON file, so a reader that follows a table opens one file a version. It asks for no
list of all files. Paths in the log are percent-encoded once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.delta.column_mapping import ColumnMapping
from penstock.engine.connectors.delta.deletion_vectors import vector_of
from penstock.engine.connectors.delta.delta_table import (
    TableStore,
    check_features,
    path_of,
    refused,
)
from penstock.engine.connectors.lakehouse.data_files import DataFile

_LOG = "_delta_log"
_VERSION = re.compile(r"(\d{20})\.(json|checkpoint.*)")


@dataclass(frozen=True)
class LogVersion:
    """One version. Files that were added or removed without a change of rows, as by a compaction, are left
    out. ``changes``: files of the change data feed. ``columns``: the names of the table's columns, and
    ``mapping`` those of files, where the version sets them. ``time_ms``: when it was committed.
    """

    version: int
    operation: str
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    changes: tuple[DataFile, ...] = ()
    columns: tuple[str, ...] | None = None
    mapping: ColumnMapping | None = None
    time_ms: int = 0


class DeltaLog:
    """Reads versions of one table."""

    def __init__(self, table: CatalogTable, store: TableStore) -> None:
        self._table = table
        self._store = store

    def version(self, number: int) -> LogVersion | None:
        """Return a version, ``None`` when it is not there yet. DAT-5309 when it is cleaned up, DAT-5311 when
        the table was replaced by one of fewer versions.
        """
        path = self._store.path(f"{_LOG}/{number:020d}.json")
        try:
            with self._store.filesystem.open_input_stream(path) as file:
                text = file.read()
        except FileNotFoundError:
            self._check_gap(number)
            return None
        except OSError as error:
            raise refused(self._table, "read", error) from error
        return parse_version(number, text.decode().splitlines(), path_of(self._table))

    def _check_gap(self, number: int) -> None:
        try:
            listed = self._store.filesystem.get_file_info(pafs.FileSelector(self._store.path(_LOG)))
        except OSError as error:
            raise refused(self._table, "read", error) from error
        found = (_VERSION.fullmatch(file.base_name) for file in listed)
        newest = max((int(match[1]) for match in found if match is not None), default=-1)
        name = redact_url(path_of(self._table))
        if newest > number:
            raise PenstockError(
                "DAT-5309",
                f"version {number} of the Delta table at {name} is no longer in its log (it is at {newest})",
                hint="begin without the job's state, with 'scan.mode' = 'full'; keep the log longer: "
                "delta.logRetentionDuration",
                kind=Kind.EXTERNAL,
            )
        if newest < number - 1:
            raise PenstockError(
                "DAT-5311",
                f"the Delta table at {name} has versions up to {newest}, and was read up to {number - 1}",
                hint="another table is at this path now: begin without the job's state",
                kind=Kind.EXTERNAL,
            )


def parse_version(number: int, lines: Iterable[str], where: str) -> LogVersion:
    """Return a version from the lines of its file."""
    kinds: dict[str, list[DataFile]] = {"add": [], "remove": [], "cdc": []}
    operation, columns, mapping, time_ms = "", None, None, 0
    for line in lines:
        if not line.strip():
            continue
        # one action a line
        ((kind, action),) = json.loads(line).items()
        if kind == "cdc" or (kind in kinds and action.get("dataChange", True)):
            kinds[kind].append(_data_file(action, where))
        elif kind == "protocol":
            check_features(where, action.get("readerFeatures") or ())
        elif kind == "commitInfo":
            operation = str(action.get("operation", ""))
            # of a table that records them, times of commits in their order
            time_ms = int(action.get("inCommitTimestamp") or action.get("timestamp") or 0)
        elif kind == "metaData":
            columns = tuple(field["name"] for field in json.loads(action["schemaString"])["fields"])
            mapping = ColumnMapping(action["schemaString"], action.get("configuration") or {})
    added, removed, changes = (tuple(sorted(kinds[kind], key=_order)) for kind in ("add", "remove", "cdc"))
    return LogVersion(number, operation, added, removed, changes, columns, mapping, time_ms)


def _order(file: DataFile) -> str:
    return file.path


def _data_file(action: dict[str, Any], where: str) -> DataFile:
    if action.get("partitionValues") is None and "=" in action["path"]:
        raise PenstockError(
            "DAT-5305",
            f"the log of the Delta table at {redact_url(where)} does not say the partition of a removed file",
            detail=redact_url(action["path"]),
            hint="an old writer removed it: begin after this version",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )
    # an empty text is NULL, by the protocol
    values = {name: value or None for name, value in (action.get("partitionValues") or {}).items()}
    return data_file(action["path"], values, where, vector_of(action, where))


def data_file(path: str, values: dict[str, Any], where: str, deleted: Any = None) -> DataFile:
    """Return a file of the log. DAT-5305 for one outside the table's directory."""
    name = redact_url(where)
    if "://" in path or path.startswith("/"):
        raise PenstockError(
            "DAT-5305",
            f"the Delta table at {name} has files outside its directory, as a shallow clone has",
            detail=redact_url(path),
            hint="make a deep clone of it",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )
    return DataFile(unquote(path), tuple(sorted(values.items())), deleted)


def snapshot_files(table: CatalogTable, found: Any, pruning: Any = None) -> tuple[DataFile, ...]:
    """Return the files of a version in the order of their paths. ``pruning``: what the library tests on
    partitions and statistics, to leave files out.
    """
    where = path_of(table)
    try:
        actions = pa.table(found.get_add_actions())
        kept = None if pruning is None else _unpruned_names(found, pruning)
        paths = actions["path"].to_pylist()
        deleted = _deleted_rows(found, paths)
    except Exception as error:  # the library's own classes
        raise refused(table, "listed", error) from error
    values: list[dict[str, Any]] = [{} for _ in paths]
    if "partition" in actions.column_names:
        partitions = actions["partition"].combine_chunks()
        for number, field in enumerate(partitions.type):
            for row, scalar in zip(values, partitions.field(number), strict=True):
                row[field.name] = scalar
    files = [data_file(path, row, where, deleted.get(path)) for path, row in zip(paths, values, strict=True)]
    if kept is not None:
        files = [file for file in files if file.path.rpartition("/")[2] in kept]
    return tuple(sorted(files, key=_order))


def _deleted_rows(found: Any, paths: list[str]) -> dict[str, np.ndarray]:
    """Return the deleted positions of files with a deletion vector, as the library decodes it."""
    # of a table without that feature the library has no answer
    if "deletionVectors" not in (found.protocol().reader_features or ()):
        return {}
    named: dict[str, list[str]] = {}
    for path in paths:
        named.setdefault(unquote(path).rpartition("/")[2], []).append(path)
    deleted = {}
    for batch in pa.RecordBatchReader.from_stream(found.deletion_vectors()):
        for uri, mask in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
            # the vector's file is a URI, that of the log is a path below the table
            whole = unquote(uri)
            (path,) = (
                path
                for path in named[whole.rpartition("/")[2]]
                if whole.endswith(f"/{unquote(path)}") or whole == unquote(path)
            )
            deleted[path] = np.flatnonzero(~mask.values.to_numpy(zero_copy_only=False))
    return deleted


def _unpruned_names(found: Any, pruning: Any) -> set[str]:
    # names of data files are unique: each has a random part
    return {unquote(uri).rpartition("/")[2] for uri in found.file_uris(file_pruning_predicate=pruning)}
