"""Top-N: ORDER BY with LIMIT over a changelog; each batch emits what changed among the first rows."""

from __future__ import annotations

import numpy as np

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    Operator,
    Output,
    PendingOutput,
    emit_all,
    start_output,
)
from penstock.engine.api.stream_elements import Batch
from penstock.engine.exchange.batch_concat import all_weights
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.rows.row_difference import difference
from penstock.engine.state.rows.total_order import RowOrder
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.sort import TopN
from penstock.planner.physical.operator_specs import OperatorSpec


class TopNOperator(Operator):
    """Stores all rows (of an append-only input only the first) and emits, per batch, what changed among the
    first ``limit`` after ``offset``.

    A row of weight w counts as w rows. Ties are broken by all columns, so the result is a function of the
    rows alone.
    """

    def __init__(self, spec: OperatorSpec[TopN, PartitionFacts], options: JobOptions) -> None:
        self._node, self._facts = spec.node, spec.facts
        self._schema = spec.schema.to_arrow()
        self._order = RowOrder(spec.node.keys, self._schema, options.time_zone, spec.facts.arrival)

    def open(self, context: Context) -> None:
        self._context = context
        # one slot for all rows: there is no partition
        self._slot = KeyIndex([])
        groups, numbered = context.key_groups.max_parallelism, self._order.arrival != 0
        # equal rows that arrived apart may have others between them
        apart = numbered and self._facts.insert_only
        self._rows = JoinSide(
            self._schema, [], self._slot, groups, retracting=not apart, counts=False, numbered=numbered
        )
        # what was emitted last; after a restore it is computed from the rows
        self._shown: list[Batch] | None = None

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        if self._shown is None:
            self._shown = self._first(self._ordered())
        # rows of the batch that are not among its own first rows cannot be among all first rows
        if self._facts.insert_only:
            batch = self._cut(batch)
        self._store(self._rows.consolidated(batch, keep=True))
        # the difference is emitted: rows pushed out of the first are retracted, the new ones inserted
        before, self._shown = self._shown, self._first(self._ordered())
        self._context.metrics.state_entries = len(self._rows)
        return start_output(emit_all(difference(before, self._shown), out))

    def _store(self, batch: Batch) -> None:
        if batch.num_rows:
            slots = self._slot.lookup_or_insert([], batch.num_rows)
            self._rows.change(batch, slots, np.zeros(batch.num_rows, np.int64))

    def _ordered(self) -> np.ndarray:
        """Return the ids of all stored rows in order. Of an append-only input, rows that can never be among
        the first are dropped.
        """
        store = self._rows.store
        ids = store.live_ids()
        rows = [store.take(ids[first:last]) for first, last in store.chunks(ids)]
        ids = ids[self._order.sorted_pieces(rows, store.arrived(ids))]
        if self._facts.insert_only:
            stored = self._up_to(store.weights(ids))
            self._rows.remove(ids[stored:])
            ids = ids[:stored]
        return ids

    def _cut(self, batch: Batch) -> Batch:
        """The rows of an append-only batch that can be among the first, in input order."""
        order = self._order.sorted(batch.rows)
        return batch.take(np.sort(order[: self._up_to(all_weights([batch])[order])]))

    def _up_to(self, weights: np.ndarray) -> int:
        """Return how many ordered rows fill limit and offset."""
        # the rows of OFFSET are stored as well: a new row before them pushes one of them into the output
        wanted = self._node.limit + self._node.offset
        return min(weights.size, int(np.searchsorted(np.cumsum(weights), wanted)) + 1)

    def _first(self, ordered: np.ndarray) -> list[Batch]:
        """Return the output rows with that part of their weight that is between offset and offset + limit.
        Rows of negative weight are never output.
        """
        store = self._rows.store
        # Row i is at positions ends - weight .. ends of the order. LIMIT 3 OFFSET 2 outputs positions 2 to 5.
        weights = np.maximum(store.weights(ordered), 0)
        ends = np.cumsum(weights)
        low, high = self._node.offset, self._node.offset + self._node.limit
        visible = np.minimum(ends, high) - np.maximum(ends - weights, low)
        ids, visible = ordered[visible > 0], visible[visible > 0]
        return [Batch(store.take(ids[first:last]), visible[first:last]) for first, last in store.chunks(ids)]
