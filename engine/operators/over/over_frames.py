"""Values of OVER calls for sorted rows. Aggregates over frames are merged from blocks of 1, 2, 4, .. rows (a
sparse table).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of, is_true, truths
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels import over_frames as kernel
from penstock.engine.operators.over.partitions import Partitions, PeerGroups, Peers
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.planner.expressions.nodes import AggregateCall, Literal, SortKey
from penstock.planner.logical.over import NEIGHBOURS, PLACES, RANKS, Frame, FrameExclusion, FrameUnit, nth_of

Segment = tuple[np.ndarray, np.ndarray]
"""A part of each row's frame, int64: its first position and the one behind its last; empty where that is not
behind the first.
"""

# rows of frames that are aggregated at once, where each frame's rows are added one by one
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Before:
    """What precedes, in each partition, its first row that needs values. By row, int64: ``first`` such row's
    position, rows and peer groups before it.

    ``accumulators`` hold by slot the aggregates of the rows before, for frames that start with the partition.
    """

    first: np.ndarray
    rows: np.ndarray
    groups: np.ndarray
    accumulators: Accumulators


class OverFrames:
    """Computes calls that share partition, order and frame."""

    def __init__(
        self, calls: Sequence[AggregateCall], order: Sequence[SortKey], frame: Frame, time_zone: str
    ) -> None:
        context = EvaluationContext(time_zone)
        self.frame = frame
        self.calls = tuple(calls)
        self.peers = Peers(order, time_zone)
        aggregates = [call for call in calls if call.function not in RANKS | PLACES]
        self.accumulators = Accumulators(aggregates, True, time_zone)
        self._aggregates = len(aggregates)
        self._gathers = any(call.keeps_values for call in aggregates)
        self._arguments = {
            call: compile_expression(call.args[0], context) for call in calls if call.function in PLACES
        }
        # FILTER of a place: the rows that it takes; IGNORE NULLS takes those with a value
        self._takes = {
            call: compile_expression(call.filter, context)
            for call in calls
            if call.function in PLACES and call.filter is not None
        }
        self._distance_key = (
            (compile_expression(order[0].expression, context), order[0]) if frame.has_distance else None
        )

    def of(self, part: Partitions, groups: PeerGroups, before: Before | None = None) -> list[pa.Array]:
        """Return one column per call: its value for each row; with ``before``, for each row from the first
        that needs one.
        """
        positions = np.arange(part.rows.num_rows)
        # without `before` all rows need values
        wanted = positions if before is None else np.flatnonzero(positions >= before.first)
        frame = self._segments(part, groups)
        # calls of one FILTER find the same rows: LAST_VALUE of each column of a row
        found: dict[object, tuple[np.ndarray, np.ndarray]] = {}
        aggregates = iter(self._aggregated(part, frame, wanted, before) if self._aggregates else [])
        columns = []
        for call in self.calls:
            # ROW_NUMBER, RANK, DENSE_RANK
            if call.function in RANKS:
                columns.append(array_of(self._rank(call, part, groups, before)[wanted].astype(np.int32)))
            # LAG, LEAD: the value of another row of the partition
            elif call.function in NEIGHBOURS:
                columns.append(self._neighbour(call, part, wanted))
            # FIRST_VALUE, LAST_VALUE, NTH_VALUE: the value of a row of the frame
            elif call.function in PLACES:
                which = (nth_of(call), call.filter)
                if which not in found:
                    found[which] = self._nth_rows(call, part, frame, wanted)
                at, known = found[which]
                columns.append(
                    self._arguments[call](part.rows).take(array_of(np.where(known, at, 0), ~known))
                )
            else:
                # SUM(x) OVER ..: computed above for all such calls together
                columns.append(next(aggregates))
        return columns

    def _rank(
        self, call: AggregateCall, part: Partitions, groups: PeerGroups, before: Before | None
    ) -> np.ndarray:
        if before is None:
            return self.peers.ranks(part, call.function)
        # `before.rows` counts all rows of earlier watermarks, also those that are no longer stored
        if call.function == "row_number":
            return np.arange(part.rows.num_rows) - before.first + before.rows + 1
        # the position of the row's first peer
        if call.function == "rank":
            return groups.firsts - before.first + before.rows + 1
        return groups.numbers - groups.numbers[before.first] + before.groups + 1

    def _segments(self, part: Partitions, groups: PeerGroups) -> list[Segment]:
        """Return each row's frame in its order: one segment, or what EXCLUDE leaves of it."""
        low, high = self._bounds(part, groups)
        here = np.arange(part.rows.num_rows)
        without = self.frame.exclude
        if without is FrameExclusion.NO_OTHERS:
            return [(low, high)]
        if without is FrameExclusion.CURRENT_ROW:
            return [(low, np.minimum(high, here)), (np.maximum(low, here + 1), high)]
        before, behind = (low, np.minimum(high, groups.firsts)), (np.maximum(low, groups.ends), high)
        if without is FrameExclusion.GROUP:
            return [before, behind]
        # TIES: the row itself stays, where the frame has it
        return [before, (np.maximum(low, here), np.minimum(high, here + 1)), behind]

    def _bounds(self, part: Partitions, groups: PeerGroups) -> Segment:
        """Return each row's frame before EXCLUDE."""
        start, end = self.frame.start, self.frame.end
        # ROWS BETWEEN 2 PRECEDING AND CURRENT ROW: start is -2, end is 0
        if self.frame.unit is FrameUnit.ROWS:
            here = np.arange(part.rows.num_rows)
            low = part.starts if start is None else np.clip(here + start, part.starts, part.ends)
            return low, part.ends if end is None else np.clip(here + end + 1, part.starts, part.ends)
        if self.frame.unit is FrameUnit.GROUPS:
            return self._bounds_of_groups(part, groups)
        # RANGE UNBOUNDED PRECEDING .. CURRENT ROW: peers are in the frame, before and behind the row
        if self._distance_key is None:
            return part.starts if start is None else groups.firsts, part.ends if end is None else groups.ends
        # RANGE BETWEEN a PRECEDING AND b FOLLOWING: by distance of the order key
        low, high = np.empty(part.rows.num_rows, np.int64), np.empty(part.rows.num_rows, np.int64)
        first, last = -kernel.FAR if start is None else start, kernel.FAR if end is None else end
        kernel.within(self._distances(part.rows), part.starts, part.ends, first, last, low, high)
        return low, high

    def _bounds_of_groups(self, part: Partitions, groups: PeerGroups) -> Segment:
        """Return frames of GROUPS: from the first row of a group of peers to the last of another."""
        count, start, end = part.rows.num_rows, self.frame.start, self.frame.end
        # by group: its first row; one more group ends the last
        firsts = np.append(np.unique(groups.firsts), count)
        own = groups.numbers
        # the groups of each partition: its first, and the one behind its last
        least, most = own[part.starts], own[part.ends - 1] + 1
        low = part.starts if start is None else firsts[np.clip(own + start, least, most)]
        high = part.ends if end is None else firsts[np.clip(own + end + 1, least, most)]
        return low, high

    def _distances(self, rows: pa.RecordBatch) -> np.ndarray:
        """The order key as ascending integers; NULLs are farther away than any distance."""
        assert self._distance_key is not None
        evaluate, key = self._distance_key
        column = evaluate(rows)
        values = col.words(column)
        # DESC: negated, PRECEDING is again the smaller side
        values = -values if key.descending else values
        if column.null_count:
            nulls = truths(column.is_null())
            values = np.where(nulls, np.int64(-(2**63)) if key.nulls_first else np.int64(2**63 - 1), values)
        return np.ascontiguousarray(values)

    def _aggregated(
        self, part: Partitions, frame: Sequence[Segment], wanted: np.ndarray, before: Before | None
    ) -> list[pa.Array]:
        # COLLECT_LIST and the like: merging blocks would copy their values again and again
        if self._gathers:
            return self._gathered(part, frame, wanted, before)
        merged = self.accumulators.fresh()
        merged.reserve(part.rows.num_rows)
        # UNBOUNDED PRECEDING: the rows of earlier watermarks are one accumulator of the partition
        if before is not None and self.frame.start is None:
            frame = [(np.maximum(low, before.first), high) for low, high in frame]
            merged.merge(wanted, before.accumulators, part.slots[wanted])
        for low, high in frame:
            self._merge_segment(merged, part, low, high, wanted)
        return merged.results(wanted)

    def _merge_segment(
        self, merged: Accumulators, part: Partitions, low: np.ndarray, high: np.ndarray, wanted: np.ndarray
    ) -> None:
        """Add the rows of one segment to the result of each wanted row."""
        count = part.rows.num_rows
        # A sparse table: slot i of `blocks` aggregates rows i .. i + size - 1, for size 1, 2, 4, ..
        blocks = self.accumulators.fresh()
        blocks.reserve(count)
        blocks.add(np.arange(count), part.rows)
        # the next row of each frame that is not in its result yet
        at = low.copy()
        # A frame of 13 rows is one block of 1, one of 4 and one of 8: the bits of its length.
        lengths = np.zeros(count, np.int64)
        lengths[wanted] = np.maximum(high - low, 0)[wanted]
        longest, size = int(lengths.max(initial=0)), 1
        while size <= longest:
            chosen = np.flatnonzero(lengths & size)
            merged.merge(chosen, blocks, at[chosen])
            at[chosen] += size
            if 2 * size <= longest:
                # double all blocks: block i and block i + size together are 2 * size rows
                into = np.arange(count - size)
                blocks.merge(into, blocks, into + size)
            size *= 2

    def _gathered(
        self, part: Partitions, frame: Sequence[Segment], wanted: np.ndarray, before: Before | None
    ) -> list[pa.Array]:
        """Aggregate the rows of each frame, as many frames at once as fit. For aggregates that store values,
        a block costs its rows.
        """
        # UNBOUNDED PRECEDING: the values of earlier watermarks are in the accumulators
        from_before = before if before is not None and self.frame.start is None else None
        least = 0 if from_before is None else from_before.first
        lows = np.stack([np.maximum(low, least)[wanted] for low, _ in frame])
        parts = np.maximum(np.stack([high[wanted] for _, high in frame]) - lows, 0)
        lengths = parts.sum(axis=0)
        # values up to each frame, the stored ones included; the 1 counts the frame itself
        sizes = np.cumsum(lengths + 1 if from_before is None else lengths + from_before.rows[wanted] + 1)
        columns: list[list[pa.Array]] = []
        start = 0
        while start < wanted.size or not columns:
            done = sizes[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(sizes, done + _ROWS_AT_ONCE, side="right")))
            rows, counts = wanted[start:end], lengths[start:end]
            # by pair of a frame and one of its rows: the frame, and which of its rows
            owners = np.repeat(np.arange(rows.size), counts)
            nth = np.arange(owners.size) - np.repeat(np.cumsum(counts) - counts, counts)
            merged = self.accumulators.fresh()
            merged.reserve(rows.size)
            at = _positions(lows[:, start:end], parts[:, start:end], owners, nth)
            merged.add(owners, part.rows.take(array_of(at)))
            if from_before is not None:
                merged.merge(np.arange(rows.size), from_before.accumulators, part.slots[rows])
            columns.append(merged.results(np.arange(rows.size)))
            start = end
        return [pa.concat_arrays(parts) for parts in zip(*columns, strict=True)]

    def _neighbour(self, call: AggregateCall, part: Partitions, wanted: np.ndarray) -> pa.Array:
        """Return LAG or LEAD: the value so many rows away in the partition, whatever the frame is; without
        such a row the third argument.
        """
        values, fallback, distance = self._arguments[call](part.rows), call.args[2], nth_of(call)
        assert isinstance(fallback, Literal)
        low, high = (
            (wanted + 1, part.ends[wanted]) if call.function == "lead" else (part.starts[wanted], wanted)
        )
        # LAG(x, 0), LEAD(x, 0): the row itself
        if distance == 0:
            return values.take(array_of(wanted))
        nth = distance if call.function == "lead" else -distance
        at, known = self._find(call, part, [(low, high)], nth)
        there = values.take(array_of(np.where(known, at, 0), ~known))
        if fallback.value is None:
            return there
        return pc.if_else(array_of(known), there, pa.scalar(fallback.value, to_arrow(call.type)))

    def _nth_rows(
        self, call: AggregateCall, part: Partitions, frame: Sequence[Segment], wanted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the position of the n-th row of each frame, and whether it has so many."""
        return self._find(call, part, [(low[wanted], high[wanted]) for low, high in frame], nth_of(call))

    def _find(
        self, call: AggregateCall, part: Partitions, segments: Sequence[Segment], nth: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the position of the n-th row that a call takes in some segments, and whether there is one.
        Below zero the last row is -1.
        """
        ranks, candidates = self._candidates(call, part)
        # by segment, as numbers among the rows candidates: the first, and the one behind the last
        firsts = np.stack([ranks[low] for low, _ in segments])
        sizes = np.maximum(np.stack([ranks[np.maximum(low, high)] for low, high in segments]) - firsts, 0)
        total = sizes.sum(axis=0)
        number = np.full(total.size, nth - 1) if nth > 0 else total + nth
        known = (number >= 0) & (number < total)
        owners = np.flatnonzero(known)
        at = np.zeros(total.size, np.int64)
        at[owners] = candidates[_positions(firsts, sizes, owners, number[owners])]
        return at, known

    def _candidates(self, call: AggregateCall, part: Partitions) -> tuple[np.ndarray, np.ndarray]:
        """Return, by position and one more, the number of rows before it that a call takes, and the positions
        of those rows.
        """
        count = part.rows.num_rows
        if call not in self._takes:
            return np.arange(count + 1), np.arange(count)
        mask = is_true(self._takes[call](part.rows))
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)]), np.flatnonzero(mask)

    def retained(self, part: Partitions, call: AggregateCall, number: int) -> np.ndarray:
        """Return, by row, whether it is among the first rows of its partition that a call takes, or the last
        where ``number`` is below zero.
        """
        ranks, candidates = self._candidates(call, part)
        near = ranks[candidates] - ranks[part.starts[candidates]] < number
        if number < 0:
            near = ranks[part.ends[candidates]] - ranks[candidates] <= -number
        rows = np.zeros(part.rows.num_rows, np.bool_)
        rows[candidates[near]] = True
        return rows


def _positions(lows: np.ndarray, sizes: np.ndarray, owners: np.ndarray, nth: np.ndarray) -> np.ndarray:
    """Return the position of the ``nth`` row, from 0, of each owner's segments. ``lows`` and ``sizes``, by
    segment and owner, are their first positions and their lengths.
    """
    at, left = lows[0][owners] + nth, nth.copy()
    for number in range(1, len(lows)):
        # what the segments before do not have
        left = left - sizes[number - 1][owners]
        at = np.where(left >= 0, lows[number][owners] + left, at)
    return at
