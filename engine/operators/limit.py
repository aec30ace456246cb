"""LIMIT and OFFSET without an order, in one task: the first rows that come; of a changelog, any rows up to
the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    ListState,
    Operator,
    Output,
    PendingOutput,
    emit_all,
    start_output,
)
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.batch_concat import all_weights, take_rows_from
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.join_side import JoinSide
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.sort import Limit
from penstock.planner.physical.operator_specs import OperatorSpec

_NO_LIMIT = 2**63 - 1
_FEW = 64
"""So many candidates are examined first, then twice as many."""


class LimitOperator(Operator, ListState):
    """Append-only: counts the rows seen, and drops the later ones."""

    def __init__(self, spec: OperatorSpec[Limit, OperatorFacts], options: JobOptions) -> None:
        self._offset = spec.node.offset
        self._end = None if spec.node.limit is None else spec.node.offset + spec.node.limit
        self._seen = 0

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        if batch.weights is not None:
            self._limit_copies(batch, batch.weights, out)
            return
        # positions in this batch: rows seen so far count towards OFFSET and LIMIT
        first = max(0, self._offset - self._seen)
        last = batch.num_rows if self._end is None else min(batch.num_rows, self._end - self._seen)
        self._seen += batch.num_rows
        if first < last:
            out.collect(batch.slice(first, last - first))

    def _limit_copies(self, batch: Batch, weights: np.ndarray, out: Output) -> None:
        """Emit the rows whose ordinals, counted by weight, are between offset and end, with that part of
        their weight.
        """
        # row i has the ordinals ends - weight .. ends
        ends = self._seen + np.cumsum(weights)
        first = np.maximum(ends - weights, self._offset)
        emitted = (ends if self._end is None else np.minimum(ends, self._end)) - first
        self._seen += int(weights.sum())
        some = np.flatnonzero(emitted > 0)
        if some.size:
            out.collect(
                replace(batch.take(some), weights=None if (emitted[some] == 1).all() else emitted[some])
            )

    def list_states(self) -> dict[str, ListState]:
        return {"seen": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"seen": self._seen}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        # LIMIT runs in one task: one item counts, the sum is right for any number of them
        self._seen = sum(item["seen"] for item in items)


class RetractLimitOperator(Operator):
    """Stores all rows, and of each how many are emitted: ``limit`` in all, of those left after ``offset``.

    A row of weight w counts as w rows, one of negative weight as none. An emitted row stays until it is
    retracted or too many are emitted; then any other row replaces it. Which rows are emitted depends on the
    order of the changes; how many does not.
    """

    def __init__(self, spec: OperatorSpec[Limit, OperatorFacts], options: JobOptions) -> None:
        self._limit = _NO_LIMIT if spec.node.limit is None else spec.node.limit
        self._offset = spec.node.offset
        self._schema = spec.schema.to_arrow()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._slot = KeyIndex([])
        self._rows = JoinSide(
            self._schema, [], self._slot, context.key_groups.max_parallelism, retracting=True, counts=True
        )
        # rows present (by weight) and rows emitted; None after a restore, until they are counted
        self._totals: tuple[int, int] | None = None
        # stacks of row ids: of which more could be emitted, and of which some are
        self._spare, self._emitted = _Candidates(), _Candidates()

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        weights = np.ones(batch.num_rows, np.int64) if batch.weights is None else batch.weights
        batch = self._rows.consolidated(Batch(batch.rows, weights), keep=True)
        if not batch.num_rows:
            return None
        assert batch.weights is not None
        # 1. what is stored of the changed rows: `before` their weight, `shown` how many of them are emitted
        present, emitted = self._counted()
        ids = self._rows.ids_of(batch)
        known, positions = ids >= 0, np.maximum(ids, 0)
        before, shown = (
            np.where(known, values, 0)
            for values in (self._rows.store.weights(positions), self._rows.matches[positions])
        )
        # 2. their weights after the change; no more of a row stays emitted than there are
        after = np.maximum(before + batch.weights, 0)
        left = np.minimum(shown, after)
        present += int((after - np.maximum(before, 0)).sum())
        emitted += int((left - shown).sum())
        # 3. how many rows must be emitted in all; the changed rows fill what is missing first
        wanted = min(max(present - self._offset, 0), self._limit)
        more = _shared_out(after - left, wanted - emitted)
        self._store(batch, ids, left + more)
        # 4. other rows fill the rest, or are retracted where too many are emitted
        if not len(self._rows):  # row ids start anew
            self._spare, self._emitted = _Candidates(), _Candidates()
        others, changes = self._elsewhere(wanted - emitted - int(more.sum()))
        # 5. emit the changed rows by what changed of their emitted number, then the others
        pieces = [Batch(batch.rows, left + more - shown)]
        for first, last in self._rows.store.pieces(others):
            pieces.append(Batch(self._rows.store.take(others[first:last]), changes[first:last]))
        self._rows.match(others, changes)
        self._note(others)
        self._totals = present, wanted
        self._metrics.state_entries = len(self._rows)
        return start_output(emit_all(_changes(pieces), out))

    def _counted(self) -> tuple[int, int]:
        """The number of rows, and how many of them are emitted; also after a restore."""
        if self._totals is None:
            ids = self._rows.store.live_ids()
            self._note(ids)
            self._totals = (
                int(np.maximum(self._rows.store.weights(ids), 0).sum()),
                int(self._rows.matches[ids].sum()),
            )
        return self._totals

    def _note(self, ids: np.ndarray) -> None:
        """Record for rows whether more of them can be emitted, and whether any of them are."""
        self._spare.add(ids[self._spare_of(ids) > 0], self._rows.store.capacity)
        self._emitted.add(ids[self._emitted_of(ids) > 0], self._rows.store.capacity)

    def _spare_of(self, ids: np.ndarray) -> np.ndarray:
        """Return how many more of each can be emitted; none of a deleted row."""
        return np.maximum(self._rows.store.weights(ids) - self._rows.matches[ids], 0)

    def _emitted_of(self, ids: np.ndarray) -> np.ndarray:
        """Return how many of each are emitted; none of a deleted row."""
        return np.where(self._rows.store.weights(ids) > 0, self._rows.matches[ids], 0)

    def _store(self, batch: Batch, ids: np.ndarray, shown: np.ndarray) -> None:
        """Store changed rows and how many of each are emitted; ``ids`` are those of the rows that existed
        before.
        """
        # the match count of a stored row is used for how many of it are emitted
        self._rows.change(batch, self._slot.lookup_or_insert([], batch.num_rows), shown)
        # change() sets the count of new rows only; rows that stay are corrected here
        stayed = np.flatnonzero((ids >= 0) & (self._rows.ids_of(batch) >= 0))
        self._rows.match(ids[stayed], shown[stayed] - self._rows.matches[ids[stayed]])
        now = self._rows.ids_of(batch)
        self._note(now[now >= 0])

    def _elsewhere(self, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows, and how many more of each to emit (below 0: fewer), so that ``wanted`` more are
        emitted. A changed row has none to spare.
        """
        if wanted >= 0:
            return self._spare.take(wanted, self._spare_of)
        ids, counts = self._emitted.take(-wanted, self._emitted_of)
        return ids, -counts


