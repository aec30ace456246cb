"""The join settled by time: rows are freed when the watermark has passed the last time of the other side they can meet."""

from __future__ import annotations

import numpy as np

from engine.elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from engine.job_options import JobOptions
from engine.on_time import on_time
from engine.operator import Context, Output
from engine.operators.join import Alone, JoinOperator
from engine.state.expiring_join_side import ExpiringJoinSide
from engine.state.join_side import JoinSide
from planner.physical import JoinSpec


class TimedJoinOperator(JoinOperator):
    """Interval joins and window joins. Pairs are given as they are found; rows that stay without a match when their deadline passes, so rows given
    are never taken back unless the inputs take rows back.

    Rows behind their own split's watermark, which might have met rows that are gone, are dropped and counted. Rows without a time match nothing.
    The watermark is held back so that all rows given are on time above.
    """

    def __init__(self, spec: JoinSpec, options: JobOptions) -> None:
        super().__init__(spec, options)
        assert spec.time is not None
        self._time = spec.time
        self._hold_us = spec.time.hold_us(spec.kind)
        self._needed = (self._told(0), self._told(1))
        self._watermark_us = MIN_WATERMARK_US

    def _told(self, port: int) -> tuple[int, ...]:
        """The columns of a side that must not be NULL for a match: its keys and what the times of matches are told by."""
        side, other = self._time.sides[port], self._time.sides[1 - port]
        times = {deadline.column for deadline in side.deadlines} | ({side.time_column} if other.deadlines else set())
        return tuple(dict.fromkeys((*self._keys[port], *sorted(times))))

    def open(self, context: Context) -> None:
        super().open(context)
        self._metrics = context.metrics

    def _side(self, port: int, max_parallelism: int) -> JoinSide:
        side, other = self._time.sides[port], self._time.sides[1 - port]
        if not side.deadlines:
            return super()._side(port, max_parallelism)
        lasting = None if self._spec.insert_only[port] else (side.time_column, side.slack_us - other.slack_us)
        deadlines = [(deadline.column, deadline.offset_us) for deadline in side.deadlines]
        return ExpiringJoinSide(self._schemas[port], self._keys[port], self._index, max_parallelism, deadlines, lasting, **self._kept(port))

    def _prompt(self, port: int) -> Alone:
        """Rows without a match wait for one, until the other side has ended."""
        waits = self._alone[port] is Alone.UNMATCHED and not self._ended[1 - port]
        return Alone.NEVER if waits else self._alone[port]

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        side = self._time.sides[port]
        batch = on_time(batch, side.time_column, side.slack_us, self._watermark_us, self._metrics)
        if batch.num_rows:
            super().on_batch(batch, port, out)

    def on_watermark(self, time_us: int, out: Output) -> None:
        self._watermark_us = time_us
        for port in (0, 1):
            side, other = self._sides[port], self._time.sides[1 - port]
            if time_us == MAX_WATERMARK_US:
                self._settle(side.store.live_ids(), port, out)
            elif isinstance(side, ExpiringJoinSide):
                self._settle(side.due(max(time_us, MIN_WATERMARK_US + 1 + max(other.slack_us, 0)) - other.slack_us), port, out)
        self._count_entries()

    def passes_on(self, time_us: int) -> int:
        if time_us == MAX_WATERMARK_US:
            return time_us
        return max(time_us, MIN_WATERMARK_US + self._hold_us) - self._hold_us

    def on_port_end(self, port: int, out: Output) -> None:
        """Nothing will match the rows of the other side any more: those without a match are given now."""
        self._ended[port] = True
        self._give_unmatched(self._sides[1 - port].store.live_ids(), 1 - port, out)
        self._forget(1 - port)
        self._count_entries()

    def _settle(self, ids: np.ndarray, port: int, out: Output) -> None:
        """Give what stayed without a match of some rows of a side, and forget them."""
        if not ids.size:
            return
        self._give_unmatched(ids, port, out)
        emptied = self._sides[port].remove(ids)
        self._index.remove(emptied[self._sides[1 - port].links.counts(emptied) == 0])

    def _give_unmatched(self, ids: np.ndarray, port: int, out: Output) -> None:
        if self._alone[port] is Alone.UNMATCHED:
            side = self._sides[port]
            ids = ids[side.matches[ids] == 0]
            self._give_alone(side.store.take(ids), side.store.weights(ids), None, port, out)
