"""The temporal join: rows wait until the watermark has passed them. Then each joins the version that was
valid at its time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.coercion import is_orderable
from penstock.catalog.schema import Schema
from penstock.engine.api.arrow_numpy import array_of, is_true, truths
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, KeyedState, Operator, Output, PendingOutput, start_output
from penstock.engine.api.row_pieces import cut_pairs, row_sizes, widest_row
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.expressions.compiler import compile_predicate
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.rows.event_time_buffer import EventTimeBuffer
from penstock.engine.state.rows.total_order import RowOrder
from penstock.engine.state.rows.versioned_side import VersionSide
from penstock.engine.state.time_to_live import EXPIRED, LastWrites
from penstock.engine.windowing.late_row_filter import drop_late
from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.joins.join import JoinKind
from penstock.planner.logical.joins.temporal_join import TemporalJoin, TemporalJoinFacts
from penstock.planner.physical.operator_specs import OperatorSpec


class TemporalJoinOperator(Operator):
    """Port 0 is the stream, port 1 the versions. Late rows of both are dropped and counted, so a row joins
    the same version in whatever order rows come.

    A version retracted before the watermark passed it never existed. A retraction of a row that was never
    inserted ends the version valid at its time. Of each key, the version valid at the watermark and the later
    ones are stored.
    """

    def __init__(self, spec: OperatorSpec[TemporalJoin, TemporalJoinFacts], options: JobOptions) -> None:
        self._spec, self._node, self._facts = spec, spec.node, spec.facts
        self._zone = options.time_zone
        self._left, self._right = spec.node.left.schema.to_arrow(), spec.node.right.schema.to_arrow()
        self._keys = (spec.node.left_keys, spec.node.right_keys)
        self._output = spec.schema.to_arrow()
        self._pairs = Schema(spec.node.left.schema.fields + spec.node.right.schema.fields).to_arrow()
        self._residual = (
            None
            if spec.node.residual is None
            else compile_predicate(spec.node.residual, EvaluationContext(options.time_zone))
        )
        self._pads = spec.node.kind is JoinKind.LEFT
        # the forwarded watermark is behind by this, since rows wait for the versions' slack
        self._delay_us = max(0, spec.facts.slacks_us[1] - spec.facts.slacks_us[0])
        self._watermark_us = MIN_WATERMARK_US

    def open(self, context: Context) -> None:
        self._metrics = context.metrics
        groups, spec = context.key_groups.max_parallelism, self._spec
        self._index = KeyIndex([self._right.field(key).type for key in spec.node.right_keys])
        stored = {"retracting": not spec.facts.insert_only_inputs[1], "counts": False}
        # two versions of one key and time: the other columns decide, so that the order of arrival does not
        ties = [
            SortKey(Column(f.type, f.nullable, index=i))
            for i in spec.node.ties
            if is_orderable((f := spec.node.right.schema[i]).type)
        ]
        order = RowOrder(ties, self._right, self._zone)
        writes = LastWrites(spec.facts.ttl_ms, context.clock) if spec.facts.ttl_ms else None
        self._versions = VersionSide(
            self._right,
            spec.node.right_keys,
            spec.node.times[1],
            order,
            self._index,
            groups,
            writes=writes,
            **stored,
        )
        self._waiting = EventTimeBuffer(self._left, spec.node.left_keys, spec.node.times[0], groups)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"waiting": self._waiting, "versions": self._versions}

    def state_ports(self) -> dict[str, int]:
        return {"versions": 1}

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # a late row might join a version that was dropped; a late version would change rows already emitted
        batch = drop_late(
            batch,
            self._node.times[port],
            self._facts.slacks_us[port],
            self._watermark_us,
            self._metrics,
        )
        whole = self._matchable(batch, port)
        if port == 1:
            self._add_versions(_only(batch, whole))
        else:
            self._waiting.add(_only(batch, whole))
            # LEFT JOIN: a row with a NULL key or time is padded with NULLs at once; an inner join drops it
            if self._pads and not whole.all():
                self._emit(_only(batch, ~whole), None, out)
        self._count_entries()

    def _matchable(self, batch: Batch, port: int) -> np.ndarray:
        """Return which rows have a key and a time; the others match nothing."""
        whole = np.ones(batch.num_rows, np.bool_)
        for index in (*self._keys[port], self._node.times[port]):
            column = batch.rows.column(index)
            if column.null_count:
                whole &= truths(column.is_valid())
        return whole

    def _add_versions(self, batch: Batch) -> None:
        batch = self._versions.consolidated(batch, keep=True)
        if batch.num_rows:
            slots = self._index.lookup_or_insert(
                [batch.rows.column(key) for key in self._keys[1]], batch.num_rows
            )
            self._index.remove(self._versions.change(batch, slots, np.zeros(batch.num_rows, np.int64)))

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        return start_output(self._pass_time(time_us, out))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        self._watermark_us = time_us
        slack_us, right_slack_us = self._facts.slacks_us
        # the end of time: all waiting rows are joined
        last = time_us == MAX_WATERMARK_US
        # far enough above the least int64 for the slacks to be subtracted
        base_us = max(time_us, MIN_WATERMARK_US + 1000)
        # first join, then drop versions: the rows that are due still need the old ones
        for due in self._waiting.due(time_us if last else base_us - right_slack_us):
            yield from self._answer(due, out)
        if last:
            self._versions.clear()
            self._index.remove(self._index.live_slots())
        else:
            # of each key the version valid at this time stays: a row that is not late may still join it
            self._index.remove(self._versions.expire(base_us - max(slack_us, right_slack_us)))
        self._count_entries()

    @property
    def wants_ticks(self) -> bool:
        return self._facts.ttl_ms > 0

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """Expire the versions of keys without a new version for long enough."""
        expired = self._versions.due(now_ms)
        if expired.size:
            # all versions of the expired keys
            _, ids = self._versions.links.expand(expired)
            self._versions.remove(ids)
            self._index.remove(expired)
            self._metrics.count(EXPIRED, int(expired.size))
            self._count_entries()

    def passes_on(self, time_us: int) -> int:
        return (
            time_us
            if time_us == MAX_WATERMARK_US
            else max(time_us, MIN_WATERMARK_US + self._delay_us) - self._delay_us
        )

    def _answer(self, batch: Batch, out: Output) -> PendingOutput:
        """Emit the rows the watermark has passed with their versions, in pieces."""
        # FOR SYSTEM_TIME AS OF: by row the id of the version valid at its time, -1 without one
        slots = self._index.lookup([batch.rows.column(key) for key in self._keys[0]], batch.num_rows)
        ids = self._versions.in_force(slots, col.words(batch.rows.column(self._node.times[0])))
        store = self._versions.store

        def sizes() -> np.ndarray:
            matched, both = ids >= 0, row_sizes(batch.rows)
            both[matched] += store.sizes(ids[matched])
            return both

        for first, last in cut_pairs(ids.size, widest_row(batch.rows) + store.widest, sizes):
            if first:
                yield
            piece = batch if last - first == ids.size else batch.slice(first, last - first)
            self._join(piece, ids[first:last], out)

    def _join(self, batch: Batch, ids: np.ndarray, out: Output) -> None:
        matched = ids >= 0
        met, versions = _only(batch, matched), self._versions.store.take(ids[matched])
        # the ON condition beyond the equal keys: a version that fails it is no match
        if self._residual is not None and met.num_rows:
            pairs = pa.RecordBatch.from_arrays([*met.rows.columns, *versions.columns], schema=self._pairs)
            holds = is_true(self._residual(pairs))
            matched[np.flatnonzero(matched)[~holds]] = False
            met, versions = _only(met, holds), versions.filter(array_of(holds))
        if met.num_rows:
            self._emit(met, versions, out)
        if self._pads and not matched.all():
            self._emit(_only(batch, ~matched), None, out)

    def _emit(self, batch: Batch, versions: pa.RecordBatch | None, out: Output) -> None:
        others = (
            [pa.nulls(batch.num_rows, kind) for kind in self._right.types]
            if versions is None
            else versions.columns
        )
        rows = pa.RecordBatch.from_arrays([*batch.rows.columns, *others], schema=self._output)
        out.collect(Batch(rows, batch.weights))

    def _count_entries(self) -> None:
        self._metrics.state_entries = len(self._waiting) + len(self._versions)


def _only(batch: Batch, mask: np.ndarray) -> Batch:
    return batch if mask.all() else batch.filter(array_of(mask))