class _Candidates:
    """A stack of row ids with something left, each once, the latest on top. Ids with nothing left are removed
    when they are met.

    So a search costs what was added since the last, not a scan of all rows.
    """

    def __init__(self) -> None:
        self._ids = np.zeros(_FEW, np.int64)
        self._size = 0
        # by row id: whether it is on the stack, so that no id is there twice
        self._there = np.zeros(0, np.bool_)

    def add(self, ids: np.ndarray, capacity: int) -> None:
        """Add distinct ids below ``capacity``."""
        if self._there.size < capacity:
            self._there = np.concatenate([self._there, np.zeros(capacity - self._there.size, np.bool_)])
        ids = ids[~self._there[ids]]
        self._there[ids] = True
        if self._size + ids.size > self._ids.size:
            self._ids = np.concatenate(
                [self._ids[: self._size], np.zeros(self._size + 2 * ids.size, np.int64)]
            )
        self._ids[self._size : self._size + ids.size] = ids
        self._size += ids.size

    def take(self, wanted: int, left: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and how many to take of each, so that the sum is ``wanted`` or all there are; ``left``:
        how many each has.
        """
        chosen, counts, at_once = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], _FEW
        while wanted and self._size:
            # the top of the stack, twice as many each time
            first = max(0, self._size - at_once)
            ids = self._ids[first : self._size].copy()
            spare = left(ids)
            count = _shared_out(spare, wanted)
            # an id with nothing left leaves the stack; `_note` adds it again when there is more
            stay = spare > count
            self._there[ids[~stay]] = False
            self._size = first + int(stay.sum())
            self._ids[first : self._size] = ids[stay]
            chosen.append(ids[count > 0])
            counts.append(count[count > 0])
            wanted -= int(count.sum())
            at_once *= 2
        return np.concatenate(chosen), np.concatenate(counts)


def _shared_out(spare: np.ndarray, wanted: int) -> np.ndarray:
    """Return how many to take of each, first ones first, so that the sum is ``wanted`` or all there are."""
    ends = np.cumsum(spare)
    return np.clip(wanted - (ends - spare), 0, spare)


def _changes(pieces: list[Batch]) -> list[Batch]:
    """Return the changes, retractions before insertions; a row may be among the changed and the others."""
    weights = all_weights(pieces)
    order = np.argsort(weights > 0, kind="stable")
    order = order[weights[order] != 0]
    weights = weights[order]
    return take_rows_from(pieces, order, None if (weights == 1).all() else weights)
