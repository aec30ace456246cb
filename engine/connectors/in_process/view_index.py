"""An index over the contents of a materialized view: the rows of one key in microseconds."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import as_one
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import Fold, weights_of
from penstock.engine.kernels.stable_hash import stable_hash

REBUILD_ROWS = 100_000
"""Changes that cancel out are kept until there are this many more entries than twice the rows."""


class ViewContents(Protocol):
    """The rows of a view and their changes; see ``MaterializedContents``."""

    schema: pa.Schema

    def since(self, version: int) -> tuple[int, list[Batch]] | None: ...

    def state(self) -> tuple[int, list[Batch]]: ...


@dataclass(frozen=True)
class Run:
    """Weighted rows in the order of their hashes. ``weights`` is None where each counts +1."""

    hashes: np.ndarray
    rows: pa.RecordBatch
    weights: np.ndarray | None

    def find(self, hashed: np.uint64) -> tuple[int, int]:
        """Return where the rows of a hash begin and end."""
        first = int(np.searchsorted(self.hashes, hashed, "left"))
        # most keys have one row: a search for the end would cost as much again
        end = first
        while end < len(self.hashes) and self.hashes[end] == hashed:
            end += 1
        return first, end


class ViewIndex:
    """Finds rows of a view by the values of some columns. Any thread may call it.

    Changes are runs beside the run of all rows. Runs of like sizes are merged, so that a lookup searches few
    and each change is sorted a few times only. The first lookup after a change takes it in.
    """

    def __init__(self, contents: ViewContents, columns: tuple[int, ...]) -> None:
        self._contents = contents
        self._columns = columns
        self._lock = threading.Lock()
        self._version = 0
        self._runs: list[Run] = []
        self._base_rows = 0

    def lookup(self, key: Sequence[pa.Array]) -> pa.RecordBatch:
        """Return the present rows whose columns hash like a key of one row; the caller compares values."""
        hashed = stable_hash(key)[0]
        with self._lock:
            self._follow()
            runs = self._runs
        return self._rows_of(runs, hashed)

    def lookup_now(self, key: Sequence[pa.Array], version: int) -> pa.RecordBatch | None:
        """Return the same where the index has followed up to ``version``; else None. It waits for no lock:
        a change may be sorted meanwhile, which takes seconds after a large one.
        """
        # both are replaced and never changed: the runs are of this version or a later one
        if self._version < version or not (runs := self._runs):
            return None
        return self._rows_of(runs, stable_hash(key)[0])

    def _rows_of(self, runs: list[Run], hashed: np.uint64) -> pa.RecordBatch:
        found = [(run, *run.find(hashed)) for run in runs]
        found = [each for each in found if each[1] < each[2]]
        if not found:
            return pa.RecordBatch.from_pylist([], self._contents.schema)
        if len(found) == 1 and found[0][0].weights is None:
            run, first, end = found[0]
            return run.rows.slice(first, end - first)
        # a change of this key: the sum of what was and what changed
        fold = Fold(self._contents.schema)
        for run, first, end in found:
            weights = np.ones(end - first, np.int64) if run.weights is None else run.weights[first:end]
            fold.add(Batch(run.rows.slice(first, end - first), weights))
        return as_one(fold.rows().to_batches(), self._contents.schema)

    def _follow(self) -> None:
        changes = self._contents.since(self._version) if self._runs else None
        if changes is None:
            self._rebuild()
            return
        version, batches = changes
        if version == self._version:
            return
        runs = [*self._runs, self._sorted(batches)]
        while len(runs) > 1 and 2 * len(runs[-1].hashes) > len(runs[-2].hashes):
            newest = runs.pop()
            runs[-1] = _merged(runs[-1], newest)
        # the version last: whoever reads it without the lock finds its runs
        self._runs, self._version = runs, version
        # changes that cancel out are only dropped by the state itself
        if sum(len(run.hashes) for run in runs) > 2 * self._base_rows + REBUILD_ROWS:
            self._rebuild()

    def _rebuild(self) -> None:
        version, batches = self._contents.state()
        self._runs = [self._sorted(batches)]
        self._base_rows = len(self._runs[0].hashes)
        self._version = version

    def _sorted(self, batches: list[Batch]) -> Run:
        rows = as_one([batch.rows for batch in batches], self._contents.schema)
        weights = None
        if any(batch.weights is not None for batch in batches):
            weights = np.concatenate([weights_of(batch) for batch in batches])
        hashes = stable_hash([rows.column(index) for index in self._columns])
        return _in_order(hashes, rows, weights)


def _in_order(hashes: np.ndarray, rows: pa.RecordBatch, weights: np.ndarray | None) -> Run:
    order = np.argsort(hashes, kind="stable")
    taken = rows.take(array_of(order.astype(np.int64)))
    return Run(hashes[order], taken, None if weights is None else weights[order])


def _merged(older: Run, newer: Run) -> Run:
    weights = None
    if older.weights is not None or newer.weights is not None:
        parts = ((run.weights, len(run.hashes)) for run in (older, newer))
        weights = np.concatenate([np.ones(count, np.int64) if own is None else own for own, count in parts])
    rows = as_one([older.rows, newer.rows], older.rows.schema)
    return _in_order(np.concatenate([older.hashes, newer.hashes]), rows, weights)
