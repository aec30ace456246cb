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
from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels import over_frames as kernel
from penstock.engine.operators.over.partitions import Partitions, PeerGroups, Peers
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.planner.expressions.nodes import AggregateCall, Literal, SortKey
from penstock.planner.logical.over import PLACES, RANKS, Frame, FrameUnit

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
        low, high = self._frames(part, groups)
        aggregates = iter(self._aggregated(part, low, high, wanted, before) if self._aggregates else [])
        columns = []
        for call in self.calls:
            # ROW_NUMBER, RANK, DENSE_RANK
            if call.function in RANKS:
                columns.append(array_of(self._rank(call, part, groups, before)[wanted].astype(np.int32)))
            # LAG, LEAD, FIRST_VALUE, LAST_VALUE: the value of one other row
            elif call.function in PLACES:
                columns.append(self._value_at_offset(call, part, low, high, wanted))
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

    def _frames(self, part: Partitions, groups: PeerGroups) -> tuple[np.ndarray, np.ndarray]:
        """Return for each row the first position of its frame and the position behind its last."""
        start, end = self.frame.start, self.frame.end
        # ROWS BETWEEN 2 PRECEDING AND CURRENT ROW: start is -2, end is 0
        if self.frame.unit is FrameUnit.ROWS:
            here = np.arange(part.rows.num_rows)
            low = part.starts if start is None else np.clip(here + start, part.starts, part.ends)
            return low, part.ends if end is None else np.clip(here + end + 1, part.starts, part.ends)
        # RANGE UNBOUNDED PRECEDING .. CURRENT ROW: peers are in the frame, before and behind the row
        if self._distance_key is None:
            return part.starts if start is None else groups.firsts, part.ends if end is None else groups.ends
        # RANGE BETWEEN a PRECEDING AND b FOLLOWING: by distance of the order key
        low, high = np.empty(part.rows.num_rows, np.int64), np.empty(part.rows.num_rows, np.int64)
        first, last = -kernel.FAR if start is None else start, kernel.FAR if end is None else end
        kernel.within(self._distances(part.rows), part.starts, part.ends, first, last, low, high)
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
        self, part: Partitions, low: np.ndarray, high: np.ndarray, wanted: np.ndarray, before: Before | None
    ) -> list[pa.Array]:
        # COLLECT_LIST and the like: merging blocks would copy their values again and again
        if self._gathers:
            return self._gathered(part, low, high, wanted, before)
        count = part.rows.num_rows
        # A sparse table: slot i of `blocks` aggregates rows i .. i + size - 1, for size 1, 2, 4, ..
        blocks, merged = self.accumulators.fresh(), self.accumulators.fresh()
        blocks.reserve(count)
        blocks.add(np.arange(count), part.rows)
        merged.reserve(count)
        # the next row of each frame that is not in its result yet
        at = low.copy()
        # UNBOUNDED PRECEDING: the rows of earlier watermarks are one accumulator of the partition
        if before is not None and self.frame.start is None:
            at = np.maximum(low, before.first)
            merged.merge(wanted, before.accumulators, part.slots[wanted])
        # A frame of 13 rows is one block of 1, one of 4 and one of 8: the bits of its length.
        lengths = np.zeros(count, np.int64)
        lengths[wanted] = np.maximum(high - at, 0)[wanted]
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
        return merged.results(wanted)

    def _gathered(
        self, part: Partitions, low: np.ndarray, high: np.ndarray, wanted: np.ndarray, before: Before | None
    ) -> list[pa.Array]:
        """Aggregate the rows of each frame, as many frames at once as fit. For aggregates that store values,
        a block costs its rows.
        """
        # UNBOUNDED PRECEDING: the values of earlier watermarks are in the accumulators
        from_before = before if before is not None and self.frame.start is None else None
        low = low if from_before is None else np.maximum(low, from_before.first)
        lengths = np.maximum(high - low, 0)[wanted]
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
            merged.add(owners, part.rows.take(array_of(low[rows][owners] + nth)))
            if from_before is not None:
                merged.merge(np.arange(rows.size), from_before.accumulators, part.slots[rows])
            columns.append(merged.results(np.arange(rows.size)))
            start = end
        return [pa.concat_arrays(parts) for parts in zip(*columns, strict=True)]

    def _value_at_offset(
        self, call: AggregateCall, part: Partitions, low: np.ndarray, high: np.ndarray, wanted: np.ndarray
    ) -> pa.Array:
        """The value of one row at an offset (LAG, LEAD, FIRST_VALUE, ..)."""
        values = self._arguments[call](part.rows)
        # the row so many rows away in the partition, whatever the frame is; without one the third argument
        if call.function in ("lag", "lead"):
            distance, fallback = call.args[1], call.args[2]
            assert (
                isinstance(distance, Literal)
                and isinstance(distance.value, int)
                and isinstance(fallback, Literal)
            )
            at = wanted + (distance.value if call.function == "lead" else -distance.value)
            known = (at >= part.starts[wanted]) & (at < part.ends[wanted])
            values_there = values.take(array_of(np.where(known, at, 0), ~known))
            if fallback.value is None:
                return values_there
            return pc.if_else(array_of(known), values_there, pa.scalar(fallback.value, to_arrow(call.type)))
        # an empty frame has no first and no last value: NULL
        known = (low < high)[wanted]
        at = (low if call.function == "first_value" else high - 1)[wanted]
        return values.take(array_of(np.where(known, at, 0), ~known))
