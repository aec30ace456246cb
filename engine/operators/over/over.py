"""OVER aggregation. Over event time rows wait until the watermark has passed them, and get their values once.
Over changes partitions are recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    KeyGroups,
    Output,
    PendingOutput,
    emit_batch,
)
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.event_time_buffer import EventTimeBufferOperator
from penstock.engine.operators.over.over_frames import Before, OverFrames
from penstock.engine.operators.over.partition_recompute import PartitionRecompute, columns_of
from penstock.engine.operators.over.partitions import Partitions, PeerGroups, partitioned
from penstock.engine.state.rows.partitioned_event_time_buffer import TimedRows
from penstock.engine.state.time_to_live import PartitionEnds
from penstock.planner.expressions.nodes import AggregateCall
from penstock.planner.logical.over import PLACES, RANKS, FrameUnit, Over, OverFacts
from penstock.planner.physical.operator_specs import OperatorSpec


class EventTimeOverOperator(EventTimeBufferOperator[TimedRows]):
    """Emits each row with its values when the watermark has passed its time.

    Of passed rows the state has those within a RANGE distance of the watermark, and the last rows that ROWS,
    GROUPS and LAG reach. For FIRST_VALUE it has the first row, for ranks and frames that start with the
    partition accumulators. For calls with IGNORE NULLS it has the rows with a value that they may return.
    Partitions within windows are dropped when their window ends.
    """

    _node: Over

    def __init__(self, spec: OperatorSpec[Over, OverFacts], options: JobOptions) -> None:
        super().__init__(spec, options)
        self._schema = spec.schema.to_arrow()
        self._values = OverFrames(spec.node.calls, spec.node.order, spec.node.frame, options.time_zone)
        # UNBOUNDED PRECEDING: aggregates of all earlier rows are stored, not the rows
        running = spec.node.frame.start is None
        self._running = [call for call in spec.node.calls if running and call.function not in RANKS | PLACES]
        self._keeps_totals = bool(self._running) or spec.node.numbers
        # FIRST_VALUE, LAG(x) IGNORE NULLS: rows that may be any time ago
        self._retained_calls = spec.node.retained_calls
        # GROUPS 2 PRECEDING: the peers of the last two times
        self._retained_groups = (
            -(spec.node.frame.start or 0) if spec.node.frame.unit is FrameUnit.GROUPS else 0
        )
        # RANGE BETWEEN INTERVAL .. PRECEDING: rows are stored this long behind the watermark
        self._range_us = (
            -spec.node.frame.start
            if spec.node.frame.unit is FrameUnit.RANGE and spec.node.frame.start is not None
            else None
        )
        self._ends: PartitionEnds | None = None

    def _buffer(self, groups: KeyGroups) -> TimedRows:
        return TimedRows(
            self._input,
            self._node.partition,
            self._time_column,
            self._keys,
            groups,
            self._lives.writes,
            numbered=self._facts.arrival != 0,
        )

    def _total_calls(self) -> Sequence[AggregateCall]:
        return self._running

    def _pass_time(self, time_us: int, out: Output) -> PendingOutput:
        """Process the rows the watermark has passed. Rows of a window wait until the watermark has reached
        its end, which is later than their time.
        """
        passed_us = self._watermark_us
        # every row of a time is there once the watermark is past it, so all peers come together
        due = self._rows.due(passed_us)
        if due.size:
            touched = self._distinct.of(self._rows.slots(due), self._keys.capacity)
            # whole partitions, as many as fit in memory at once
            for number, (slots, some) in enumerate(self._rows.at_once(touched, due)):
                if number:
                    yield
                yield from emit_batch(self._passed(slots, some, passed_us), out)
        # after the rows of this watermark: they may need what expires now
        self._expire(passed_us)
        self._close(time_us)
        self._metrics.state_entries = len(self._rows)

    def _clear(self, expired: np.ndarray) -> None:
        self._free(self._unused(expired))

    def _passed(self, touched: np.ndarray, due: np.ndarray, time_us: int) -> Batch:
        """Return the due rows of some partitions with their values, and store what later rows need."""
        rows, totals = self._rows, self._totals
        totals.reserve()
        self._lives.touch(touched, self._keys.capacity)
        # stored rows of the partitions come before the due ones: they are in the frames of these
        positions, earlier = rows.passed.expand(touched)
        ids = np.concatenate([earlier, due])
        part = partitioned(rows.store.take(ids), rows.slots(ids), self._order, rows.store.arrived(ids))
        # how many stored rows each partition has; behind them, at `first`, its due rows begin
        counts = np.zeros(self._keys.capacity, np.int64)
        np.add.at(counts, touched[positions], 1)
        first = part.starts + counts[part.slots]
        groups = self._values.peers.of(part)
        before = Before(first, totals.rows[part.slots], totals.groups[part.slots], totals.accumulators)
        values = self._values.of(part, groups, before)
        # only due rows are emitted; the stored ones were emitted at an earlier watermark
        wanted = np.flatnonzero(np.arange(ids.size) >= first)
        fresh = part.rows.take(array_of(wanted))
        result = Batch(pa.RecordBatch.from_arrays([*fresh.columns, *values], schema=self._schema))
        if self._keeps_totals:
            # DENSE_RANK counts peer groups: one row a group counts
            begins = wanted[groups.firsts[wanted] == wanted]
            totals.add(part.slots[wanted], fresh, part.slots[begins])
        if self._ends is not None:
            self._ends.note(touched, self._window_ends(touched), self._keys.capacity)
        self._retain_rows(part, groups, ids[part.origins], first, time_us)
        return result

    def _retain_rows(
        self, part: Partitions, groups: PeerGroups, ids: np.ndarray, first: np.ndarray, time_us: int
    ) -> None:
        # a row stays stored for ROWS and LAG (the last `history` rows), RANGE, GROUPS, or for FIRST_VALUE
        here = np.arange(ids.size)
        stored = here >= part.ends - self._node.history
        if self._range_us:
            stored |= self._rows.times(ids) >= time_us - self._range_us
        if self._retained_groups:
            stored |= groups.numbers > groups.numbers[part.ends - 1] - self._retained_groups
        for call, number in self._retained_calls:
            stored |= self._values.retained(part, call, number)
        # stored before this watermark
        old = here < first
        # new rows that stay become passed rows; old rows that stay need nothing; all others are dropped
        self._rows.keep(ids[stored & ~old])
        self._rows.forget(ids[old & ~stored], ids[~old & ~stored])

    def _expire(self, time_us: int) -> None:
        """Drop rows that no later row's distance reaches, and partitions without state."""
        # such state belongs to the partition for ever; a TTL or the end of its window drops it
        if self._node.history or self._retained_calls or self._retained_groups or self._keeps_totals:
            return
        linked = self._rows.linked_ids()
        if self._range_us:
            self._rows.forget(linked[self._rows.times(linked) < time_us - self._range_us], linked[:0])
        self._free(self._unused(self._keys.live_slots()))

    def _close(self, time_us: int) -> None:
        """Drop the partitions whose window has ended."""
        if self._node.window is None:
            return
        live = self._keys.live_slots()
        # after a restore: the ends of all restored partitions
        if self._ends is None:
            self._ends = PartitionEnds()
            self._ends.note(live, self._window_ends(live), self._keys.capacity)
        ended = self._ends.due(live, time_us)
        if ended.size:
            _, ids = self._rows.passed.expand(ended)
            self._rows.forget(ids, ids[:0])
            self._free(self._unused(ended))
            self._metrics.windows_closed += int(ended.size)

    def _window_ends(self, slots: np.ndarray) -> np.ndarray:
        """Return the window ends of partitions; the end is one of their columns."""
        assert self._node.window is not None
        # PARTITION BY names window_end, so it is in the key
        return col.words(self._keys.keys(slots)[self._node.partition.index(self._node.window.end_column)])

    def _free(self, slots: np.ndarray) -> None:
        if slots.size:
            self._totals.reserve()
            self._totals.clear(slots)
            self._keys.remove(slots)


class RetractOverOperator(PartitionRecompute):
    """Recomputes the touched partitions: any order, any frame, any changes."""

    def __init__(self, spec: OperatorSpec[Over, OverFacts], options: JobOptions) -> None:
        super().__init__(spec, options)
        self._values = OverFrames(spec.node.calls, spec.node.order, spec.node.frame, options.time_zone)

    def show(self, part: Partitions) -> list[pa.Array]:
        return columns_of(part.rows, self._values.of(part, self._values.peers.of(part)))
