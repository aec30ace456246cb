"""Unbounded GROUP BY: one row per key, retracted and replaced as it changes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from catalog.types import BIGINT
from engine.elements import Batch
from engine.job_options import JobOptions
from engine.kernels.partition import counting_sort
from engine.operator import Context, KeyedState, Operator, Output
from engine.state.accumulators import Accumulators
from engine.state.key_index import KeyIndex
from engine.state.row_changes import changed_rows
from engine.state.slot_sets import DistinctSlots
from planner.expressions import AggregateCall
from planner.physical import GroupAggregateSpec

_ROW_COUNT = AggregateCall("count", (), BIGINT, False)


class GroupState:
    """Keys, their aggregates, and last among these the number of rows of each key."""

    def __init__(self, key_types: Sequence[pa.DataType], accumulators: Accumulators, max_parallelism: int) -> None:
        self.keys = KeyIndex(key_types)
        self.accumulators = accumulators
        self._num_keys = len(key_types)
        self._max_parallelism = max_parallelism

    def slots(self, key_columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        """Return the slot of each row, new keys getting one."""
        slots = self.keys.lookup_or_insert(key_columns, num_rows)
        self.accumulators.reserve(self.keys.capacity)
        return slots

    def remove(self, slots: np.ndarray) -> None:
        """Forget keys and their aggregates."""
        self.accumulators.clear(slots)
        self.keys.remove(slots)

    def snapshot(self) -> pa.Table:
        """Return key_group, key columns k0.., then the accumulators' columns."""
        slots = self.keys.live_slots()
        groups = self.keys.key_groups(slots, self._max_parallelism)
        order, _ = counting_sort(groups.astype(np.int64), self._max_parallelism)
        slots = slots[order]
        columns = {"key_group": pa.array(groups[order])} | {f"k{i}": column for i, column in enumerate(self.keys.keys(slots))}
        return pa.table(columns | self.accumulators.columns(slots))

    def restore(self, part: pa.Table) -> None:
        """Add keys of a snapshot."""
        columns = {name: part.column(name).combine_chunks() for name in part.column_names}
        slots = self.slots([columns[f"k{i}"] for i in range(self._num_keys)], part.num_rows)
        self.accumulators.restore(slots, {name: column for name, column in columns.items() if name.startswith("a")})


class GroupAggregateOperator(Operator):
    """Emits per batch and changed key the old row with weight -1, if there was one, and the new row with weight +1, if any rows are left.

    Nothing is emitted for a key whose row stays as it was. Without keys there is always one row, given over no rows at the end if need be.
    """

    def __init__(self, spec: GroupAggregateSpec, options: JobOptions) -> None:
        self._keys = spec.keys
        self._schema = spec.schema.to_arrow()
        self._key_types = [spec.input_schema.to_arrow().field(key).type for key in spec.keys]
        self._accumulators = Accumulators((*spec.aggregates, _ROW_COUNT), spec.insert_only, options.time_zone)
        self._distinct = DistinctSlots()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._owns_the_one_row = not self._keys and context.key_groups.start == 0 and context.subtask == 0
        self._state = GroupState(self._key_types, self._accumulators, context.key_groups.max_parallelism)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"groups": self._state}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        state = self._state
        known = len(state.keys)
        slots = state.slots([batch.rows.column(key) for key in self._keys], batch.num_rows)
        touched = self._distinct.of(slots, state.keys.capacity)
        before = self._accumulators.results(touched)
        had_row = before[-1].to_numpy() > 0 if self._keys else np.full(touched.size, known > 0)
        self._accumulators.add(slots, batch.rows, batch.weights)
        after = self._accumulators.results(touched)
        counts = after[-1].to_numpy()
        has_row = counts > 0 if self._keys else np.ones(touched.size, np.bool_)
        changed = (had_row != has_row) | (had_row & has_row & changed_rows(before[:-1], after[:-1], touched.size))
        retract, insert = changed & had_row, changed & has_row
        self._emit(touched, before[:-1], after[:-1], retract, insert, out)
        if self._keys:
            state.remove(touched[counts == 0])
        self._metrics.state_entries = len(state.keys)

    def _emit(self, slots: np.ndarray, before: list[pa.Array], after: list[pa.Array], retract: np.ndarray, insert: np.ndarray, out: Output) -> None:
        """Emit old and new rows, those of one key next to each other."""
        if not retract.any():
            if insert.any():
                out.collect(Batch(self._rows(slots, after)).filter(pa.array(insert)))
            return
        old, new = np.flatnonzero(retract), np.flatnonzero(insert)
        order = np.argsort(np.concatenate([2 * old, 2 * new + 1]), kind="stable")
        keys = self._state.keys.keys(slots[np.concatenate([old, new])[order]])
        both = [pa.concat_arrays([a.take(pa.array(old)), b.take(pa.array(new))]).take(pa.array(order)) for a, b in zip(before, after, strict=True)]
        weights = np.concatenate([np.full(old.size, -1), np.ones(new.size, np.int64)])[order]
        out.collect(Batch(pa.RecordBatch.from_arrays(keys + both, schema=self._schema), weights))

    def _rows(self, slots: np.ndarray, results: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(self._state.keys.keys(slots) + results, schema=self._schema)

    def on_end(self, out: Output) -> None:
        if self._owns_the_one_row and not len(self._state.keys):
            slots = self._state.slots([], 1)
            out.collect(Batch(self._rows(slots, self._accumulators.results(slots)[:-1])))
