"""Reads the versions of a Delta table in their order: rows that were added, or all changes of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.types import STRING
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.delta.column_mapping import ColumnMapping, mapping_of
from penstock.engine.connectors.delta.deletion_vectors import DeletionVector
from penstock.engine.connectors.delta.delta_table import (
    TableStore,
    arrow_schema,
    check_readable,
    opened,
    path_of,
)
from penstock.engine.connectors.delta.log import DeltaLog, LogVersion, snapshot_files
from penstock.engine.connectors.delta.pruning import file_test
from penstock.engine.connectors.lakehouse.data_files import DataFile, DataFileReader, RowChoice, StoredField

_CHANGE = Field("_change_type", STRING)
_GONE = pa.array(["delete", "update_preimage"])
_NEW = pa.array(["insert", "update_postimage"])
_NO_ROWS = np.zeros(0, np.int64)


@dataclass(frozen=True)
class StartVersion:
    """Where reading begins and ends. ``whole``: with all rows of ``version``, else with its changes.
    ``changes``: updates and deletions are read too.
    """

    version: int
    whole: bool
    end: int | None
    changes: bool


@dataclass(frozen=True)
class _Step:
    """A file, what its rows count, and which of its change types are read; None for a file of rows.
    ``before``: only the rows are read that ``file`` leaves out and the same file left in before.
    """

    file: DataFile
    weight: int = 1
    types: pa.Array | None = None
    before: DataFile | None = None


class VersionReader:
    """A split reader. Its position is (version, step of it, row of the step's file).

    Rows that a version removes are read before those it adds, so that the row that replaces another
    follows it. DAT-5308 for a version that removes rows where only added rows are read.
    """

    def __init__(
        self,
        request: ScanRequest,
        store: TableStore,
        log: DeltaLog,
        start: StartVersion,
        position: Position | None,
    ) -> None:
        self._request = request
        self._table = request.table
        self._store = store
        self._log = log
        self._start = start
        at = position or {}
        self._version: int = at.get("version", start.version)
        self._whole: bool = at.get("whole", start.whole)
        self._step: int = at.get("step", 0)
        self._in_file: Position = at.get("file", {})
        self._fields = tuple(self._table.source_schema[index] for index in request.columns)
        self._steps: list[_Step] | None = None
        self._reader: DataFileReader | None = None
        self._next_look_ms = 0.0
        self._every_ms = float(option(self._table, "monitor-interval") or 0)
        self._ended = False
        # how files name the columns in the version that is read, and in the newest when reading began
        self._mapping: ColumnMapping | None = None
        self._newest: ColumnMapping | None = None

    @property
    def ended(self) -> bool:
        return self._ended

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        """Return rows of the version that is read, ``None`` when there is no newer one now. DAT-53xx."""
        while self._reader is not None or self._begin():
            assert self._reader is not None and self._steps is not None
            rows = self._reader.poll(max_rows)
            self._in_file = self._reader.position()
            if rows is not None:
                return self._changes(rows, self._steps[self._step])
            self._reader.close()
            self._reader, self._in_file = None, {}
            self._step += 1
        return None

    def position(self) -> Position:
        return {"version": self._version, "whole": self._whole, "step": self._step, "file": self._in_file}

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _changes(self, rows: pa.RecordBatch, step: _Step) -> pa.RecordBatch | Batch:
        if step.types is not None:
            kinds = rows.column(rows.num_columns - 1)
            rows = rows.filter(pc.is_in(kinds, step.types))
            rows = rows.select(list(range(len(self._fields))))
        if not self._start.changes:
            return rows
        return Batch(rows, np.full(rows.num_rows, step.weight, np.int64))

    def _begin(self) -> bool:
        """Open the file of the next step; return whether there is one."""
        while not self._ended:
            if self._steps is None and not self._load():
                return False
            assert self._steps is not None
            if self._step < len(self._steps):
                self._reader = self._open(self._steps[self._step])
                return True
            # the version is read to its end
            if self._start.end is not None and self._version >= self._start.end:
                self._ended = True
                return False
            self._version, self._whole, self._step, self._steps = self._version + 1, False, 0, None
        return False

    def _open(self, step: _Step) -> DataFileReader:
        fields = self._fields if step.types is None else (*self._fields, _CHANGE)
        return DataFileReader(
            self._store.filesystem,
            self._store.path(step.file.path),
            step.file,
            fields,
            self._in_file,
            self._request.predicate if step.types is None else None,
            self._request.skipping if step.types is None else None,
            self._rows_of(step),
            self._stored_as(step.file.path),
        )

    def _rows_of(self, step: _Step) -> RowChoice:
        if step.before is None:
            return RowChoice(left_out=self._deleted(step.file))
        deleted, before = self._deleted(step.file), self._deleted(step.before)
        if deleted is None or before is None:
            return RowChoice(only=_NO_ROWS if deleted is None else deleted)
        return RowChoice(only=np.setdiff1d(deleted, before, assume_unique=True))

    def _deleted(self, file: DataFile) -> np.ndarray | None:
        if isinstance(file.deleted, DeletionVector):
            return file.deleted.positions(self._store, path_of(self._table))
        return file.deleted

    def _stored_as(self, path: str) -> StoredField | None:
        """Return how a file names the columns, ``None`` where it has their names."""
        mappings = [mapping for mapping in (self._mapping, self._newest) if mapping is not None]
        if all(mapping.mode == "none" for mapping in mappings):
            return None

        def stored(field: Field, there: pa.Schema) -> Field:
            # one that the version calls otherwise, by what it is called now
            known = (mapping for mapping in mappings if mapping.physical_name(field.name) is not None)
            mapping = next(known, None)
            return field if mapping is None else mapping.stored(field, there, path)

        return stored

    def _load(self) -> bool:
        """List the steps of the version; return whether it is there."""
        if self._whole:
            found = opened(self._table, self._version)
            check_readable(self._table, found)
            self._mapping = mapping_of(found)
            # in a stream a column may be called otherwise later
            self._newest = self._mapping if self._bounded else mapping_of(opened(self._table))
            test = file_test(self._request.predicate, self._fields) if self._bounded else None
            files = snapshot_files(self._table, found, test)
            self._steps = [_Step(self._by_newest_names(file)) for file in files]
            return True
        if self._start.end is not None and self._version > self._start.end:
            self._ended = True
            return False
        now_ms = self._request.clock.monotonic_ms()
        # a look may be slow at a store: only once an interval
        if now_ms < self._next_look_ms:
            return False
        version = self._log.version(self._version)
        if version is None:
            self._next_look_ms = now_ms + self._every_ms
            return False
        if self._mapping is None:
            self._learn_mapping()
        self._steps = self._steps_of(version)
        self._request.metrics.count("table_versions_read")
        return True

    @property
    def _bounded(self) -> bool:
        """Whether files may be left out: in a stream a position counts all of them."""
        return self._start.whole and self._start.end == self._start.version

    def _learn_mapping(self) -> None:
        """Learn how files name the columns, of the version that is read and of the newest."""
        found = opened(self._table)
        self._newest = self._mapping = mapping_of(found)
        if found.version() > self._version:
            try:
                self._mapping = mapping_of(opened(self._table, self._version))
            except PenstockError:
                # its log is cleaned up to a checkpoint: names in files do not change
                return

    def _steps_of(self, version: LogVersion) -> list[_Step]:
        self._check_columns(version)
        if self._start.changes:
            if version.changes:
                return [
                    *(_Step(file, -1, _GONE) for file in self._named(version.changes)),
                    *(_Step(file, 1, _NEW) for file in self._named(version.changes)),
                ]
            return self._compared(self._named(version.removed), self._named(version.added))
        if version.removed:
            raise PenstockError(
                "DAT-5308",
                f"version {version.version} of the Delta table at {redact_url(path_of(self._table))} "
                f"changes or removes rows ({version.operation}), and only added rows are read",
                hint="read its changes: 'read-change-feed' = 'true'; or begin after it without state: "
                f"'scan.mode' = 'from-version', 'scan.version' = '{version.version + 1}'",
                kind=Kind.EXTERNAL,
                sqlstate="0A000",
            )
        return [_Step(file) for file in self._named(version.added)]

    def _compared(self, removed: list[DataFile], added: list[DataFile]) -> list[_Step]:
        """Return the changes of a version without a change feed. A file that is removed and added has another
        deletion vector: only the rows in which the two differ have changed.
        """
        before, after = ({file.path: file for file in files} for files in (removed, added))
        both = [(before[path], file) for path, file in after.items() if path in before]
        return [
            *(_Step(file, -1) for file in removed if file.path not in after),
            *(_Step(file, -1, before=former) for former, file in both),
            *(_Step(former, 1, before=file) for former, file in both),
            *(_Step(file, 1) for file in added if file.path not in before),
        ]

    def _named(self, files: tuple[DataFile, ...]) -> list[DataFile]:
        """Return files of the log, their partition values by the names of the columns."""
        assert self._mapping is not None and self._newest is not None
        named = []
        for file in files:
            # of a name that both have, the later pair counts: that of the version
            values = (*self._newest.logical_values(file.values), *self._mapping.logical_values(file.values))
            named.append(replace(file, values=values) if file.values else file)
        return named

    def _by_newest_names(self, file: DataFile) -> DataFile:
        """Return a file of a version with its partition values by the newest names of the columns, too."""
        assert self._mapping is not None and self._newest is not None
        if self._newest is self._mapping or not file.values:
            return file
        stored = [(self._mapping.physical_name(name) or name, value) for name, value in file.values]
        return replace(file, values=(*self._newest.logical_values(stored), *file.values))

    def _columns_before(self, number: int) -> frozenset[str]:
        """Return the columns of the version before one; none where it cannot be read any more."""
        if not number:
            return frozenset()
        try:
            return frozenset(map(str.lower, arrow_schema(opened(self._table, number - 1)).names))
        except PenstockError:
            return frozenset()

    def _check_columns(self, version: LogVersion) -> None:
        if version.columns is None or version.mapping is None:
            return
        former_mapping, self._mapping = self._mapping, version.mapping
        names = {name.lower() for name in version.columns}
        absent = [field for field in self._fields if field.name.lower() not in names]
        # one that never was may still come: it is NULL until then
        former = self._columns_before(version.version) if absent else frozenset()
        lost = [field.name for field in absent if not field.nullable or field.name.lower() in former]
        # of a column that is dropped and added again, and of two that change their names
        moved = [
            field.name
            for field in self._fields
            if former_mapping is not None
            and field.name.lower() in names
            and former_mapping.physical_name(field.name)
            not in (None, version.mapping.physical_name(field.name))
        ]
        if lost or moved:
            what = f"has no column {lost[0]} any more" if lost else f"has another column {moved[0]}"
            raise PenstockError(
                "DAT-5306",
                f"version {version.version} of the Delta table at {redact_url(path_of(self._table))} {what}",
                hint="declare the columns as the table has them, and begin without the job's state",
                kind=Kind.EXTERNAL,
                sqlstate="42703",
            )
