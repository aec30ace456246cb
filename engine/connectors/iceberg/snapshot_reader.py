"""Reads the snapshots of an Iceberg table in their order: the rows that each has added, or all changes of
rows.

The library's incremental scan passes over snapshots that remove rows without a word, so the entries of each
are looked at before. Changes are found by comparing a snapshot with the one before it, file by file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import to_arrow
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.iceberg.file_planning import PlannedFile, content_of, plan_snapshot
from penstock.engine.connectors.iceberg.file_reader import PlannedFileReader
from penstock.engine.connectors.iceberg.filters import row_filter
from penstock.engine.connectors.iceberg.iceberg_table import arrow_schema, refreshed, refused, where
from penstock.engine.connectors.lakehouse.columns import check_types, column_named, missing, refuse_missing
from penstock.engine.formats.decoded_batch import batch_of
from penstock.engine.formats.file_types import read_as


@dataclass(frozen=True)
class StartSnapshot:
    """Where reading begins: with all rows of a snapshot (``whole``), or after it. ``only``: and ends there.
    ``end``: the last snapshot. ``changes``: updates and deletions are read too.
    """

    snapshot: int
    whole: bool
    only: bool
    end: int | None
    changes: bool = False


@dataclass(frozen=True)
class _Step:
    """A file, and what its rows count. ``before``: only the rows are read that ``file`` leaves out and the
    same file left in before.
    """

    file: PlannedFile
    weight: int = 1
    before: PlannedFile | None = None


class SnapshotReader:
    """A split reader. Its position is (snapshot, file of it, row of the file). DAT-5308 for a snapshot that
    removes rows where only added rows are read, DAT-5309 when snapshots that were not read have expired.

    Rows that a snapshot removes are read before those it adds, so that the row that replaces another follows
    it.
    """

    def __init__(
        self, request: ScanRequest, found: Any, start: StartSnapshot, position: Position | None
    ) -> None:
        self._request = request
        self._table = request.table
        self._found = found
        self._start = start
        at = position or {}
        # ``after``: the last snapshot that was read to its end; ``reading``: the one that is being read
        self._after: int = at.get("after", 0 if start.whole else start.snapshot)
        self._reading: int = at.get("reading", start.snapshot if start.whole else 0)
        self._whole: bool = at.get("whole", start.whole)
        self._step: int = at.get("step", 0)
        self._row: int = at.get("row", 0)
        self._fields = tuple(self._table.source_schema[index] for index in request.columns)
        # the columns of the library's schema that are read, and what it tests on rows
        self._projection: Any = None
        self._filter: Any = None
        self._steps: list[_Step] | None = None
        self._files = PlannedFileReader(found, where(self._table))
        # of the snapshot that was read last, where its changes were looked for: the next is compared with it
        self._former: tuple[int, list[PlannedFile]] = (0, [])
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None
        self._next_look_ms = 0.0
        self._every_ms = float(option(self._table, "monitor-interval") or 0)
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        """Return rows of the snapshot that is read, ``None`` when there is no newer one now. DAT-53xx."""
        while self._rest is not None or self._begin():
            if self._rest is None:
                self._rest = self._next_batch()
                if self._rest is None:
                    self._batches, self._row = None, 0
                    self._step += 1
                    continue
            rows = self._rest.slice(0, max_rows)
            self._rest = self._rest.slice(max_rows) if self._rest.num_rows > max_rows else None
            self._row += rows.num_rows
            if not self._start.changes:
                return rows
            assert self._steps is not None
            return Batch(rows, np.full(rows.num_rows, self._steps[self._step].weight, np.int64))
        return None

    def position(self) -> Position:
        return {
            "after": self._after,
            "reading": self._reading,
            "whole": self._whole,
            "step": self._step,
            "row": self._row,
        }

    def close(self) -> None:
        self._batches = self._rest = None

    def _begin(self) -> bool:
        """Open the file of the next step; return whether there is one."""
        while not self._ended:
            if self._batches is not None:
                return True
            if self._steps is None and not self._load():
                return False
            assert self._steps is not None
            if self._step < len(self._steps):
                self._batches = self._open(self._steps[self._step])
                return True
            self._finish_snapshot()
        return False

    def _finish_snapshot(self) -> None:
        ended = self._start.only or (self._start.end is not None and self._reading == self._start.end)
        self._after, self._reading, self._whole, self._step, self._steps = self._reading, 0, False, 0, None
        self._ended = ended

    def _load(self) -> bool:
        """List the files of the snapshot; return whether there is one."""
        if self._reading or self._whole:
            self._steps = self._planned()
            return True
        # the position is after the last snapshot
        if self._start.end is not None and self._after == self._start.end:
            self._ended = True
            return False
        following = self._following()
        if following is None:
            return False
        self._reading = following
        self._steps = self._planned()
        self._request.metrics.count("table_versions_read")
        return True

    def _planned(self) -> list[_Step]:
        check_types(self._fields, arrow_schema(self._found), where(self._table))
        self._refuse_renamed()
        # a table without snapshots
        if not self._reading:
            return []
        there = arrow_schema(self._found)
        places = (column_named(there, field.name) for field in self._fields)
        names = tuple(there.names[place] for place in places if place is not None) or (there.names[0],)
        snapshot = self._found.snapshot_by_id(self._reading)
        try:
            self._projection = self._found.schema().select(*names)
            self._filter = row_filter(None, self._fields)
            if not self._whole:
                return self._steps_of(snapshot)
            # the library looks names up in the newest columns: the snapshot's may have been called
            # otherwise. A filter leaves out files, so that positions would count others: not in a stream.
            newest = self._found.current_snapshot().snapshot_id == self._reading
            if self._start.only and newest:
                self._filter = row_filter(self._request.predicate, self._fields)
            return [_Step(file) for file in plan_snapshot(self._found, snapshot, self._filter)]
        except PenstockError:
            raise
        except Exception as error:  # the library's own classes
            raise refused(where(self._table), "listed", error) from error

    def _steps_of(self, snapshot: Any) -> list[_Step]:
        """Return what a snapshot has changed. DAT-5308 where it removes rows and only added ones are read."""
        content = content_of(self._found, snapshot)
        if not content.removes_rows:
            return [_Step(file) for file in content.added]
        if not self._start.changes:
            raise self._removes_rows(snapshot)
        before = self._files_at(snapshot.parent_snapshot_id)
        after = self._files_at(snapshot.snapshot_id)
        self._former = snapshot.snapshot_id, list(after.values())
        groups = {id(group): group for file in after.values() for group in file.equality}.values()
        self._files.keep_keys(frozenset[str]().union(*(group.paths for group in groups)))
        removed = [_Step(file, -1) for path, file in before.items() if path not in after]
        added = [_Step(file) for path, file in after.items() if path not in before]
        changed = [
            (before[path], file)
            for path, file in after.items()
            if path in before and file.deletes != before[path].deletes
        ]
        deleted = [_Step(file, -1, former) for former, file in changed if file.deletes - former.deletes]
        # deletes that are gone while their data file stays: their rows are there again
        restored = [_Step(former, 1, file) for former, file in changed if former.deletes - file.deletes]
        return [*removed, *deleted, *added, *restored]

    def _files_at(self, number: int | None) -> dict[str, PlannedFile]:
        """Return the files of a snapshot by their paths."""
        if number is None:
            return {}
        known, files = self._former
        if known != number:
            files = plan_snapshot(self._found, self._found.snapshot_by_id(number), self._filter)
        return {file.path: file for file in files}

    def _removes_rows(self, snapshot: Any) -> PenstockError:
        operation = "append" if snapshot.summary is None else snapshot.summary.operation.value
        return PenstockError(
            "DAT-5308",
            f"snapshot {snapshot.snapshot_id} of {where(self._table)} changes or removes rows "
            f"({operation}), and only added rows are read",
            hint="read its changes: 'read-change-feed' = 'true'; or begin after it without state: "
            "'scan.mode' = 'from-snapshot' with a later snapshot",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )

    def _refuse_renamed(self) -> None:
        """Refuse a declared column that an earlier schema has and the newest has not. One that never was may
        still come: it is NULL until then. DAT-5306.
        """
        former = {field.name.lower() for schema in self._found.metadata.schemas for field in schema.fields}
        there = arrow_schema(self._found)
        lost = [field for field in missing(self._fields, there) if field.name.lower() in former]
        refuse_missing(lost, there, where(self._table), written=False)

    def _open(self, step: _Step) -> Iterator[pa.RecordBatch]:
        reader = self._files
        if step.before is None:
            batches = reader.rows(step.file, self._projection, self._filter)
        else:
            positions = reader.deleted_between(step.before, step.file)
            batches = reader.rows_at(step.file, self._projection, positions)
        passed = self._row
        for batch in batches:
            # rows that were returned before the position
            skipped = min(passed, batch.num_rows)
            passed -= skipped
            if batch.num_rows > skipped:
                yield self._fit(batch.slice(skipped))

    def _next_batch(self) -> pa.RecordBatch | None:
        assert self._batches is not None
        try:
            return next(self._batches, None)
        except FileNotFoundError as error:
            raise PenstockError(
                "DAT-5310",
                f"a data file of {where(self._table)} is gone, its rows were not all read",
                detail=str(error)[:300],
                hint="an expired snapshot removed it: keep snapshots longer than a reader may be behind",
                kind=Kind.EXTERNAL,
            ) from error
        except PenstockError:
            raise
        except Exception as error:  # the library's own classes
            raise refused(where(self._table), "read", error) from error

    def _fit(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the requested columns with the engine's types; NULL for those the table has not."""
        arrays = []
        for field in self._fields:
            place, kind = column_named(batch.schema, field.name), to_arrow(field.type)
            arrays.append(
                pa.nulls(batch.num_rows, kind) if place is None else read_as(batch.column(place), field.type)
            )
        return batch_of(arrays, self._fields, batch.num_rows)

    def _following(self) -> int | None:
        """Return the snapshot after the last one that was read and did not only rewrite files."""
        pending = self._pending(self._after)
        if not pending:
            now_ms = self._request.clock.monotonic_ms()
            # a look asks the catalog: only once an interval
            if now_ms < self._next_look_ms:
                return None
            self._next_look_ms = now_ms + self._every_ms
            refreshed(self._table, self._found)
            pending = self._pending(self._after)
        for snapshot in pending:
            if snapshot.summary is None or snapshot.summary.operation.value != "replace":
                return int(snapshot.snapshot_id)
            # files were rewritten, with the same rows
            self._after = int(snapshot.snapshot_id)
            if self._start.end == self._after:
                self._ended = True
                return None
        return None

    def _pending(self, after: int) -> list[Any]:
        """Return the snapshots after one, the oldest first. DAT-5309."""
        found: list[Any] = []
        snapshot = self._found.current_snapshot()
        while snapshot is not None and snapshot.snapshot_id != after:
            found.append(snapshot)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._found.snapshot_by_id(parent)
            if snapshot is None and (parent is not None or after):
                raise PenstockError(
                    "DAT-5309",
                    f"snapshots of {where(self._table)} that were not read are gone, expired or rolled back",
                    detail=f"the last one read is {after}, the oldest of its history is "
                    f"{found[-1].snapshot_id}",
                    hint="begin without the job's state, with 'scan.mode' = 'full'; keep snapshots longer",
                    kind=Kind.EXTERNAL,
                )
        if snapshot is None and after:
            raise PenstockError(
                "DAT-5311",
                f"{where(self._table)} has no snapshots any more, and was read up to {after}",
                hint="another table has its name now: begin without the job's state",
                kind=Kind.EXTERNAL,
            )
        return found[::-1]
