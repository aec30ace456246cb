"""Top-N per partition: of append-only rows, of changes, and per window. Ranks are ROW_NUMBER, RANK or
DENSE_RANK.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
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
from penstock.engine.state.rows.stored_chunks import StoredChunks
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.time_to_live import EXPIRED, LastWrites, PartitionEnds
from penstock.engine.windowing.window_assigner import WindowAssigner
from penstock.planner.expressions.nodes import Column, Expression
from penstock.planner.logical.operator_facts import PartitionFacts
from penstock.planner.logical.over import PartitionTop
from penstock.planner.physical.operator_specs import OperatorSpec


@dataclass(frozen=True, eq=False)
class Candidates:
    """The rows of some partitions, stored ones before those of a batch. ``positions`` has for each row its
    position in the chunks.
    """

    chunks: StoredChunks
    positions: np.ndarray

    def take(self, chosen: np.ndarray) -> pa.RecordBatch:
        """Return all columns of chosen rows."""
        return self.chunks.take(self.positions[chosen])


class AppendTopNOperator(Operator):
    """Append-only: stores only the first rows of each partition. Merges a batch with them; a stored row that
    is no longer among the first is retracted and dropped.

    Only the columns that decide the order are sorted. The others are copied once for the output and once for
    the state, of the rows that are among the first.
    """

    def __init__(self, spec: OperatorSpec[PartitionTop, PartitionFacts], options: JobOptions) -> None:
        self._spec, self._node, self._facts = spec, spec.node, spec.facts
        self._input = spec.node.input.schema.to_arrow()
        self._schema = spec.schema.to_arrow()
        # rows that are equal in the keys are ordered by all their columns, or by their arrival
        read = {index for key in spec.node.order for index in key.expression.columns()}
        self._ordering = sorted(read) or [0] if spec.facts.arrival else list(range(len(self._input)))
        self._narrow = pa.schema([self._input.field(index) for index in self._ordering])
        keys = [key.map(self._narrowed) for key in spec.node.order]
        self._order = RowOrder(keys, self._narrow, options.time_zone, spec.facts.arrival)
        self._peers = Peers(keys, options.time_zone)
        self._distinct = DistinctSlots()
        self._best = self._gate(options.time_zone)

    def _narrowed(self, key: Expression) -> Expression:
        """Return an order key over the columns that are sorted."""
        return key.transform(
            lambda node: (
                replace(node, index=self._ordering.index(node.index)) if isinstance(node, Column) else node
            )
        )

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
        at = np.arange(batch.num_rows)
        if self._best is not None:
            # cheap test before the sort: worse than the limit-th best order key of its partition
            at = self._best.passed(batch.rows, slots, self._keys.capacity)
            slots = slots[at]
        for some in self._rows.at_once(self._distinct.of(slots, self._keys.capacity)) if slots.size else ():
            mine = np.isin(slots, some)
            self._merge(batch.rows, at[mine], slots[mine], out)
        self._metrics.state_entries = len(self._rows)

    def _merge(self, rows: pa.RecordBatch, at: np.ndarray, slots: np.ndarray, out: Output) -> None:
        """Store the first of the new (``at`` their positions in the batch) and the stored rows, and emit what
        changed.
        """
        touched = self._distinct.of(slots, self._keys.capacity)
        # stored rows first, new rows behind them: a position below `ids.size` is a stored row
        positions, ids = self._rows.links.expand(touched)
        store = self._rows.store
        candidates = Candidates(*store.beside(ids, rows, at))
        # where the query orders by arrival, rows equal in the keys are in order of arrival
        arrived = (
            np.concatenate([store.arrived(ids), store.next_arrival + np.arange(slots.size)])
            if store.numbered
            else None
        )
        part = partitioned(
            candidates.chunks.take(candidates.positions, self._ordering),
            np.concatenate([touched[positions], slots]),
            self._order,
            arrived,
        )
        stays = self._peers.ranks(part, self._node.rank) <= self._node.limit
        old = part.origins < ids.size
        # leaves: stored rows that are no longer among the first; new: rows of the batch that are
        leaves, new = np.flatnonzero(old & ~stays), np.flatnonzero(~old & stays)
        first = candidates.take(part.origins[new])
        # emitted before the store changes: the sorted rows are positions in the old state
        if self._node.shows_rank:
            # SELECT .., rn: a new first row moves all others by one
            self._emit_reranked(part, candidates, old, stays, out)
        else:
            self._emit_changes(part, candidates, leaves, new, first, out)
        self._rows.remove(ids[part.origins[leaves]])
        numbers = None if arrived is None else arrived[part.origins[new]]
        self._rows.change(Batch(first), part.slots[new], np.zeros(new.size, np.int64), numbers)

    def _emit_changes(
        self,
        part: Partitions,
        candidates: Candidates,
        leaves: np.ndarray,
        new: np.ndarray,
        first: pa.RecordBatch,
        out: Output,
    ) -> None:
        """Emit the rows that leave and the new ``first`` ones."""
        chosen = np.concatenate([leaves, new])
        if not chosen.size:
            return
        rows, weights = first, None
        if leaves.size:
            weights = np.concatenate([np.full(leaves.size, -1), np.ones(new.size, np.int64)])
            # by partition, retractions first: a partition never shows more than `limit` rows
            turn = np.lexsort((weights, part.slots[chosen]))
            rows, weights = candidates.take(part.origins[chosen[turn]]), weights[turn]
        out.collect(Batch(pa.RecordBatch.from_arrays(rows.columns, schema=self._schema), weights))

    def _emit_reranked(
        self, part: Partitions, candidates: Candidates, old: np.ndarray, stays: np.ndarray, out: Output
    ) -> None:
        """Emit the rows whose rank has changed."""

        def ranked(positions: np.ndarray, ranks: np.ndarray) -> Batch:
            return self._ranked(candidates.take(part.origins[positions]), ranks)

        # 0: not among the first
        before, after = np.zeros(old.size, np.int64), np.zeros(old.size, np.int64)
        before[old] = self._peers.ranks(part.filter(old), self._node.rank)
        after[stays] = self._peers.ranks(part.filter(stays), self._node.rank)
        changed = before != after
        groups = self._peers.of(part).numbers
        # no other row has the same order key: the change of such a row cannot cancel out with another's
        alone = np.bincount(groups, minlength=1)[groups] == 1
        leaves, new = np.flatnonzero(old & changed), np.flatnonzero(stays & changed)
        leaving, entering = leaves[alone[leaves]], new[alone[new]]
        lost, won = leaves[~alone[leaves]], new[~alone[new]]
        # peers may be equal rows: what one loses the other may get
        if lost.size or won.size:
            pieces = [
                Batch(ranked(leaving, before[leaving]).rows, np.full(leaving.size, -1)),
                ranked(entering, after[entering]),
                *difference([ranked(lost, before[lost])], [ranked(won, after[won])]),
            ]
            weights = all_weights(pieces)
            # all retractions, then all insertions
            turn = np.argsort(weights > 0, kind="stable")
            for batch in take_rows_from(pieces, turn, None if (weights == 1).all() else weights[turn]):
                out.collect(batch)
        elif leaving.size or entering.size:
            weights = np.repeat([-1, 1], [leaving.size, entering.size])
            rows = ranked(
                np.concatenate([leaving, entering]), np.concatenate([before[leaving], after[entering]])
            )
            out.collect(Batch(rows.rows, weights if leaving.size else None))

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
        # a window that ends emits all columns: they are sorted with it
        self._whole_order = RowOrder(spec.node.order, self._input, options.time_zone, spec.facts.arrival)
        self._whole_peers = Peers(spec.node.order, options.time_zone)
        assert spec.node.window is not None
        self._window = spec.node.window
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        super().open(context)
        self._assigner = WindowAssigner(self._window, context.metrics)
        self._ends: PartitionEnds | None = None

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return super().on_batch(self._assigner.assign(batch, self._watermark_us).batch, port, out)

    def _merge(self, rows: pa.RecordBatch, at: np.ndarray, slots: np.ndarray, out: Output) -> None:
        ends = words(rows.column(self._window.end_column))
        self._partition_ends().note(slots, ends[at], self._keys.capacity)
        super()._merge(rows, at, slots, out)

    def _emit_changes(
        self,
        part: Partitions,
        candidates: Candidates,
        leaves: np.ndarray,
        new: np.ndarray,
        first: pa.RecordBatch,
        out: Output,
    ) -> None:
        """Nothing is emitted while a window is open."""

    def _emit_reranked(
        self, part: Partitions, candidates: Candidates, old: np.ndarray, stays: np.ndarray, out: Output
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
        arrived = self._rows.store.arrived(ids)
        part = partitioned(self._rows.store.take(ids), positions, self._whole_order, arrived)
        yield from emit_batch(self._ranked(part.rows, self._whole_peers.ranks(part, self._node.rank)), out)
        self._rows.remove(ids)
        self._keys.remove(ended)
        if self._best is not None:
            self._best.forget(ended)
        self._metrics.windows_closed += int(ended.size)
        self._metrics.state_entries = len(self._rows)
