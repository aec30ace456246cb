"""The contents of materialized views, the service that names them, and the source over one state. Sinks of
jobs fill the contents barrier by barrier; readers take snapshots or follow the changes.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.operator import Services
from penstock.engine.api.source import Position, ScanRequest, SplitReader
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import Fold, negated
from penstock.engine.connectors.in_process.registered_source import TableReader

if TYPE_CHECKING:
    from penstock.engine.connectors.in_process.view_index import ViewIndex

# pinned states; the least recently pinned is dropped
SNAPSHOTS_KEPT = 16
# indexes of point queries, each as large as the view
INDEXES_KEPT = 4
# versions of which the changes are stored; a reader further behind reads the whole state
CHANGES_KEPT = 64


@dataclass(frozen=True)
class Standing:
    """The progress of a view: its version (0: nothing is known yet), and whether it is the last."""

    version: int
    finished: bool
    error: PenstockError | None


class MaterializedContents:
    """The rows of one view. Every method may be called from any thread.

    A new state becomes visible when a checkpoint of the job completes. It has exactly the changes before that
    barrier from every subtask, so it is the query's answer to one prefix of its inputs.
    """

    def __init__(self, name: str, schema: pa.Schema, bounded: bool = False) -> None:
        self.name = name
        # of tables that end: a prefix of them is no state that anybody asks for
        self.bounded = bounded
        self.schema = schema
        self._changed = threading.Condition()
        self._fold = Fold(schema)
        self._version = 0
        # initial rows by subtask
        self._begun: dict[int, list[Batch]] = {}
        self._fresh = True
        self._attempt = 0
        # changes by checkpoint, of all subtasks
        self._staged: dict[int, list[Batch]] = {}
        # (version, changes that led to it)
        self._log: deque[tuple[int, list[Batch]]] = deque(maxlen=CHANGES_KEPT)
        self._snapshots: OrderedDict[int, pa.Table] = OrderedDict()
        # by their columns; the least recently used is dropped
        self._indexes: OrderedDict[tuple[int, ...], ViewIndex] = OrderedDict()
        self._finished = False
        self._error: PenstockError | None = None

    # -- the job's side

    def begin(self, attempt: int, subtask: int, parallelism: int, rows: list[Batch]) -> None:
        """Set a subtask's initial rows: its part of the restored checkpoint. Another attempt implies that the
        job was redeployed.
        """
        with self._changed:
            # redeployed: changes staged by the attempt before were never checkpointed
            if attempt != self._attempt:
                self._attempt, self._begun, self._staged, self._fresh = attempt, {}, {}, True
            self._begun[subtask] = rows
            # a restored job has rows before its first checkpoint: show them at once
            if (
                self._version == 0
                and len(self._begun) == parallelism
                and any(batch.num_rows for part in self._begun.values() for batch in part)
            ):
                self._advance([])

    def stage(self, checkpoint_id: int, changes: list[Batch]) -> None:
        """Stage a subtask's changes before the barrier of a checkpoint."""
        with self._changed:
            self._staged.setdefault(checkpoint_id, []).extend(changes)

    def complete(self, checkpoint_id: int) -> None:
        """Make the state of a complete checkpoint visible; a repeated call changes nothing."""
        with self._changed:
            # a checkpoint that was aborted is part of the next one that completes
            due = sorted(number for number in self._staged if number <= checkpoint_id)
            if due:
                self._advance([batch for number in due for batch in self._staged.pop(number)])

    def _advance(self, changes: list[Batch]) -> None:
        delta = Fold(self.schema)
        if self._fresh:  # the state before is that of another attempt, perhaps of another process
            for batch in (*itertools.chain(*self._begun.values()), *map(negated, self._fold.weighted())):
                delta.add(batch)
            self._fresh = False
        for batch in changes:
            delta.add(batch)
        # changes that cancel out make no new version, except for the first
        summed = delta.weighted()
        if summed or self._version == 0:
            for batch in summed:
                self._fold.add(batch)
            self._version += 1
            self._log.append((self._version, summed))
            self._changed.notify_all()

    def finish(self, error: PenstockError | None) -> None:
        """Record that the job has ended, with or without an error."""
        with self._changed:
            self._finished, self._error = True, error
            self._changed.notify_all()

    # -- the readers' side

    def standing(self) -> Standing:
        """Return the view's progress."""
        with self._changed:
            return Standing(self._version, self._finished, self._error)

    def pin(self, timeout_s: float) -> int | None:
        """Pin the current state for a reader and return its version; wait for the first state, of tables that
        end for the last. ``None`` on timeout.
        """
        with self._changed:
            if not self._await_first(timeout_s):
                return None
            # computed by the first reader of a version; others share it
            if self._version not in self._snapshots:
                self._snapshots[self._version] = self._fold.rows()
            self._snapshots.move_to_end(self._version)
            while len(self._snapshots) > SNAPSHOTS_KEPT:
                self._snapshots.popitem(last=False)
            return self._version

    def await_first(self, timeout_s: float) -> bool:
        """Wait for the first state, of tables that end for the last; return whether there is one. Raises the
        error of the job.
        """
        with self._changed:
            return self._await_first(timeout_s)

    def _await_first(self, timeout_s: float) -> bool:
        # of tables that end the last: the first checkpoint may complete before a source has returned a row
        ready = self._changed.wait_for(
            lambda: self._finished or (self._version and not self.bounded), timeout_s
        )
        if self._error is not None:
            raise self._error
        return bool(ready)

    def index(self, columns: tuple[int, ...]) -> ViewIndex:
        """Return the index of some columns; its first lookup builds it."""
        with self._changed:
            index = self._indexes.get(columns)
            if index is None:
                # numba: only where a view is looked up by a key
                from penstock.engine.connectors.in_process.view_index import ViewIndex

                index = self._indexes[columns] = ViewIndex(self, columns)
            self._indexes.move_to_end(columns)
            while len(self._indexes) > INDEXES_KEPT:
                self._indexes.popitem(last=False)
            return index

    def lookup_now(self, columns: tuple[int, ...], key: list[pa.Array]) -> pa.RecordBatch | None:
        """Return what ``index(columns).lookup(key)`` does, where it has to wait for nothing; else None.

        The lock of the contents is not taken: whoever makes a change or a snapshot may hold it for seconds.
        """
        version, index = self._version, self._indexes.get(columns)
        has_state = self._finished or (version and not self.bounded)
        if index is None or not has_state or self._error is not None:
            return None
        # another thread may drop the index at this moment: its rows are right all the same
        with suppress(KeyError):
            self._indexes.move_to_end(columns)
        return index.lookup_now(key, version)

    def snapshot(self, version: int) -> pa.Table:
        """Return a pinned state. DAT-4112 when it is no longer stored."""
        with self._changed:
            if version not in self._snapshots:
                message = f"state {version} of materialized view {self.name} no longer exists"
                raise PenstockError("DAT-4112", message, hint="run the query again", kind=Kind.EXTERNAL)
            return self._snapshots[version]

    def since(self, version: int) -> tuple[int, list[Batch]] | None:
        """Return the current version and the changes after an earlier one; ``None`` when these are no longer
        stored (read ``state`` instead).
        """
        with self._changed:
            # the change to version + 1 is no longer in the log
            if version <= 0 or (self._version > version and self._log[0][0] > version + 1):
                return None
            return self._version, [
                batch for number, changes in self._log if number > version for batch in changes
            ]

    def state(self) -> tuple[int, list[Batch]]:
        """Return the current version and all rows with their weights."""
        with self._changed:
            return self._version, self._fold.weighted()


