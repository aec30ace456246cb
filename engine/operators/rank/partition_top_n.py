"""Top-N per partition: of append-only rows, of changes, and per window. Ranks are ROW_NUMBER, RANK or
DENSE_RANK.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    Operator,
    Output,
    PendingOutput,
    emit_batch,
    start_output,
)
from penstock.engine.api.row_pieces import as_one
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.exchange.batch_concat import all_weights, take_rows_from
from penstock.engine.kernels.arrow_views import words
from penstock.engine.operators.over.partition_recompute import PartitionRecompute, columns_of
from penstock.engine.operators.over.partitions import Partitions, Peers, partitioned
from penstock.engine.state.aggregates.top_n_filter import BestKeys
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.rows.row_difference import difference
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.time_to_live import EXPIRED, LastWrites, PartitionEnds
from penstock.engine.windowing.window_assigner import WindowAssigner
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.over import PartitionTop
from penstock.planner.physical.operator_specs import OperatorSpec


class AppendTopNOperator(Operator):
    """Append-only: stores only the first rows of each partition. Merges a batch with them; a stored row that
    is no longer among the first is retracted and dropped.
    """

    def __init__(self, spec: OperatorSpec[PartitionTop, PartitionFacts], options: JobOptions) -> None:
        self._spec, self._node, self._facts = spec, spec.node, spec.facts
        self._input = spec.node.input.schema.to_arrow()
        self._schema = spec.schema.to_arrow()
        self._order = RowOrder(spec.node.order, self._input, options.time_zone, spec.facts.arrival)
        self._peers = Peers(spec.node.order, options.time_zone)
        self._distinct = DistinctSlots()
        self._best = self._gate(options.time_zone)

    def _gate(self, time_zone: str) -> BestKeys | None:
        """Return the filter of rows that cannot be among the first. DENSE_RANK counts keys, not rows, and has
        none.
        """
        spec = self._spec
        if (
            spec.node.rank == "dense_rank"
            or not spec.node.order
            or not BestKeys.serve(to_arrow(spec.node.order[0].expression.type), spec.node.limit)
        ):
            return None
        return BestKeys(spec.node.order[0], spec.node.limit, time_zone)

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._keys = KeyIndex([self._input.field(key).type for key in self._node.partition])
        groups = context.key_groups.max_parallelism
        writes = LastWrites(self._facts.ttl_ms, context.clock) if self._facts.ttl_ms else None
        # append-only: a row is never looked up by its content
        stays = {"retracting": False, "counts": False, "by_key": True, "numbered": self._order.arrival != 0}
        self._rows = JoinSide(self._input, self._node.partition, self._keys, groups, writes=writes, **stays)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"rows": self._rows}

    @property
    def wants_ticks(self) -> bool:
        return self._facts.ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Expire partitions by the time since a row of theirs was stored; nothing is emitted."""
        expired = self._rows.due(now_ms)
        if expired.size:
            _, ids = self._rows.links.expand(expired)
            self._rows.remove(ids)
            self._keys.remove(expired)
            # the output of an expired partition stays; a later row of it begins a new one
            if self._best is not None:
                self._best.forget(expired)
            self._metrics.count(EXPIRED, int(expired.size))
            self._metrics.state_entries = len(self._rows)

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        if batch.weights is None:
            self._take(batch, out)
            return None
        return start_output(self._take_copies(batch, batch.weights, out))

    def _take_copies(self, batch: Batch, weights: np.ndarray, out: Output) -> PendingOutput:
        """Repeat rows by their weights. Of more than ``limit`` equal rows no more are emitted, unless they
        all have one rank.
        """
        # equal rows have equal ranks, so all of them may be among the first
        if self._node.rank != "row_number":
            self._take(batch.repeated(), out)  # all of them are stored and emitted
            return
        for number, piece in enumerate(
            replace(batch, weights=np.minimum(weights, self._node.limit)).single_rows()
        ):
            if number:
                yield
            self._take(piece, out)

    def _take(self, batch: Batch, out: Output) -> None:
        if not batch.num_rows:
            return
        slots = self._keys.lookup_or_insert(
            [batch.rows.column(key) for key in self._node.partition], batch.num_rows
        )
        rows = batch.rows
        if self._best is not None:
            # cheap test before the sort: worse than the limit-th best order key of its partition
            passed = self._best.passed(rows, slots, self._keys.capacity)
            if passed.size < slots.size:
                rows, slots = rows.take(array_of(passed)), slots[passed]
        for some in self._rows.at_once(self._distinct.of(slots, self._keys.capacity)) if slots.size else ():
            mine = np.isin(slots, some)
            if mine.all():
                self._merge(rows, slots, out)
            else:
                self._merge(rows.filter(array_of(mine)), slots[mine], out)
        self._metrics.state_entries = len(self._rows)

    def _merge(self, rows: pa.RecordBatch, slots: np.ndarray, out: Output) -> None:
        """Store the first of the new and the stored rows, and emit what changed."""
        touched = self._distinct.of(slots, self._keys.capacity)
        # stored rows first, new rows behind them: a position below `ids.size` is a stored row
        positions, ids = self._rows.links.expand(touched)
        stored = self._rows.store.take(ids)
        store = self._rows.store
        # where the query orders by arrival, rows equal in the keys are in order of arrival
        arrived = (
            np.concatenate([store.arrived(ids), store.next_arrival + np.arange(slots.size)])
            if store.numbered
            else None
        )
        part = partitioned(
            as_one([stored, rows], self._input),
            np.concatenate([touched[positions], slots]),
            self._order,
            arrived,
        )
        stays = self._peers.ranks(part, self._node.rank) <= self._node.limit
        old = part.origins < ids.size
        # leaves: stored rows that are no longer among the first; new: rows of the batch that are
        leaves, new = np.flatnonzero(old & ~stays), np.flatnonzero(~old & stays)
        # emitted before the store changes: the sorted rows are positions in the old state
        self._emit_changes(part, old, stays, leaves, new, out)
        self._rows.remove(ids[part.origins[leaves]])
        numbers = None if arrived is None else arrived[part.origins[new]]
        self._rows.change(
            Batch(part.rows.take(array_of(new))), part.slots[new], np.zeros(new.size, np.int64), numbers
        )

    def _emit_changes(
        self,
        part: Partitions,
        old: np.ndarray,
        stays: np.ndarray,
        leaves: np.ndarray,
        new: np.ndarray,
        out: Output,
    ) -> None:
        # SELECT .., rn: a new first row moves all others by one
        if self._node.shows_rank:
            self._emit_reranked(part, old, stays, out)
            return
        chosen = np.concatenate([leaves, new])
        if chosen.size:
            weights = np.concatenate([np.full(leaves.size, -1), np.ones(new.size, np.int64)])
            # by partition, retractions first: a partition never shows more than `limit` rows
            turn = np.lexsort((weights, part.slots[chosen]))
            rows = part.rows.take(array_of(chosen[turn]))
            shown = pa.RecordBatch.from_arrays(rows.columns, schema=self._schema)
            out.collect(Batch(shown, None if not leaves.size else weights[turn]))

    def _emit_reranked(self, part: Partitions, old: np.ndarray, stays: np.ndarray, out: Output) -> None:
        """Emit the rows whose rank has changed."""
        # 0: not among the first
        before, after = np.zeros(old.size, np.int64), np.zeros(old.size, np.int64)
        before[old] = self._peers.ranks(part.filter(old), self._node.rank)
        after[stays] = self._peers.ranks(part.filter(stays), self._node.rank)
        changed = before != after
        groups = self._peers.of(part).numbers
        # no other row has the same order key: the change of such a row cannot cancel out with another's
        alone = np.bincount(groups, minlength=1)[groups] == 1
        leaves, new = np.flatnonzero(old & changed), np.flatnonzero(stays & changed)
        retracted, inserted = leaves[alone[leaves]], new[alone[new]]
        rows = part.rows.take(array_of(np.concatenate([retracted, inserted])))
        ranked = self._ranked(rows, np.concatenate([before[retracted], after[inserted]]))
        pieces = [Batch(ranked.rows, np.repeat([-1, 1], [retracted.size, inserted.size]))]
        leaves, new = leaves[~alone[leaves]], new[~alone[new]]
        if leaves.size or new.size:  # peers may be equal rows: what one loses the other may get
            pieces += difference(
                [self._ranked(part.rows.take(array_of(leaves)), before[leaves])],
                [self._ranked(part.rows.take(array_of(new)), after[new])],
            )
        weights = all_weights(pieces)
        # all retractions, then all insertions
        turn = np.argsort(weights > 0, kind="stable")
        for batch in take_rows_from(pieces, turn, None if (weights == 1).all() else weights[turn]):
            out.collect(batch)

    def _ranked(self, rows: pa.RecordBatch, ranks: np.ndarray) -> Batch:
        """Rows with their ranks, if the query reads them."""
        columns = list(rows.columns)
        if self._node.shows_rank:
            columns.append(array_of(ranks.astype(np.int32)))
        return Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


