"""LIMIT and OFFSET without an order, in one task: the first rows that come, or of rows that change as many as there may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from engine.arrays import array_of
from engine.elements import Batch
from engine.job_options import JobOptions
from engine.operator import Context, KeyedState, ListState, Operator, Output
from engine.state.join_side import JoinSide
from engine.state.key_index import KeyIndex
from planner.physical import LimitSpec

_NO_LIMIT = 2**63 - 1


class LimitOperator(Operator, ListState):
    """Counts the rows seen; the input only ever inserts. Later rows are let go."""

    def __init__(self, spec: LimitSpec, options: JobOptions) -> None:
        self._offset = spec.offset
        self._end = None if spec.limit is None else spec.offset + spec.limit
        self._seen = 0

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        batch = batch.repeated()
        first = max(0, self._offset - self._seen)
        last = batch.num_rows if self._end is None else min(batch.num_rows, self._end - self._seen)
        self._seen += batch.num_rows
        if first < last:
            out.collect(batch.slice(first, last - first))

    def list_states(self) -> dict[str, ListState]:
        return {"seen": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"seen": self._seen}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        self._seen = sum(item["seen"] for item in items)


class LimitOfChangesOperator(Operator):
    """Keeps all rows, and of each how many are emitted: in all ``limit`` of those that are left when ``offset`` others are not.

    A row of weight w counts as w rows, one of negative weight as none. An emitted row stays until it is retracted or too many are; then any other row
    takes its place. Which rows are emitted depends on the order in which changes come, how many does not.
    """

    def __init__(self, spec: LimitSpec, options: JobOptions) -> None:
        self._limit = _NO_LIMIT if spec.limit is None else spec.limit
        self._offset = spec.offset
        self._schema = spec.schema.to_arrow()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._slot = KeyIndex([])
        self._rows = JoinSide(self._schema, [], self._slot, context.key_groups.max_parallelism, retracting=True, counts=True)
        self._totals: tuple[int, int] | None = None

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        weights = np.ones(batch.num_rows, np.int64) if batch.weights is None else batch.weights
        batch = self._rows.consolidated(Batch(batch.rows, weights), keep=True)
        if not batch.num_rows:
            return
        assert batch.weights is not None
        present, emitted = self._counted()
        ids = self._rows.ids_of(batch)
        known, places = ids >= 0, np.maximum(ids, 0)
        before, shown = (np.where(known, values, 0) for values in (self._rows.store.weights(places), self._rows.matches[places]))
        after = np.maximum(before + batch.weights, 0)
        left = np.minimum(shown, after)
        present += int((after - np.maximum(before, 0)).sum())
        emitted += int((left - shown).sum())
        wanted = min(max(present - self._offset, 0), self._limit)
        more = _shared_out(after - left, wanted - emitted)
        self._store(batch, ids, left + more)
        others, changes = self._elsewhere(self._rows.ids_of(batch), wanted - emitted - int(more.sum()))
        self._emit(Batch(batch.rows, left + more - shown), Batch(self._rows.store.take(others), changes), out)
        self._rows.match(others, changes)
        self._totals = present, wanted
        self._metrics.state_entries = len(self._rows)

    def _counted(self) -> tuple[int, int]:
        """How many rows there are and how many of them are emitted, after a restore as well."""
        if self._totals is None:
            ids = self._rows.store.live_ids()
            self._totals = int(np.maximum(self._rows.store.weights(ids), 0).sum()), int(self._rows.matches[ids].sum())
        return self._totals

    def _store(self, batch: Batch, ids: np.ndarray, shown: np.ndarray) -> None:
        """Store changed rows and how many of each are emitted; ``ids`` are those of rows that were there before."""
        self._rows.change(batch, self._slot.lookup_or_insert([], batch.num_rows), shown)
        stayed = np.flatnonzero((ids >= 0) & (self._rows.ids_of(batch) >= 0))
        self._rows.match(ids[stayed], shown[stayed] - self._rows.matches[ids[stayed]])

    def _elsewhere(self, changed: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows that have not changed, and how many more of each to emit (below 0: fewer) so that there are ``wanted`` more."""
        if not wanted:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        ids = np.setdiff1d(self._rows.store.live_ids(), changed) if wanted > 0 else self._rows.store.live_ids()
        shown = self._rows.matches[ids]
        if wanted > 0:
            changes = _shared_out(np.maximum(self._rows.store.weights(ids), 0) - shown, wanted)
        else:
            changes = -_shared_out(shown, -wanted)
        moved = np.flatnonzero(changes)
        return ids[moved], changes[moved]

    def _emit(self, changed: Batch, others: Batch, out: Output) -> None:
        """Emit what is retracted before what is inserted; a row may be both among the changed and the others."""
        assert changed.weights is not None and others.weights is not None
        rows = pa.concat_batches([changed.rows, others.rows])
        weights = np.concatenate([changed.weights, others.weights])
        order = np.argsort(weights > 0, kind="stable")
        order = order[weights[order] != 0]
        if order.size:
            found = Batch(rows.take(array_of(order)), weights[order])
            out.collect(Batch(found.rows) if (weights[order] == 1).all() else found)


def _shared_out(spare: np.ndarray, wanted: int) -> np.ndarray:
    """Return how many to take of each so that there are ``wanted`` in all, or all there are: the first ones first."""
    ends = np.cumsum(spare)
    return np.clip(wanted - (ends - spare), 0, spare)