class MaterializedTables:
    """The service that returns the contents of a view by its name."""

    def __init__(self) -> None:
        self._contents: dict[str, MaterializedContents] = {}
        self._lock = threading.Lock()

    def create(self, name: str, schema: pa.Schema, bounded: bool = False) -> MaterializedContents:
        """Return new contents for a view. ``bounded``: all tables that it reads end."""
        with self._lock:
            made = self._contents[name.lower()] = MaterializedContents(name, schema, bounded)
            return made

    def find(self, name: str) -> MaterializedContents | None:
        """Return the contents of a view, ``None`` when nothing fills it."""
        with self._lock:
            return self._contents.get(name.lower())

    def contents(self, name: str) -> MaterializedContents:
        """Return the contents of a view. DAT-4113 when nothing fills it."""
        contents = self.find(name)
        if contents is None:
            raise PenstockError("DAT-4113", f"materialized view {name} was dropped", kind=Kind.EXTERNAL)
        return contents

    def forget(self, name: str) -> None:
        """Drop the contents of a view."""
        with self._lock:
            self._contents.pop(name.lower(), None)


FIRST_STATE_S = 60.0


def snapshot_of(table: CatalogTable, services: Services) -> pa.Table:
    """Return the state a query pinned when it was bound, else the current one."""
    contents = services.get(MaterializedTables).contents(table.options["name"])
    pinned = option(table, "snapshot")
    version = pinned if isinstance(pinned, int) else contents.pin(FIRST_STATE_S)
    return contents.snapshot(version or 0)


class MaterializedSource:
    """One split: the rows of a state, in their order."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request

    def splits(self) -> list[str]:
        return [f"{self._request.table.name}@{option(self._request.table, 'snapshot')}"]

    def recall(self, split_ids: list[str]) -> None:
        """Nothing: the state is resolved when it is opened."""

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        schema = self._request.table.source_schema
        columns = [schema[index].name for index in self._request.columns]
        return TableReader(
            snapshot_of(self._request.table, self._request.services), columns, (position or {}).get("row", 0)
        )

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0
