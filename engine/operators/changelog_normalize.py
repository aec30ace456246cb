"""Upserts become a changelog: an upsert retracts the row it replaces, a deletion the row there was."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, Operator, Output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.rows.row_difference import difference
from penstock.planner.logical.changelog_normalize import ChangelogNormalize
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.physical.operator_specs import OperatorSpec


class ChangelogNormalizeOperator(Operator):
    """Stores the row of each key. Of a batch only the last change of a key counts: what came between is
    neither stored nor emitted.
    """

    def __init__(self, spec: OperatorSpec[ChangelogNormalize, OperatorFacts], options: JobOptions) -> None:
        self._key = spec.node.key
        self._input = spec.node.input.schema.to_arrow()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._keys = KeyIndex([self._input.field(key).type for key in self._key])
        # one row a key, found by its key alone
        self._rows = JoinSide(
            self._input,
            self._key,
            self._keys,
            context.key_groups.max_parallelism,
            retracting=False,
            counts=False,
            by_key=True,
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        if not batch.num_rows:
            return
        slots = self._keys.lookup_or_insert([batch.rows.column(key) for key in self._key], batch.num_rows)
        # the last change of each key; a stable sort keeps the order of arrival
        order = np.argsort(slots, kind="stable")
        last = order[np.append(np.flatnonzero(np.diff(slots[order])), slots.size - 1)]
        touched = slots[last]
        for some in self._rows.at_once(touched):
            mine = last if some.size == touched.size else last[np.isin(touched, some)]
            self._replace(batch, mine, slots[mine], out)
        self._metrics.state_entries = len(self._rows)

    def _replace(self, batch: Batch, last: np.ndarray, slots: np.ndarray, out: Output) -> None:
        """Put these rows of a batch, one a key, in the place of what is stored."""
        # in order of arrival, so that changes come as they came
        arrival = np.argsort(last)
        last, slots = last[arrival], slots[arrival]
        stays = np.ones(last.size, np.bool_) if batch.weights is None else batch.weights[last] > 0
        _, ids = self._rows.links.expand(slots)
        before = self._rows.store.take(ids)
        after = batch.rows.take(array_of(last[stays]))
        after = pa.RecordBatch.from_arrays(after.columns, schema=self._input)
        for changes in difference([Batch(before)], [Batch(after)]):
            if changes.num_rows:
                out.collect(changes)
        self._rows.remove(ids)
        self._rows.change(Batch(after), slots[stays], np.zeros(after.num_rows, np.int64))
        self._keys.remove(slots[~stays])
