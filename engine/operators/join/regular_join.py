"""The join operator: an equi-join of two changelogs as Z-sets, vectorised; a bounded side is loaded first."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import truths
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    KeyedState,
    ListState,
    Operator,
    Output,
    PendingOutput,
    start_output,
)
from penstock.engine.api.row_pieces import LIMITS, cut_pairs, row_sizes, widest_row
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import IdSums
from penstock.engine.operators.join.residual_condition import Pairs, ResidualCondition
from penstock.engine.operators.join.runtime_filter import GIVEN_UP, summarize_keys
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.batch_buffer import BatchBuffer
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.time_to_live import ABSENT, EXPIRED, LastWrites
from penstock.planner.logical.joins.join import BinaryJoin, JoinFacts, JoinKind
from penstock.planner.physical.operator_specs import OperatorSpec


class Alone(Enum):
    """When a row of a side is emitted alone, outside pairs."""

    NEVER = "never"
    UNMATCHED = "unmatched"
    MATCHED = "matched"

    def shows(self, matches: np.ndarray) -> np.ndarray:
        """Return which rows with these match counts are emitted alone."""
        # callers skip NEVER before
        return matches == 0 if self is Alone.UNMATCHED else matches != 0


# (left, right): LEFT JOIN emits unmatched left rows padded, IN emits matched rows, NOT EXISTS unmatched ones
_N, _U, _M = Alone.NEVER, Alone.UNMATCHED, Alone.MATCHED
_ALONE = {
    JoinKind.INNER: (_N, _N),
    JoinKind.LEFT: (_U, _N),
    JoinKind.RIGHT: (_N, _U),
    JoinKind.FULL: (_U, _U),
    JoinKind.SEMI: (_M, _N),
    JoinKind.ANTI: (_U, _N),
}


class RegularJoinOperator(Operator, ListState):
    """Joins port 0 with port 1.

    The changelog rule: a change of weight w on one side emits each matching row of the other side (weight v)
    with weight w·v. A row emitted alone (padded with NULLs in outer joins) is retracted when its first match
    comes. It is emitted again when its last match is retracted. NULL keys match nothing.

    Rows of a side are stored only while the other side may still send rows. With a bounded port, rows of the
    other side are buffered until it has ended. So no row of them is emitted alone and retracted later. Pairs
    are emitted in pieces, however many rows one row matches.
    """

    def __init__(self, spec: OperatorSpec[BinaryJoin, JoinFacts], options: JobOptions) -> None:
        self._node, self._facts = spec.node, spec.facts
        self._schemas = (spec.node.left.schema.to_arrow(), spec.node.right.schema.to_arrow())
        self._keys = (spec.node.left_keys, spec.node.right_keys)
        self._alone = _ALONE[spec.node.kind]
        self._needed = self._keys
        # semi and anti joins emit rows of the left side only
        self._emits_pairs = spec.node.kind not in (JoinKind.SEMI, JoinKind.ANTI)
        self._output = spec.schema.to_arrow()
        condition = spec.node.residual
        self._condition = (
            None
            if condition is None
            else ResidualCondition(condition, len(spec.node.left.schema), options.time_zone)
        )
        width, columns = len(self._schemas[0]), range(len(self._output))
        read = columns if spec.facts.read is None else spec.facts.read
        self._is_read = [column in read for column in columns]
        # by side
        self._read = [i for i in read if i < width], [i - width for i in read if i >= width]
        # the planner names one port at most
        self._load_first = max(spec.facts.bounded_ports, default=None)
        self._ended = [False, False]
        # the port that waits for the load has ended meanwhile
        self._ended_buffered = False
        self._reports_keys = spec.node.pruned is not None

    def open(self, context: Context) -> None:
        self._context = context
        groups = context.key_groups.max_parallelism
        # one index for both sides: a key has the same slot left and right
        self._index = KeyIndex([self._schemas[0].field(key).type for key in self._node.left_keys])
        self._sides = (self._side(0, groups), self._side(1, groups))
        # a broadcast side: every subtask stores all its rows
        if self._facts.copied is not None:
            self._sides[self._facts.copied].copy_of(context.key_groups)
        self._buffered = None
        if self._load_first is not None:
            port = 1 - self._load_first
            self._buffered = BatchBuffer(self._schemas[port], self._keys[port], groups)

    def _side(self, port: int, max_parallelism: int) -> JoinSide:
        ttl_ms = self._facts.ttl_ms[port]
        writes = LastWrites(ttl_ms, self._context.clock) if ttl_ms else None
        return JoinSide(
            self._schemas[port],
            self._keys[port],
            self._index,
            max_parallelism,
            writes=writes,
            append_only=writes is None and self._facts.insert_only_inputs[port],
            **self._side_options(port),
        )

    def _side_options(self, port: int) -> dict[str, bool]:
        """Options of the stored side of a port."""
        return {
            "retracting": not self._facts.insert_only_inputs[port],
            "counts": self._alone[port] is not Alone.NEVER,
        }

    def _prompt(self, port: int) -> Alone:
        """When a row of a side is emitted alone immediately."""
        return self._alone[port]

    def keyed_states(self) -> dict[str, KeyedState]:
        states: dict[str, KeyedState] = {"left": self._sides[0], "right": self._sides[1]}
        return states if self._buffered is None else {**states, "held": self._buffered}

    def state_ports(self) -> dict[str, int]:
        return {"right": 1, "held": 0 if self._load_first is None else 1 - self._load_first}

    def copied_states(self) -> frozenset[str]:
        return (
            frozenset() if self._facts.copied is None else frozenset({("left", "right")[self._facts.copied]})
        )

    def list_states(self) -> dict[str, ListState]:
        return {} if self._load_first is None else {"loaded": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"loaded": not self._loading}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        """All subtasks agree: the bounded side ended before the barrier, or after it."""
        if self._load_first is not None and any(item["loaded"] for item in items):
            self._ended[self._load_first] = True

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        # the other side waits: joined now, LEFT JOIN would emit (row, NULL) and retract it later
        if self._loading and port != self._load_first:
            assert self._buffered is not None
            self._buffered.add(batch)
            self._count_entries()
            return None
        return start_output(self._counted(self._join(batch, port, out)))

    def _counted(self, work: PendingOutput) -> PendingOutput:
        yield from work
        self._count_entries()

    def on_restored(self) -> None:
        self._report_keys()

    def _report_keys(self) -> None:
        """Once the loaded side is complete, report its keys to the scan of the other side."""
        if self._reports_keys and self._load_first is not None and not self._loading:
            self._reports_keys = False
            if not self._ended[1 - self._load_first]:
                keys = summarize_keys(self._index)
                if keys.keys is None:
                    self._context.metrics.count(GIVEN_UP)
                self._context.report_event(keys)

    @property
    def wants_ticks(self) -> bool:
        return any(self._facts.ttl_ms)

    def on_processing_time(self, now_ms: int, out: Output) -> PendingOutput | None:
        """Expire rows by their time to live; nothing is emitted for them."""
        for port, side in enumerate(self._sides):
            # emitted pairs stay in the result; a later retraction of an expired row retracts nothing
            expired = side.due(now_ms)
            if expired.size:
                emptied = side.remove(expired)
                self._index.remove(emptied[self._sides[1 - port].links.counts(emptied) == 0])
                self._context.metrics.count(EXPIRED, int(expired.size))
                self._count_entries()
        return None

    def _count_entries(self) -> None:
        self._context.metrics.state_entries = (
            len(self._sides[0]) + len(self._sides[1]) + (0 if self._buffered is None else len(self._buffered))
        )

    def on_port_end(self, port: int, out: Output) -> PendingOutput | None:
        if self._loading and port != self._load_first:
            self._ended_buffered = True  # the loading side must stay stored for the rows that wait for it
            return None
        return start_output(self._counted(self._end_port(port, out)))

    def _end_port(self, port: int, out: Output) -> PendingOutput:
        was_loading = self._loading
        self._ended[port] = True
        if was_loading:
            yield from self._finish_loading(port, out)
            self._ended[1 - port] = self._ended_buffered
        # a side's rows are stored for the rows still to come from the other side
        for ended in (0, 1):
            if self._ended[ended] and self._facts.copied != 1 - ended:
                self._forget(1 - ended)
        self._report_keys()

    @property
    def _loading(self) -> bool:
        return self._load_first is not None and not self._ended[self._load_first]

    def _builds_index_later(self, port: int) -> bool:
        return port == self._load_first and not self._ended[port] and self._sides[port].indexes_later

    def _finish_loading(self, port: int, out: Output) -> PendingOutput:
        """The bounded side is complete: emit its rows without a match, then join what has waited."""
        side = self._sides[port]
        # RIGHT JOIN with a loaded right side, say: rows without a match until now, when nothing is joined yet
        if self._alone[port] is Alone.UNMATCHED:
            ids = side.store.live_ids()
            yield from self._emit_stored(ids[side.matches[ids] == 0], port, out)
        if side.indexes_later:
            yield from side.build_index()
        assert self._buffered is not None
        # credit is asked for before each batch
        for batch in self._buffered.release():
            yield
            yield from self._join(batch, 1 - port, out)

    def _forget(self, port: int) -> None:
        """Free the rows of a side that nothing can match any more: the other side has ended."""
        side, other = self._sides[port], self._sides[1 - port]
        had_rows = len(side) > 0
        side.clear()
        # every key has a row of one side or both
        if not len(other):
            self._index.clear()
        elif had_rows:
            slots = self._index.live_slots()
            self._index.remove(slots[other.links.counts(slots) == 0])

    def _join(self, batch: Batch, port: int, out: Output) -> PendingOutput:
        own, other = self._sides[port], self._sides[1 - port]
        # other subtasks are restored from every subtask's copy
        keep = not self._ended[1 - port] or port == self._facts.copied
        # 1. a row and its retraction in one batch cancel out
        batch = own.consolidated(batch, keep=keep)
        # 2. NULL = NULL is not TRUE: such rows have no match
        batch = self._without_null_keys(batch, port, out)
        # 3. with a TTL, retractions of expired rows are dropped and counted
        if own.writes is not None and keep:
            batch, absent = own.without_absent(batch)
            if absent:
                self._context.metrics.count(ABSENT, absent)
        if not batch.num_rows:
            return
        # nothing looks up rows of a side that is loaded first: its index is built when all are there
        if self._builds_index_later(port):
            own.append_unindexed(batch)
            return
        # 4. emit the pairs with the stored rows of the other side, then the rows that are emitted alone
        columns = [batch.rows.column(key) for key in self._keys[port]]
        slots = (
            self._index.lookup_or_insert(columns, batch.num_rows)
            if keep
            else self._index.lookup(columns, batch.num_rows)
        )
        matched = np.zeros(batch.num_rows, np.int64)
        if not self._loading:
            yield from self._match(batch, slots, matched, port, out)
            prompt = self._prompt(port)
            if prompt is not Alone.NEVER:
                self._emit_alone_of(
                    batch.take(np.flatnonzero(prompt.shows(self._known_matches(batch, matched, port)))),
                    port,
                    out,
                )
        # 5. store the batch last, with the match counts found: the next batch of the other side meets it
        if keep:
            emptied = own.change(batch, slots, matched)
            self._index.remove(emptied[other.links.counts(emptied) == 0])

    def _known_matches(self, batch: Batch, matched: np.ndarray, port: int) -> np.ndarray:
        """Return the match counts that describe what was emitted: of a stored row the matches it has had,
        expired ones included.
        """
        # without a TTL on the other side, all matches of a row are in the state
        own = self._sides[port]
        if self._sides[1 - port].writes is None:
            return matched
        ids = own.ids_of(batch)
        return np.where(ids >= 0, own.matches[np.maximum(ids, 0)], matched)

    def _without_null_keys(self, batch: Batch, port: int, out: Output) -> Batch:
        """Rows with NULL in a key match nothing: emit them alone where the join does, and return the
        others.
        """
        columns = [batch.rows.column(key) for key in self._needed[port]]
        missing = np.zeros(batch.num_rows, np.bool_)
        for column in columns:
            if column.null_count:
                missing |= truths(column.is_null())
        if not missing.any():
            return batch
        # LEFT JOIN: emitted at once, padded with NULLs; in an inner join the row is dropped
        if self._alone[port] is Alone.UNMATCHED:
            self._emit_alone_of(batch.take(np.flatnonzero(missing)), port, out)
        return batch.take(np.flatnonzero(~missing))

    def _match(
        self, batch: Batch, slots: np.ndarray, matched: np.ndarray, port: int, out: Output
    ) -> PendingOutput:
        """Emit all pairs of a batch with the other side; add up each row's match count (the weight of its
        matches).
        """
        # match counts are only needed where rows are emitted alone
        own_counts = self._alone[port] is not Alone.NEVER
        other_counts = self._alone[1 - port] is not Alone.NEVER
        other = self._sides[1 - port]
        # what the batch adds to the match counts of stored rows, summed: (id, weight)
        gained, first = IdSums(), True
        for positions, ids in self._pairs(batch, slots, other):
            if not first:
                yield
            first = False
            at, row_ids = self._emit_pairs(batch, positions, ids, port, out)
            if own_counts:
                # add.at, not +=: positions repeat
                np.add.at(matched, at, other.store.weights(row_ids))
            if other_counts:
                gained.add(
                    row_ids, np.ones(at.size, np.int64) if batch.weights is None else batch.weights[at]
                )
        rows, change = gained.sums()
        # after all pairs: a stored row that gains and loses matches in one batch turns once, or not at all
        if rows.size:
            yield from self._count_matches(rows, change, 1 - port, out)

    @staticmethod
    def _pairs(batch: Batch, slots: np.ndarray, other: JoinSide) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the pairs (position in the batch, row id of the other side) in pieces that may be emitted
        at once.
        """
        widest = None
        # at most `piece_rows` pairs at a time; cut again where wide rows make a piece too large
        for positions, ids in other.links.pairs(slots, LIMITS.piece_rows):
            widest = widest_row(batch.rows) + other.store.widest if widest is None else widest
            sizes = partial(_pair_sizes, batch.rows, positions, other, ids)
            for first, last in cut_pairs(positions.size, widest, sizes):
                yield positions[first:last], ids[first:last]

    def _emit_pairs(
        self, batch: Batch, at: np.ndarray, ids: np.ndarray, port: int, out: Output
    ) -> tuple[np.ndarray, np.ndarray]:
        """Emit one piece of pairs (position in the batch, row id of the other side); return those that
        satisfy the residual condition.
        """
        other = self._sides[1 - port]
        pairs = Pairs(batch.rows, at, port, other.store, ids)
        # ON a.k = b.k AND a.x > b.y: the condition reads its own columns of both sides only
        if self._condition is not None:
            pairs = self._condition.satisfying(pairs)
        at, ids = pairs.at, pairs.ids
        if self._emits_pairs and at.size:
            weights = self._pair_weights(batch, at, ids, other)
            self._emit(self._pair_columns(pairs), weights, self._lateness(batch, at, ids, port), out)
        return at, ids

    def _pair_columns(self, pairs: Pairs) -> list[pa.Array]:
        """Return the output columns of pairs; those that nothing above reads are NULL."""
        read = iter(pairs.columns(*self._read))
        unread = pairs.at.size
        return [
            next(read) if is_read else pa.nulls(unread, kind)
            for is_read, kind in zip(self._is_read, self._output.types, strict=True)
        ]

    @staticmethod
    def _pair_weights(batch: Batch, at: np.ndarray, ids: np.ndarray, other: JoinSide) -> np.ndarray | None:
        # 1 * 1 for every pair: the output is insert-only
        if batch.weights is None and other.all_ones:
            return None
        weights = other.store.weights(ids)
        return weights if batch.weights is None else weights * batch.weights[at]

    def _count_matches(self, rows: np.ndarray, change: np.ndarray, port: int, out: Output) -> PendingOutput:
        """Add to the match counts of distinct stored rows. Emit those that lost their last match, retract
        those that got their first.
        """
        side = self._sides[port]
        before, after = side.match(rows, change)
        prompt = self._prompt(port)
        if prompt is Alone.NEVER:
            return
        # +1: now emitted alone, -1: no longer; a LEFT JOIN's first match is -1 for (row, NULL)
        sign = prompt.shows(after).astype(np.int64) - prompt.shows(before)
        turned = np.flatnonzero(sign)
        yield from self._emit_stored(rows[turned], port, out, sign[turned])

    def _emit_stored(
        self, ids: np.ndarray, port: int, out: Output, sign: np.ndarray | None = None
    ) -> PendingOutput:
        """Emit stored rows of a side alone, or retract them where ``sign`` is -1."""
        store = self._sides[port].store
        for first, last in store.pieces(ids):
            if first:
                yield
            piece = ids[first:last]
            weights = store.weights(piece) if sign is None else store.weights(piece) * sign[first:last]
            self._emit_alone(store.take(piece), weights, self._stored_lateness(piece, port), port, out)

    def _emit_alone_of(self, batch: Batch, port: int, out: Output) -> None:
        # joined with a complete side, a row stays as late as it was
        behind = batch.behind if self._ended[1 - port] else None
        self._emit_alone(batch.rows, batch.weights, behind, port, out)

    def _emit_alone(
        self,
        rows: pa.RecordBatch,
        weights: np.ndarray | None,
        behind: np.ndarray | None,
        port: int,
        out: Output,
    ) -> None:
        """Emit rows of one side without a partner: padded with NULLs, or as they are in semi and anti
        joins.
        """
        if not rows.num_rows:
            return
        columns = list(rows.columns)
        # outer joins: the other side's columns are NULL; semi and anti joins have none
        if self._emits_pairs:
            nulls = [pa.nulls(rows.num_rows, kind) for kind in self._schemas[1 - port].types]
            columns = columns + nulls if port == 0 else nulls + columns
        self._emit(columns, weights, behind, out)

    def _lateness(self, batch: Batch, at: np.ndarray, ids: np.ndarray, port: int) -> np.ndarray | None:
        """Joined with a complete side, a row stays as late as it was; otherwise a join's rows have no time of
        their own.
        """
        return batch.behind[at] if batch.behind is not None and self._ended[1 - port] else None

    def _stored_lateness(self, ids: np.ndarray, port: int) -> np.ndarray | None:
        """Stored rows of a side have no time of their own."""
        return None

    def _emit(
        self, columns: list[pa.Array], weights: np.ndarray | None, behind: np.ndarray | None, out: Output
    ) -> None:
        if weights is not None and (weights == 1).all():
            weights = None
        out.collect(Batch(pa.RecordBatch.from_arrays(columns, schema=self._output), weights, behind))


def _pair_sizes(rows: pa.RecordBatch, positions: np.ndarray, other: JoinSide, ids: np.ndarray) -> np.ndarray:
    return row_sizes(rows, positions) + other.store.sizes(ids)
