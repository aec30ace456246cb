"""The nearest join: each left row with the one right row of its keys that is nearest, under any changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, truths
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
from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels.arrow_views import is_bytes, is_wide
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.ordered_values import OrderedValues
from penstock.engine.state.rows.nearest_side import NearestSide
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.time_to_live import ABSENT, EXPIRED, LastWrites
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.joins.join import JoinFacts
from penstock.planner.logical.joins.nearest_join import NearestJoin
from penstock.planner.physical.operator_specs import OperatorSpec


class NearestJoinOperator(Operator):
    """Port 0 are the rows that look for a partner, port 1 those that are looked for.

    A left row is emitted with its nearest right row, and retracted with it. A right row that comes or goes
    changes the left rows from its value up to that of the next right row, and only those are looked at. Each
    side is sorted by key and value, so a row costs O(log n) besides what it changes.

    With a time to live a key is dropped when no row of either side has come for so long. What was emitted
    stays, as of a Top-N.
    """

    def __init__(self, spec: OperatorSpec[NearestJoin, JoinFacts], options: JobOptions) -> None:
        self._node, self._inserts = spec.node, spec.facts.insert_only_inputs
        # one for both sides: a key expires as a whole
        self._ttl_ms = spec.facts.ttl_ms[0]
        self._schemas = (spec.node.left.schema.to_arrow(), spec.node.right.schema.to_arrow())
        self._keys = (spec.node.left_keys, spec.node.right_keys)
        self._output = spec.schema.to_arrow()
        # the columns by which the first of equal values is chosen
        columns = [*(column for column, *_ in spec.node.order), *spec.node.ties]
        self._tie_columns = list(dict.fromkeys(columns))
        right, places = spec.node.right.schema, {c: place for place, c in enumerate(self._tie_columns)}
        keys = [
            SortKey(Column(right[c].type, right[c].nullable, index=places[c]), descending, nulls_first)
            for c, descending, nulls_first in spec.node.order
        ]
        schema = pa.schema([self._schemas[1].field(column) for column in self._tie_columns])
        self._ties = RowOrder(keys, schema, options.time_zone)

    def open(self, context: Context) -> None:
        self._metrics, self._clock = context.metrics, context.clock
        self._index = KeyIndex([self._schemas[0].field(key).type for key in self._keys[0]])
        kind = self._schemas[0].field(self._node.values[0]).type
        # both sides compare their words: they have them from one place
        self._ordered = OrderedValues() if is_bytes(kind) or is_wide(kind) else None
        self._sides = (self._side(0, context), self._side(1, context))

    def _side(self, port: int, context: Context) -> NearestSide:
        node = self._node
        return NearestSide(
            self._schemas[port],
            self._keys[port],
            node.values[port],
            self._index,
            context.key_groups.max_parallelism,
            latest=node.latest,
            # right < left: right <= left - 1
            shift=-1 if node.strict and port == 0 else 0,
            retracting=not self._inserts[port],
            writes=LastWrites(self._ttl_ms, context.clock) if self._ttl_ms else None,
            ordered=self._ordered,
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"left": self._sides[0], "right": self._sides[1]}

    def state_ports(self) -> dict[str, int]:
        return {"right": 1}

    @property
    def wants_ticks(self) -> bool:
        return self._ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Drop keys that have expired on both sides; nothing is emitted."""
        left, right = self._sides
        slots = np.intersect1d(left.due(now_ms), right.due(now_ms))
        if not slots.size:
            return
        before = self._entries()
        for side in self._sides:
            side.forget_keys(slots)
        self._index.remove(slots)
        self._metrics.count(EXPIRED, before - self._entries())
        self._metrics.state_entries = self._entries()

    def _entries(self) -> int:
        return sum(map(len, self._sides))

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._take(batch, port, out))

    def _take(self, batch: Batch, port: int, out: Output) -> PendingOutput:
        side = self._sides[port]
        # 1. a row and its retraction in one batch cancel out; NULL is near to nothing
        batch = self._matchable(side.consolidated(batch, keep=True), port)
        # 2. with a time to live, retractions of expired rows are dropped and counted
        if side.writes is not None:
            batch, absent = side.without_absent(batch)
            if absent:
                self._metrics.count(ABSENT, absent)
        if not batch.num_rows:
            return
        columns = [batch.rows.column(key) for key in self._keys[port]]
        slots = self._index.lookup_or_insert(columns, batch.num_rows)
        # new values get their words now: none of those that are compared below may change
        if self._ordered is not None:
            self._ordered.release(sum(len(one.runs) for one in self._sides), self._words_in_use)
            side.words(batch.rows)
        # 3. a key lives as long as rows of either side come
        other = self._sides[1 - port]
        if other.writes is not None:
            other.writes.touch(slots, self._index.capacity)
        if port == 0:
            yield from self._take_left(batch, slots, out)
        else:
            yield from self._take_right(batch, slots, out)
        self._metrics.state_entries = self._entries()

    def _words_in_use(self) -> np.ndarray:
        return np.concatenate([side.ordered_words for side in self._sides])

    def _matchable(self, batch: Batch, port: int) -> Batch:
        whole = np.ones(batch.num_rows, np.bool_)
        for index in (*self._keys[port], self._node.values[port]):
            column = batch.rows.column(index)
            if column.null_count:
                whole &= truths(column.is_valid())
        return batch if whole.all() else batch.take(np.flatnonzero(whole))

    def _take_left(self, batch: Batch, slots: np.ndarray, out: Output) -> PendingOutput:
        """Emit left rows that come, and retract those that go, with their partners."""
        left, right = self._sides
        before = left.shown(left.ids_of(batch)) if left.retracting else np.zeros(batch.num_rows, np.bool_)
        emptied = left.change(batch, slots, np.zeros(batch.num_rows, np.int64))
        after = left.shown(left.ids_of(batch)) if left.retracting else np.ones(batch.num_rows, np.bool_)
        turned = np.flatnonzero(before != after)
        partners = self._nearest(slots[turned], left.words(batch.rows)[turned])
        turned, partners = turned[partners >= 0], partners[partners >= 0]
        weights = np.where(after[turned], 1, -1)
        sizes = right.store.sizes(partners)
        for number, (first, last) in enumerate(cut(sizes, LIMITS.piece_rows, LIMITS.piece_bytes)):
            if number:
                yield
            rows = batch.rows.take(array_of(turned[first:last]))
            yield from self._emit(rows, partners[first:last], weights[first:last], out)
        self._index.remove(emptied[right.links.counts(emptied) == 0])

    def _take_right(self, batch: Batch, slots: np.ndarray, out: Output) -> PendingOutput:
        """Emit the left rows anew whose nearest right row is another one now."""
        left, right = self._sides
        words = right.words(batch.rows)
        # 1. the left rows from each value up to the next value there was
        following, found = right.runs.first_after(slots, words)
        owners, values, ids = left.runs.ids_between(slots, words, following, ~found)
        before = self._nearest(owners, values)
        # 2. new rows are stored; those that go stay stored until they have been retracted
        going = np.zeros(batch.num_rows, np.bool_) if batch.weights is None else batch.weights < 0
        coming, gone = np.flatnonzero(~going), np.flatnonzero(going)
        right.change(batch.take(coming), slots[coming], np.zeros(coming.size, np.int64))
        if gone.size:
            right.hide(batch.take(gone), slots[gone])
        # 3. what has changed
        after = self._nearest(owners, values)
        changed = np.flatnonzero(before != after)
        ids, before, after = ids[changed], before[changed], after[changed]
        sizes = 2 * left.store.sizes(ids)
        for old in (before, after):
            sizes[old >= 0] += right.store.sizes(old[old >= 0])
        for number, (first, last) in enumerate(cut(sizes, LIMITS.piece_rows, LIMITS.piece_bytes)):
            if number:
                yield
            # the retraction of a left row and its insertion are in one batch
            one = np.concatenate([ids[first:last], ids[first:last]])
            partners = np.concatenate([before[first:last], after[first:last]])
            weights = np.repeat([-1, 1], last - first)
            some = np.flatnonzero(partners >= 0)
            yield from self._emit(left.store.take(one[some]), partners[some], weights[some], out)
        if gone.size:
            emptied = right.change(batch.take(gone), slots[gone], np.zeros(gone.size, np.int64))
            self._index.remove(emptied[left.links.counts(emptied) == 0])

    def _emit(
        self, rows: pa.RecordBatch, partners: np.ndarray, weights: np.ndarray, out: Output
    ) -> PendingOutput:
        columns = [*rows.columns, *self._sides[1].store.take(partners).columns]
        joined = pa.RecordBatch.from_arrays(columns, schema=self._output)
        yield from emit_batch(Batch(joined, None if (weights == 1).all() else weights), out)

    def _nearest(self, slots: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Return the id of the nearest right row of each left row, -1 without one."""
        right = self._sides[1]
        nearest, found = right.runs.last_until(slots, words)
        partners = np.full(slots.size, -1)
        asked = np.flatnonzero(found)
        if not asked.size:
            return partners
        # the different (slot, word) that are asked for
        order = asked[np.lexsort((nearest[asked], slots[asked]))]
        fresh = np.append(True, (np.diff(slots[order]) != 0) | (np.diff(nearest[order]) != 0))
        group = np.cumsum(fresh) - 1
        firsts = order[fresh]
        positions, ids = right.runs.at(slots[firsts], nearest[firsts])
        partners[order] = self._first_of(positions, ids, firsts.size)[group]
        return partners

    def _first_of(self, positions: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
        """Return for each position the first of its right rows."""
        ranks = np.arange(ids.size)
        if ids.size > count:
            tied = np.flatnonzero(np.bincount(positions, minlength=count)[positions] > 1)
            rows = self._sides[1].store.take(ids[tied], self._tie_columns)
            ranks[tied[self._ties.sorted(rows)]] = np.arange(tied.size)
        best = np.full(count, -1)
        order = np.lexsort((-ranks, positions))
        # the last one written is the first by rank
        best[positions[order]] = ids[order]
        return best
