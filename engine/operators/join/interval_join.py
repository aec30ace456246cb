"""Interval joins and window joins: a row is freed once the watermark has passed the last time of the other
side it can match.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import truths
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Output, PendingOutput, start_output
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.join.regular_join import Alone, RegularJoinOperator
from penstock.engine.state.rows.interval_join_side import ExpiringJoinSide, least_deadlines
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.windowing.late_row_filter import without_late
from penstock.planner.logical.joins.interval_join import IntervalJoin, IntervalJoinFacts
from penstock.planner.physical.operator_specs import OperatorSpec

UnusedKeys = Generator[None, None, np.ndarray]
"""Output that is pending as ``PendingOutput`` is, and what it returns: key slots."""
_NO_KEYS = np.zeros(0, np.int64)


class IntervalJoinOperator(RegularJoinOperator):
    """Pairs are emitted when their later row comes. In outer joins, rows without a match are emitted when
    their deadline passes. So output is only retracted when an input retracts.

    Two rows match unless one of them came after the watermark of its split had passed the last time the other
    can match. This depends on the two rows alone, so the result depends neither on freed rows nor on the
    order of arrival. A row that no partner can match any more is late: dropped and counted. On a side with
    retractions every row behind its split's watermark is late. Rows without a time match nothing. The
    watermark is delayed, so that emitted rows are not late above unless they were late here.
    """

    def __init__(self, spec: OperatorSpec[IntervalJoin, IntervalJoinFacts], options: JobOptions) -> None:
        super().__init__(spec, options)
        assert spec.facts.time is not None
        self._time = spec.facts.time
        # how far the forwarded watermark is behind that of the inputs, microseconds
        self._delay_us = spec.facts.time.hold_us(spec.node.kind)
        # by port: the columns a match needs to be not NULL
        self._needed = (self._required_columns(0), self._required_columns(1))
        # By port: pairs (column, offset). A row can match until the other side's time is column + offset.
        self._deadlines = [
            [(deadline.column, deadline.offset_us) for deadline in side.deadlines]
            for side in spec.facts.time.sides
        ]
        self._watermark_us = MIN_WATERMARK_US

    def _required_columns(self, port: int) -> tuple[int, ...]:
        """The columns of a side that must not be NULL for a match: its keys, and the columns the times of
        matches depend on.
        """
        side, other = self._time.sides[port], self._time.sides[1 - port]
        times = {deadline.column for deadline in side.deadlines} | (
            {side.time_column} if other.deadlines else set()
        )
        return tuple(dict.fromkeys((*self._keys[port], *sorted(times))))

    def open(self, context: Context) -> None:
        super().open(context)
        self._metrics = context.metrics

    def _side(self, port: int, max_parallelism: int) -> JoinSide:
        side, other = self._time.sides[port], self._time.sides[1 - port]
        # rows of this side never expire
        if not side.deadlines:
            return super()._side(port, max_parallelism)
        lasting = (
            None
            if self._facts.insert_only_inputs[port]
            else (side.time_column, side.slack_us - other.slack_us)
        )
        groups = max_parallelism
        return ExpiringJoinSide(
            self._schemas[port],
            self._keys[port],
            self._index,
            groups,
            self._deadlines[port],
            lasting,
            **self._side_options(port),
        )

    def _side_options(self, port: int) -> dict[str, bool]:
        return super()._side_options(port) | {"lates": self._facts.insert_only_inputs[port]}

    def _prompt(self, port: int) -> Alone:
        """Rows without a match wait until their deadline, or until the other side has ended."""
        # LEFT JOIN: the NULL-padded row is emitted at the deadline, so it is never retracted
        waits = self._alone[port] is Alone.UNMATCHED and not self._ended[1 - port]
        return Alone.NEVER if waits else self._alone[port]

    def _join(self, batch: Batch, port: int, out: Output) -> PendingOutput:
        # order: drop late rows, join the rest, then free what the late watermark of a row left behind
        batch = self._drop_late(batch, port)
        if batch.num_rows:
            yield from super()._join(batch, port, out)
            if batch.behind is not None:  # no row may be left unmatched at the end
                self._index.remove((yield from self._settle_due(port, out)))

    def _drop_late(self, batch: Batch, port: int) -> Batch:
        """Drop and count the late rows. The others keep the watermark they are behind, the least int64 when
        they are not.
        """
        side = self._time.sides[port]
        column = batch.rows.column(side.time_column)
        # one watermark for all rows is not written out row by row: only a batch with late rows needs that
        reached = np.broadcast_to(np.int64(self._watermark_us), batch.num_rows)
        # a row may be `slack_us` behind the watermark without being late
        bounds: np.ndarray = _less(np.array(self._watermark_us), side.slack_us)
        if batch.behind is not None:
            reached = np.maximum(batch.behind, self._watermark_us)
            bounds = _less(reached, side.slack_us)
        behind = col.words(column) < bounds
        if column.null_count:
            behind &= truths(column.is_valid())
        # the usual batch: `behind` is dropped, so that the pairs need no lateness
        if not behind.any():
            return Batch(batch.rows, batch.weights)
        # On an insert-only side a row that is behind may still match stored rows. With retractions it is
        # dropped: the row it retracts may be freed.
        late = (
            behind & self._meets_nothing(batch.rows, bounds, port)
            if self._facts.insert_only_inputs[port]
            else behind
        )
        marked = Batch(batch.rows, batch.weights, np.where(behind, reached, MIN_WATERMARK_US))
        return without_late(marked, late, reached, self._metrics)

    def _meets_nothing(self, rows: pa.RecordBatch, bounds: np.ndarray, port: int) -> np.ndarray:
        """Return the rows that have no partner and can get none: the last stored one that could match is
        freed.
        """
        # a NULL key, or a NULL time: the row matches nothing
        none = np.zeros(rows.num_rows, np.bool_)
        for column in self._needed[port]:
            if rows.column(column).null_count:
                none |= truths(rows.column(column).is_null())
        other = self._time.sides[1 - port]
        # how long rows of the other side are stored after their own time
        stored_until_us = [
            deadline.offset_us for deadline in other.deadlines if deadline.column == other.time_column
        ]
        # one side is stored for ever: a partner may always be there
        if not self._deadlines[port] or not stored_until_us:
            return none
        # `last`: the greatest time of a partner, which is freed at that time plus its own offset
        last = least_deadlines(rows, self._deadlines[port])
        return none | (np.maximum(last, last + min(stored_until_us)) < bounds)

    def _emit_pairs(
        self, batch: Batch, at: np.ndarray, ids: np.ndarray, port: int, out: Output
    ) -> tuple[np.ndarray, np.ndarray]:
        meet = self._meet(batch, at, ids, port)
        return super()._emit_pairs(
            batch, at if meet is None else at[meet], ids if meet is None else ids[meet], port, out
        )

    def _meet(self, batch: Batch, at: np.ndarray, ids: np.ndarray, port: int) -> np.ndarray | None:
        """Return the pairs of which neither row was too late for the other; None for all."""
        own, other = self._sides[port], self._sides[1 - port]
        meet = None
        # the batch's row came too late for a stored row that a timely run would have freed
        if batch.behind is not None and isinstance(other, ExpiringJoinSide):
            meet = other.last_met(ids) >= _less(batch.behind, self._time.sides[port].slack_us)[at]
        behind = other.behind(ids)
        # and the stored row came too late for the row of the batch
        if behind is not None and isinstance(own, ExpiringJoinSide):
            last = least_deadlines(batch.rows, self._deadlines[port])[at]
            in_time = last >= _less(behind, self._time.sides[1 - port].slack_us)
            meet = in_time if meet is None else meet & in_time
        return meet

    def _lateness(self, batch: Batch, at: np.ndarray, ids: np.ndarray, port: int) -> np.ndarray | None:
        """A pair is as late as its later row."""
        own, other = None if batch.behind is None else batch.behind[at], self._sides[1 - port].behind(ids)
        return self._delayed_watermark(
            own if other is None else other if own is None else np.maximum(own, other)
        )

    def _stored_lateness(self, ids: np.ndarray, port: int) -> np.ndarray | None:
        return self._delayed_watermark(self._sides[port].behind(ids))

    def _emit_alone_of(self, batch: Batch, port: int, out: Output) -> None:
        self._emit_alone(batch.rows, batch.weights, self._delayed_watermark(batch.behind), port, out)

    def _delayed_watermark(self, behind: np.ndarray | None) -> np.ndarray | None:
        """The watermark below the join that rows are behind, when some are."""
        if behind is None or (behind == MIN_WATERMARK_US).all():
            return None
        return _less(behind, self._delay_us)

    def on_watermark(self, time_us: int, out: Output) -> PendingOutput | None:
        self._watermark_us = time_us
        return start_output(self._counted(self._pass_time(time_us, out)))

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        unused = []
        for port in (0, 1):
            # the end of the input: rows without a match are emitted, everything is freed
            if time_us == MAX_WATERMARK_US:
                keys = yield from self._settle(self._sides[port].store.live_ids(), port, out)
            else:
                keys = yield from self._settle_due(port, out)
            unused.append(keys)
        # the keys of both sides at once: an index that has none left is not searched
        self._index.remove(np.concatenate(unused))

    def _settle_due(self, port: int, out: Output) -> UnusedKeys:
        side, slack_us = self._sides[port], self._time.sides[1 - port].slack_us
        if not isinstance(side, ExpiringJoinSide):
            return _NO_KEYS
        # deadlines are in the other side's time, so its slack counts; the maximum prevents underflow
        due = side.due(max(self._watermark_us, MIN_WATERMARK_US + 1 + max(slack_us, 0)) - slack_us)
        return (yield from self._settle(due, port, out))

    def passes_on(self, time_us: int) -> int:
        # the end of time is not delayed
        if time_us == MAX_WATERMARK_US:
            return time_us
        return max(time_us, MIN_WATERMARK_US + self._delay_us) - self._delay_us

    def _end_port(self, port: int, out: Output) -> PendingOutput:
        """The rows of the other side can match nothing any more: emit those without a match now."""
        self._ended[port] = True
        yield from self._emit_unmatched(self._sides[1 - port].store.live_ids(), 1 - port, out)
        self._forget(1 - port)

    def _settle(self, ids: np.ndarray, port: int, out: Output) -> UnusedKeys:
        """Emit those of some rows of a side that stayed without a match, and free all of them. Return keys
        that neither side has a row of any more: the caller removes them from the common index.
        """
        if not ids.size:
            return _NO_KEYS
        yield from self._emit_unmatched(ids, port, out)
        emptied = self._sides[port].remove(ids)
        return emptied[self._sides[1 - port].links.counts(emptied) == 0]

    def _emit_unmatched(self, ids: np.ndarray, port: int, out: Output) -> PendingOutput:
        if self._alone[port] is Alone.UNMATCHED:
            yield from self._emit_stored(ids[self._sides[port].matches[ids] == 0], port, out)


def _less(times_us: np.ndarray, by_us: int) -> np.ndarray:
    """Return times less some microseconds; the least int64 stays."""
    return np.where(
        times_us == MIN_WATERMARK_US, times_us, np.maximum(times_us, MIN_WATERMARK_US + max(by_us, 0)) - by_us
    )
