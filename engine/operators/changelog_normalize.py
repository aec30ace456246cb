"""Upserts become a changelog: an upsert retracts the row it replaces, a deletion the row there was. A value
that an upsert leaves out is that of the row it replaces.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.arrow_numpy import array_of, truths
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
        self._key, self._marks = spec.node.key, spec.node.marks
        # columns whose values may be left out, with their bit in the marks
        self._bits = {column: bit for column, bit in enumerate(spec.node.bits) if bit >= 0}
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
        ends = np.append(np.flatnonzero(np.diff(slots[order])), slots.size - 1)
        last = order[ends]
        touched = slots[last]
        known = self._last_known(batch.rows, order, ends)
        if self._marks >= 0:
            # what is stored and emitted has all its values
            none = pa.nulls(batch.num_rows, self._input.field(self._marks).type)
            batch = Batch(
                batch.rows.set_column(self._marks, self._input.field(self._marks), none), batch.weights
            )
        for some in self._rows.at_once(touched):
            mine = slice(None) if some.size == touched.size else np.flatnonzero(np.isin(touched, some))
            self._replace(
                batch, last[mine], {column: rows[mine] for column, rows in known.items()}, slots, out
            )
        self._metrics.state_entries = len(self._rows)

    def _last_known(self, rows: pa.RecordBatch, order: np.ndarray, ends: np.ndarray) -> dict[int, np.ndarray]:
        """Return for each column that a last change leaves out: the last row of each key that has a value of
        it, -1 for none.
        """
        if self._marks < 0 or rows.column(self._marks).null_count == rows.num_rows:
            return {}
        marks = rows.column(self._marks)
        marked = np.flatnonzero(truths(marks.is_valid()))
        # the bytes of NULL have no length, so those of all marks are one after the other
        packed = np.frombuffer(b"".join(marks.drop_null().to_pylist()), np.uint8).reshape(marked.size, -1)
        bits = np.unpackbits(packed, axis=1, bitorder="little")
        starts = np.append(0, ends[:-1] + 1)
        known = {}
        for column, bit in self._bits.items():
            if not bits[:, bit].any():
                continue
            has = np.ones(rows.num_rows, np.bool_)
            has[marked] = bits[:, bit] == 0
            found = np.maximum.reduceat(np.where(has[order], np.arange(order.size), -1), starts)
            known[column] = np.where(found >= 0, order[found], -1)
        return known

    def _replace(
        self, batch: Batch, last: np.ndarray, known: dict[int, np.ndarray], slots: np.ndarray, out: Output
    ) -> None:
        """Put these rows of a batch, one a key, in the place of what is stored."""
        # in order of arrival, so that changes come as they came
        arrival = np.argsort(last)
        last = last[arrival]
        slots = slots[last]
        stays = np.ones(last.size, np.bool_) if batch.weights is None else batch.weights[last] > 0
        positions, ids = self._rows.links.expand(slots)
        before = self._rows.store.take(ids)
        columns = batch.rows.take(array_of(last[stays])).columns
        for column, latest in known.items():
            rows = latest[arrival][stays]
            stored = np.full(last.size, -1, np.int64)
            stored[positions] = np.arange(ids.size)
            columns[column] = _filled(batch.rows.column(column), rows, before.column(column), stored[stays])
        after = pa.RecordBatch.from_arrays(columns, schema=self._input)
        for changes in difference([Batch(before)], [Batch(after)]):
            if changes.num_rows:
                out.collect(changes)
        self._rows.remove(ids)
        self._rows.change(Batch(after), slots[stays], np.zeros(after.num_rows, np.int64))
        self._keys.remove(slots[~stays])


def _filled(values: pa.Array, rows: np.ndarray, before: pa.Array, stored: np.ndarray) -> pa.Array:
    """Return values of these rows; where that is -1, the stored one. DAT-5418 when there is none."""
    if ((rows < 0) & (stored < 0)).any():
        raise PenstockError(
            "DAT-5418",
            "an update leaves out a value that it has not changed, and there is no row of its key",
            hint="start the job anew without its state: it reads the table again",
            kind=Kind.EXTERNAL,
        )
    places = np.where(rows >= 0, rows, len(values) + stored)
    taken = pa.chunked_array([values, before], values.type).take(array_of(places))
    return taken.combine_chunks() if taken.num_chunks != 1 else taken.chunk(0)
