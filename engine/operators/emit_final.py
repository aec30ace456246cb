"""EMIT FINAL: the rows that are left once all changes have come, emitted at the end of input."""

from __future__ import annotations

import numpy as np

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, Operator, Output, PendingOutput, start_output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.join_side import JoinSide
from penstock.planner.logical.emit import Emit, EmitFacts
from penstock.planner.physical.operator_specs import OperatorSpec


class EmitFinalOperator(Operator):
    """Keeps the current rows; all changes of a row come to one subtask."""

    def __init__(self, spec: OperatorSpec[Emit, EmitFacts], options: JobOptions) -> None:
        self._key_columns = spec.facts.keys
        self._schema = spec.schema.to_arrow()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._keys = KeyIndex([self._schema.field(key).type for key in self._key_columns])
        groups = context.key_groups.max_parallelism
        self._rows = JoinSide(
            self._schema, self._key_columns, self._keys, groups, retracting=True, counts=False
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # a row and its retraction cancel out, in a batch here and between batches in the state
        batch = self._rows.consolidated(batch, keep=True)
        if not batch.num_rows:
            return
        slots = self._keys.lookup_or_insert(
            [batch.rows.column(key) for key in self._key_columns], batch.num_rows
        )
        self._keys.remove(self._rows.change(batch, slots, np.zeros(batch.num_rows, np.int64)))
        self._metrics.state_entries = len(self._rows)

    def on_end(self, out: Output) -> PendingOutput | None:
        return start_output(self._end(out))

    def _end(self, out: Output) -> PendingOutput:
        store = self._rows.store
        ids = store.live_ids()
        # what is left is the result: each row with its weight
        for first, last in store.pieces(ids):
            if first:
                yield
            weights = store.weights(ids[first:last])
            out.collect(Batch(store.take(ids[first:last]), None if (weights == 1).all() else weights))
        # a final checkpoint after the end stores nothing
        self._keys.remove(self._keys.live_slots())
        self._rows.clear()
        self._metrics.state_entries = 0