class RetractTopNOperator(PartitionRecompute):
    """Under any changes: stores all rows, for a retraction lets another row in. Its output are the rows with
    a rank up to the limit, with the rank if the query reads it.
    """

    def __init__(self, spec: OperatorSpec[PartitionTop, PartitionFacts], options: JobOptions) -> None:
        super().__init__(spec, options)
        self._peers = Peers(spec.node.order, options.time_zone)
        self._rank, self._limit, self._shows_rank = spec.node.rank, spec.node.limit, spec.node.shows_rank
        if spec.node.rank == "row_number":
            # of equal rows no more than that are emitted, while all of them have one rank
            self._most_copies = spec.node.limit

    def show(self, part: Partitions) -> list[pa.Array]:
        ranks = self._peers.ranks(part, self._rank)
        # WHERE rn <= n
        first = np.flatnonzero(ranks <= self._limit)
        rows = part.rows.take(array_of(first))
        return columns_of(rows, [array_of(ranks[first].astype(np.int32))] if self._shows_rank else [])


class WindowTopNOperator(AppendTopNOperator):
    """Stores the first rows of each open window and emits them when it closes. Late rows are dropped and
    counted.
    """

    def __init__(self, spec: OperatorSpec[PartitionTop, PartitionFacts], options: JobOptions) -> None:
        super().__init__(spec, options)
        assert spec.node.window is not None
        self._window = spec.node.window
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        super().open(context)
        self._assigner = WindowAssigner(self._window, context.metrics)
        self._ends: PartitionEnds | None = None

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return super().on_batch(self._assigner.assign(batch, self._watermark_us).batch, port, out)

    def _merge(self, rows: pa.RecordBatch, slots: np.ndarray, out: Output) -> None:
        self._partition_ends().note(slots, words(rows.column(self._window.end_column)), self._keys.capacity)
        super()._merge(rows, slots, out)

    def _emit_changes(
        self,
        part: Partitions,
        old: np.ndarray,
        stays: np.ndarray,
        leaves: np.ndarray,
        new: np.ndarray,
        out: Output,
    ) -> None:
        """Nothing is emitted while a window is open."""

    def _partition_ends(self) -> PartitionEnds:
        """The window ends of partitions, those of restored rows included."""
        if self._ends is None:
            self._ends = PartitionEnds()
            stored = self._rows.store.take(self._rows.store.live_ids())
            slots = self._keys.lookup([stored.column(key) for key in self._node.partition], stored.num_rows)
            self._ends.note(slots, words(stored.column(self._window.end_column)), self._keys.capacity)
        return self._ends

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        self._watermark_us = time_us
        ended = self._partition_ends().due(self._keys.live_slots(), time_us)
        if not ended.size:
            return
        # the first rows of each ended window: sorted, ranked and emitted once
        positions, ids = self._rows.links.expand(ended)
        part = partitioned(self._rows.store.take(ids), positions, self._order, self._rows.store.arrived(ids))
        yield from emit_batch(self._ranked(part.rows, self._peers.ranks(part, self._node.rank)), out)
        self._rows.remove(ids)
        self._keys.remove(ended)
        if self._best is not None:
            self._best.forget(ended)
        self._metrics.windows_closed += int(ended.size)
        self._metrics.state_entries = len(self._rows)
