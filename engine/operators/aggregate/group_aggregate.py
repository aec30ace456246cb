"""Unbounded GROUP BY: one row per key, retracted and replaced as it changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.catalog.types import BIGINT
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, Operator, Output
from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import weights_of
from penstock.engine.exchange.batch_concat import concat_batches
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.mini_batch import BATCHES_AT_ONCE, FEW_AT_ONCE, MiniBatch
from penstock.engine.state.aggregates.accumulators import Accumulators, Before, ValueTooLarge, paired
from penstock.engine.state.groups.group_state import GroupState
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.rows.row_difference import changed_pairs
from penstock.engine.state.time_to_live import ABSENT, EXPIRED, LastWrites
from penstock.planner.expressions.nodes import AggregateCall
from penstock.planner.logical.aggregate import Aggregate, Phase
from penstock.planner.logical.operator_facts import GroupFacts
from penstock.planner.physical.operator_specs import OperatorSpec

# a hidden COUNT(*) behind the query's aggregates: at 0 the group has no row and is removed
_ROW_COUNT = AggregateCall("count", (), BIGINT, False)


# characters of a key that an error message shows
_KEY_TEXT_MAX = 80
_EXPENSIVE_BYTES = 4 << 20
_PAUSE_FACTOR = 4
"""An emission of more bytes is expensive: the next begins ``_PAUSE_FACTOR`` times its duration later, with
all that changed meanwhile. A group that grows with each batch is then written a few times, not once per
batch. At most a fifth of the time goes into it.
"""


@dataclass(eq=False)
class _Pending:
    """Groups that changed and are not emitted yet: each once, with its aggregates before its first change.
    ``known``: whether an aggregate without keys had its row.
    """

    slots: np.ndarray
    before: list[pa.Array]
    known: bool


@dataclass(eq=False)
class _Changed:
    """Groups whose first rows of this mini-batch came together: each once. ``before``: their aggregates
    before that, ``None`` where it is not needed.
    """

    slots: np.ndarray
    before: Before | None


class GroupAggregateOperator(Operator):
    """Emits, for each changed key, the old row with weight -1 and the new row with weight +1. A group that
    was empty has no old row, one that is empty now has no new row. Of upserts there is the old row only where
    there is no new one.

    Changes of up to a few full batches are emitted together: a key then changes once, not once per batch. A
    small state gets their rows as they come, while the cache still has them. A key whose row is unchanged
    emits nothing. Without keys there is always one row, emitted over no rows at the first barrier or the end.
    Large groups that keep all their values are emitted less often, in slices.
    """

    gathers = True

    def __init__(self, spec: OperatorSpec[Aggregate, GroupFacts], options: JobOptions) -> None:
        self._keys = spec.node.keys
        self._schema = spec.schema.to_arrow()
        self._key_types = [spec.node.input.schema.to_arrow().field(key).type for key in spec.node.keys]
        self._accumulators = Accumulators(
            (*spec.node.aggregates, _ROW_COUNT), spec.facts.insert_only, options.time_zone
        )
        self._distinct = DistinctSlots()
        self._options = options
        self._merges = spec.node.phase is Phase.GLOBAL
        self._ttl_ms = spec.facts.ttl_ms
        # only a stream with retractions can retract a row of an expired group
        self._has_retractions = not spec.facts.insert_only
        # an update is the new row alone
        self._upserts = spec.node.upserts
        # COLLECT_LIST and the like: a result is as large as all rows of the group
        self._keeps_values = self._accumulators.keeps_values
        # upserts where no group that is touched has its row as before
        self._emits_new_alone = self._upserts and spec.facts.counts_rows and not self._keeps_values
        # where a row's group may have expired, the row and its retraction are joined first
        self._may_add_early = not (self._ttl_ms and self._has_retractions)
        # of this mini-batch: its groups, the rows they had, and whether the one row of no keys was there
        self._changed: list[_Changed] = []
        self._added = 0
        self._known = False
        self._pending: list[_Pending] = []
        self._emit_at_ms = 0.0

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        self._clock = context.clock
        self._buffered = MiniBatch(self._options, context.clock, partials=self._merges)
        # SELECT COUNT(*) FROM t: exactly one subtask may emit the row over no rows
        self._owns_the_one_row = not self._keys and context.key_groups.start == 0 and context.subtask == 0
        writes = LastWrites(self._ttl_ms, context.clock) if self._ttl_ms else None
        self._state = GroupState(
            self._key_types, self._accumulators, context.key_groups.max_parallelism, writes
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"groups": self._state}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        if self._buffered.add(batch, behind=self.rows_behind):
            self._process(out)
        # Rows are added while the cache still has them: eight full batches are 32 MB. It makes 12 million
        # rows of 1,000 keys 86 ms instead of 98. A large state would leave the cache for each batch: rows of
        # 100,000 keys took a tenth longer.
        elif self._may_add_early and self._accumulators.is_near and (batches := self._buffered.take_early()):
            began_ms = self._clock.monotonic_ms()
            self._add(batches)
            self._buffered.extend(self._clock.monotonic_ms() - began_ms)

    def buffered_until_ms(self) -> float | None:
        # due is what comes first: the mini-batch, or the next emission of large groups
        if not self._pending:
            return self._buffered.until_ms
        batches_due_ms = self._buffered.until_ms
        return self._emit_at_ms if batches_due_ms is None else min(batches_due_ms, self._emit_at_ms)

    def release(self, out: Output) -> None:
        self._process(out)

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        """A checkpoint sees the result over the rows so far, also when there were none."""
        # pending groups are no part of the snapshot: what they change is emitted before it
        self._process(out, all_of_it=True)
        self._emit_global_row(out)

    def _process(self, out: Output, *, all_of_it: bool = False) -> None:
        """Add the rows of the buffered batches and emit what they changed. Groups whose emission is expensive
        wait until it is due, unless ``all_of_it``.
        """
        # 1. add the buffered rows, 2. emit their groups, 3. emit large groups when they are due
        self._add(self._buffered.take())
        self._emit_changed(out)
        if self._pending and (all_of_it or self._clock.monotonic_ms() >= self._emit_at_ms):
            self._emit_pending(out)
        self._metrics.state_entries = len(self._state.keys)

    def _add(self, batches: list[Batch]) -> None:
        """Add the rows of batches, and note the groups that change for the first time in this mini-batch."""
        # joined first: a row and its retraction in two buffered batches then cancel out
        if batches and self._state.writes is not None and self._has_retractions:
            batches = [self._without_absent(batch) for batch in concat_batches(batches)]
        if not batches:
            return
        state, accumulators = self._state, self._accumulators
        if not self._added:
            self._distinct.begin()
            # read before `slots` inserts the keys of the batches
            self._known = len(state.keys) > 0
        slots = [
            state.slots([batch.rows.column(key) for key in self._keys], batch.num_rows) for batch in batches
        ]
        # each group once: it is emitted once for all its rows in this mini-batch
        touched = self._distinct.unseen(slots, state.keys.capacity, len(state.keys))
        if touched.size:
            # an incremental snapshot writes the groups marked here
            state.mark(touched)
            # the old rows must be read before the new ones are added
            if self._keeps_values:
                self._make_pending(touched, self._known)
            needs_no_old = self._keeps_values or self._emits_new_alone
            self._changed.append(_Changed(touched, None if needs_no_old else accumulators.before(touched)))
        for its, batch in zip(slots, batches, strict=True):
            accumulators.add(its, batch.rows, batch.weights)
            self._added += batch.num_rows

    def _emit_changed(self, out: Output) -> None:
        """Emit the groups that changed in this mini-batch, and begin the next."""
        changed, self._changed = self._changed, []
        rows, self._added = self._added, 0
        # more rows at once are fewer changes only where several rows change a group
        if rows:
            few = 2 * sum(one.slots.size for one in changed) > rows
            self._buffered.at_once = FEW_AT_ONCE if few else BATCHES_AT_ONCE
        for one in _joined(changed):
            if self._state.writes is not None:
                self._state.writes.touch(one.slots, self._state.keys.capacity)
            # large groups are emitted later, by _emit_pending
            if one.before is not None:
                pairs = self._accumulators.before_and_after(one.slots, one.before)
                self._emit(one.slots, pairs, self._known, out)
            elif self._emits_new_alone:
                # no group is empty after inserts
                columns = self._state.keys.keys(one.slots) + self._results(one.slots)[:-1]
                out.collect(Batch(pa.RecordBatch.from_arrays(columns, schema=self._schema)))

    def _make_pending(self, touched: np.ndarray, known: bool) -> None:
        """Make groups pending with their rows as they are now, except those that are pending."""
        # a pending group has its old row already, the one that was emitted last
        for groups in self._pending:
            touched = touched[~np.isin(touched, groups.slots)]
        for first, last in self._slices(touched):
            slots = touched[first:last]
            self._pending.append(_Pending(slots, self._results(slots), known))

    def _emit_pending(self, out: Output) -> None:
        """Emit all pending groups, in slices, and set when the next emission is due."""
        begun_ms, emitted = self._clock.monotonic_ms(), 0
        # reversed and popped: the old rows of each slice are freed as soon as it is emitted
        pending, self._pending = self._pending[::-1], []
        while pending:
            groups = pending.pop()
            for first, last in self._slices(groups.slots):
                slots = groups.slots[first:last]
                before = [column.slice(first, last - first) for column in groups.before]
                after = self._results(slots)
                # measured, not estimated: groups have grown since their slice was cut
                size = sum(column.nbytes for column in (*before, *after))
                emitted += size
                # old and new rows side by side would not fit into one array
                if size > LIMITS.array_bytes:
                    self._emit_apart(slots, before, after, groups.known, out)
                else:
                    self._emit(slots, paired(before, after), groups.known, out)
        ended_ms = self._clock.monotonic_ms()
        self._emit_at_ms = (
            ended_ms + _PAUSE_FACTOR * (ended_ms - begun_ms) if emitted > _EXPENSIVE_BYTES else 0.0
        )

    def _slices(self, slots: np.ndarray) -> Iterator[tuple[int, int]]:
        """Yield the bounds of groups whose rows may be made at once."""
        return cut(self._accumulators.sizes(slots), max(slots.size, 1), LIMITS.chunk_bytes)

    def _results(self, slots: np.ndarray) -> list[pa.Array]:
        try:
            return self._accumulators.results(slots)
        except ValueTooLarge as error:
            keys = [str(column[0].as_py()) for column in self._state.keys.keys(np.array([error.slot]))]
            key = ", ".join(
                text if len(text) <= _KEY_TEXT_MAX else f"{text[:_KEY_TEXT_MAX]}.." for text in keys
            )
            raise error.of_group(f"the group ({key})" if keys else "all rows") from None

    def _emit_apart(
        self, slots: np.ndarray, before: list[pa.Array], after: list[pa.Array], known: bool, out: Output
    ) -> None:
        """Emit old rows, then new ones: together they are more than an array can hold."""
        # of upserts only the rows of groups that end are taken back
        remains = col.words(after[-1]) > 0 if self._keys else np.ones(slots.size, np.bool_)
        # first -1 for the rows as they were, then +1 for the rows as they are
        for results, sign, global_row in ((before, -1, known), (after, 1, True)):
            counts = col.words(results[-1])
            # an aggregate without keys has its row at COUNT(*) = 0 too
            has_row = counts > 0 if self._keys else np.full(slots.size, global_row)
            if self._upserts and sign < 0:
                has_row &= ~remains
            rows = pa.RecordBatch.from_arrays(
                self._state.keys.keys(slots) + results[:-1], schema=self._schema
            )
            if has_row.any():
                positions = np.flatnonzero(has_row)
                rows = rows if has_row.all() else rows.take(array_of(positions))
                out.collect(Batch(rows, np.full(positions.size, sign) if sign < 0 else None))
        self._remove_empty(slots, col.words(after[-1]))

    def _without_absent(self, batch: Batch) -> Batch:
        """Drop the retractions of rows that belonged to an expired group: a new group begins with a row that
        was inserted.
        """
        # an expired group has no rows in the state: their retractions would make a new group with COUNT(*) -1
        weights = weights_of(batch)
        if not (weights < 0).any():
            return batch
        # rows whose group is not in the state
        absent = np.flatnonzero(
            self._state.keys.lookup([batch.rows.column(key) for key in self._keys], batch.num_rows) < 0
        )
        # +1 and -1 of one row in this batch cancel out; only what is negative in sum has no row to retract
        same = KeyIndex(batch.rows.schema.types).lookup_or_insert(
            batch.rows.take(array_of(absent)).columns, absent.size
        )
        net = np.bincount(same, weights[absent], minlength=absent.size)[same]
        unmatched = absent[net < 0]
        self._metrics.count(ABSENT, int(unmatched.size))
        retained = np.ones(batch.num_rows, np.bool_)
        retained[unmatched] = False
        return batch.take(np.flatnonzero(retained))

    @property
    def wants_ticks(self) -> bool:
        return self._ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Expire groups by their time to live; nothing is emitted for them."""
        if self._state.writes is None:
            return
        # first emit: a removed group can no longer retract the row that was emitted for it
        self._process(out, all_of_it=True)
        # groups without a row for the TTL; the rows emitted for them stay in the result
        expired = self._state.due(now_ms)
        if expired.size:
            self._state.remove(expired)
            self._metrics.count(EXPIRED, int(expired.size))
            self._metrics.state_entries = len(self._state.keys)

    def _emit(self, touched: np.ndarray, pairs: list[pa.Array], known: bool, out: Output) -> None:
        """Emit the old and the new row of each changed key next to each other; drop the keys that have no row
        left.
        """
        # each column has (old, new) pairs, one pair a group; the hidden COUNT(*) is the last column
        *results, count = pairs
        # (groups, 2): COUNT(*) before and after
        counts = col.words(count).reshape(-1, 2)
        has_row = counts > 0 if self._keys else np.tile([known, True], (touched.size, 1))
        # the group appeared or disappeared, or a value differs; an unchanged row is neither retracted nor
        # emitted
        changed = (has_row[:, 0] != has_row[:, 1]) | changed_pairs(results, touched.size)
        emitted = has_row & changed[:, np.newaxis]
        if self._upserts:
            # the old row only of a group that has no new one
            emitted[:, 0] &= ~has_row[:, 1]
        emitted = emitted.ravel()
        if emitted.any():
            out.collect(self._batch(touched, results, emitted))
        self._remove_empty(touched, counts[:, 1])

    def _remove_empty(self, slots: np.ndarray, counts: np.ndarray) -> None:
        """Remove the groups whose COUNT(*) says that they have no row left."""
        if self._keys:
            # Without a TTL a negative count is a retraction that came before its row: the group waits for
            # that row. With a TTL the row may have expired, and nothing may ever come.
            empty = counts == 0 if self._state.writes is None else counts <= 0
            if empty.any():
                self._state.remove(slots[empty])

    def _batch(self, touched: np.ndarray, results: list[pa.Array], emitted: np.ndarray) -> Batch:
        # UPDATE_BEFORE directly followed by its UPDATE_AFTER
        slots, weights = np.repeat(touched, 2), np.tile([-1, 1], touched.size)
        # keys are only read for the rows that are emitted: a new group has no old row
        if not emitted.all():
            positions = np.flatnonzero(emitted)
            slots, weights = slots[positions], weights[positions]
            results = [column.take(array_of(positions)) for column in results]
        rows = pa.RecordBatch.from_arrays(self._state.keys.keys(slots) + results, schema=self._schema)
        # without any retraction the batch is append-only: None stands for weights of 1
        return Batch(rows, weights if emitted[0::2].any() else None)

    def on_end(self, out: Output) -> None:
        self._process(out, all_of_it=True)
        self._emit_global_row(out)

    def _emit_global_row(self, out: Output) -> None:
        # SELECT COUNT(*), SUM(x) of no rows is (0, NULL)
        if self._owns_the_one_row and not len(self._state.keys):
            slots = self._state.slots([], 1)
            self._state.mark(slots)
            out.collect(
                Batch(pa.RecordBatch.from_arrays(self._accumulators.results(slots)[:-1], schema=self._schema))
            )


def _joined(changed: list[_Changed]) -> list[_Changed]:
    """Return the groups of a mini-batch as one piece."""
    if len(changed) < 2:
        return changed
    arrays = [one.before for one in changed if isinstance(one.before, np.ndarray)]
    return [
        _Changed(
            np.concatenate([one.slots for one in changed]),
            # old and new state side by side, by column: see `Accumulators.before`
            np.concatenate(arrays, axis=1) if arrays else None,
        )
    ]
