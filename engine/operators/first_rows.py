"""Top-N per partition of rows that are never taken back: only the first rows of each partition are kept."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from engine.elements import Batch
from engine.job_options import JobOptions
from engine.operator import Context, KeyedState, Operator, Output
from engine.partitions import Partitions, partitioned
from engine.peers import Peers
from engine.state.join_side import JoinSide
from engine.state.key_index import KeyIndex
from engine.state.row_difference import difference
from engine.state.row_order import RowOrder
from engine.state.slot_sets import DistinctSlots
from planner.physical import PartitionTopSpec


class FirstRowsOperator(Operator):
    """Merges the rows of a batch with the kept ones of their partitions; rows that are no longer among the first are taken back and let go."""

    def __init__(self, spec: PartitionTopSpec, options: JobOptions) -> None:
        self._spec = spec
        self._input = spec.input_schema.to_arrow()
        self._schema = spec.schema.to_arrow()
        self._order = RowOrder(spec.order, self._input, options.time_zone)
        self._peers = Peers(spec.order, options.time_zone)
        self._distinct = DistinctSlots()

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._keys = KeyIndex([self._input.field(key).type for key in self._spec.partition])
        groups = context.key_groups.max_parallelism
        self._rows = JoinSide(self._input, self._spec.partition, self._keys, groups, retracting=False, counts=False)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        if batch.weights is not None:
            batch = batch.take(np.repeat(np.arange(batch.num_rows), batch.weights))
        if not batch.num_rows:
            return
        slots = self._keys.lookup_or_insert([batch.rows.column(key) for key in self._spec.partition], batch.num_rows)
        self._merge(batch.rows, slots, out)
        self._metrics.state_entries = len(self._rows)

    def _merge(self, rows: pa.RecordBatch, slots: np.ndarray, out: Output) -> None:
        """Keep the first of the new rows and the kept ones, and give what changed."""
        touched = self._distinct.of(slots, self._keys.capacity)
        positions, ids = self._rows.links.expand(touched)
        held = self._rows.store.take(ids)
        part = partitioned(pa.concat_batches([held, rows]), np.concatenate([touched[positions], slots]), self._order)
        kept = self._peers.ranks(part, self._spec.rank) <= self._spec.limit
        old = part.origins < ids.size
        gone, new = np.flatnonzero(old & ~kept), np.flatnonzero(~old & kept)
        self._give(part, old, kept, gone, new, out)
        self._rows.remove(ids[part.origins[gone]])
        self._rows.change(Batch(part.rows.take(pa.array(new))), part.slots[new], np.zeros(new.size, np.int64))

    def _give(self, part: Partitions, old: np.ndarray, kept: np.ndarray, gone: np.ndarray, new: np.ndarray, out: Output) -> None:
        if self._spec.shows_rank:
            change = difference(self._ranked(part.kept(old)), self._ranked(part.kept(kept)))
            if change is not None:
                out.collect(change)
            return
        chosen = np.concatenate([gone, new])
        if chosen.size:
            weights = np.concatenate([np.full(gone.size, -1), np.ones(new.size, np.int64)])
            turn = np.lexsort((weights, part.slots[chosen]))
            rows = part.rows.take(pa.array(chosen[turn]))
            shown = pa.RecordBatch.from_arrays(rows.columns, schema=self._schema)
            out.collect(Batch(shown, None if not gone.size else weights[turn]))

    def _ranked(self, part: Partitions) -> Batch:
        """Rows with their ranks, where these are asked for."""
        columns = list(part.rows.columns)
        if self._spec.shows_rank:
            columns.append(pa.array(self._peers.ranks(part, self._spec.rank).astype(np.int32)))
        return Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))
