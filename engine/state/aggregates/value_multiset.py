"""ValueBag: all values of a slot with their counts.

For COLLECT_LIST, LISTAGG, PERCENTILE, MODE and HISTOGRAM, and for SKEWNESS and KURTOSIS under retraction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.aggregates.first_last import SlotOrder
from penstock.engine.state.aggregates.moments import shape
from penstock.engine.state.aggregates.value_counts import CountedPart
from penstock.planner.expressions.nodes import Direction


@dataclass(frozen=True, eq=False)
class SortedBag:
    """Different values of ``size`` slots in order: the slot's position, the columns of the value, its
    count; ``counts`` are above 0.
    """

    size: int
    positions: np.ndarray
    columns: list[pa.Array]
    counts: np.ndarray

    @property
    def values(self) -> pa.Array:
        """The values without what they are ordered by."""
        return self.columns[0]

    def once(self) -> SortedBag:
        """Return the bag with each value once."""
        return SortedBag(self.size, self.positions, self.columns, np.ones(self.counts.size, np.int64))

    def totals(self) -> np.ndarray:
        """Return how many values each slot has."""
        sums = np.zeros(self.size, np.int64)
        np.add.at(sums, self.positions, self.counts)
        return sums

    def rows(self) -> tuple[np.ndarray, list[pa.Array]]:
        """Return all columns, a value as often as it is there, and where each slot's rows begin and the
        last one's end (int64).
        """
        offsets = np.zeros(self.size + 1, np.int64)
        np.cumsum(self.totals(), out=offsets[1:])
        # No value repeats: the columns are the rows.
        if (self.counts == 1).all():
            return offsets, self.columns
        repeated = array_of(np.repeat(np.arange(self.counts.size), self.counts))
        return offsets, [column.take(repeated) for column in self.columns]

    def lists(self, kind: pa.DataType) -> pa.Array:
        """Return the values of each slot as a list."""
        values = (
            self.values.take(array_of(np.repeat(np.arange(self.counts.size), self.counts)))
            if (self.counts != 1).any()
            else self.values
        )
        return pa.Array.from_buffers(kind, self.size, [None, _offsets(self.totals())], children=[values])

    def joined(self, separator: str) -> pa.Array:
        """Return the texts of each slot as one, NULL over none."""
        texts = pc.binary_join(self.lists(pa.list_(self.values.type)), separator)
        # Joining no texts gives an empty one; SQL says NULL.
        return pc.if_else(array_of(self.totals() > 0), texts, pa.scalar(None, texts.type))

    def histogram(self, kind: pa.DataType) -> pa.Array:
        """Return how often each value is there as a map, NULL over none."""
        entries = pa.StructArray.from_arrays([self.values, array_of(self.counts)], fields=list(_entry(kind)))
        lengths = np.bincount(self.positions, minlength=self.size)
        return pa.Array.from_buffers(
            # Empty lists are NULL.
            kind,
            self.size,
            [col.bitmap((lengths > 0).view(np.uint8)), _offsets(lengths)],
            children=[entries],
        )

    def mode(self) -> pa.Array:
        """Return each slot's most frequent value, the first of several, NULL over none."""
        most = np.zeros(self.size, np.int64)
        np.maximum.at(most, self.positions, self.counts)
        at = np.full(self.size, -1)
        # In reverse, so that of several most frequent values the first is written last.
        frequent = np.flatnonzero(self.counts == most[self.positions])[::-1]
        at[self.positions[frequent]] = frequent
        return self.values.take(array_of(np.maximum(at, 0), at < 0))

    def ranked(self, share: float) -> pa.Array:
        """Return the smallest value that at least ``share`` of each slot's values do not exceed, NULL over
        none.
        """
        totals = self.totals()
        return self.values.take(
            # PERCENTILE_DISC: the rank is at least the first.
            array_of(
                self._at(np.maximum(np.ceil(share * totals), 1).astype(np.int64) - 1, totals), totals == 0
            )
        )

    def percentile(self, share: float) -> pa.Array:
        """Return PERCENTILE_CONT: the value at rank ``share * (n - 1)`` of each slot, interpolated between
        two neighbours; NULL over none.
        """
        totals = self.totals()
        # PERCENTILE_CONT: a rank between two values, which are weighted by their distance from it.
        exact_rank = share * np.maximum(totals - 1, 0)
        low, high = np.floor(exact_rank), np.ceil(exact_rank)
        # A slot without values reads position 0, which must exist.
        numbers = col.floats(self.values) if len(self.values) else np.zeros(1)
        first, second = (numbers[self._at(rank.astype(np.int64), totals)] for rank in (low, high))
        with np.errstate(invalid="ignore", over="ignore"):
            between = (high - exact_rank) * first + (exact_rank - low) * second
        # Equal neighbours, infinities among them, are not computed with: inf - inf is NaN.
        equal = (first == second) | (low == high)
        return array_of(np.where(equal, first, between), totals == 0)

    def shape(self, function: str) -> pa.Array:
        """Return ``skewness`` or ``kurtosis``, NULL where values do not vary, NaN where one is not finite."""
        numbers, totals = col.floats(self.values), self.totals()
        finite = np.isfinite(numbers)
        odd = np.bincount(self.positions[~finite], minlength=self.size) > 0
        numbers = np.where(finite, numbers, 0.0)
        # Two passes: the mean, then powers of the distances from it, which lose no digits as sums of powers
        # do.
        mean = self._sums(numbers) / np.maximum(totals, 1)
        distances = numbers - mean[self.positions]
        powers = [self._sums(distances**power) for power in (2, 3, 4)]
        # Different values are stored once, so more than one entry means that they vary.
        varies = np.bincount(self.positions, minlength=self.size) > 1
        return array_of(np.where(odd, np.nan, shape(function, totals, *powers)), ~odd & ~varies)

    def _sums(self, numbers: np.ndarray) -> np.ndarray:
        return np.bincount(self.positions, weights=numbers * self.counts, minlength=self.size)

    def _at(self, ranks: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Return the position of the value of each slot's rank, 0 for slots without values."""
        before = np.cumsum(totals) - totals
        # Cumulative counts over all slots: the rank within the slot plus the values of the slots before.
        entries = np.searchsorted(np.cumsum(self.counts), before + ranks, side="right")
        return np.where(totals > 0, entries, 0)


class ValueBag(CountedPart):
    """Values are structs where an order has keys: the value, then the keys."""

    def __init__(self, kind: pa.DataType, directions: Sequence[Direction]) -> None:
        super().__init__(kind)
        self._order = SlotOrder(
            [field.type for field in kind] if pa.types.is_struct(kind) else [kind], directions
        )

    def sizes(self, slots: np.ndarray, *, once: bool, between: int) -> np.ndarray:
        """Return how many bytes the values of each slot are together, int64, without building a value.
        ``once``: count each value once, not as often as it is there. ``between``: the bytes of a separator.
        """
        positions, entries = self._counts.entries(slots)
        # A retraction ahead of its row has a count below 0: it is no value yet.
        counts = np.maximum(self._counts.counts(entries), 0)
        counts = np.minimum(counts, 1) if once else counts
        sizes = np.zeros(slots.size, np.int64)
        np.add.at(sizes, positions, counts * (self._counts.widths_of(entries) + between))
        return np.maximum(sizes - between, 0)  # none behind the last

    def sorted(self, slots: np.ndarray) -> SortedBag:
        """Return the values of slots in order."""
        positions, entries = self._counts.entries(slots)
        counts = self._counts.counts(entries)
        if (counts <= 0).any():
            present = counts > 0
            positions, entries, counts = positions[present], entries[present], counts[present]
        columns = self._counts.columns_of(entries)
        order = self._order.sorted(positions, columns)
        sorted_order = array_of(order)
        return SortedBag(
            slots.size, positions[order], [column.take(sorted_order) for column in columns], counts[order]
        )


def _offsets(lengths: np.ndarray) -> pa.Buffer:
    # 32 bits: ``check_sizes`` refuses larger values before.
    offsets = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.py_buffer(offsets)


def _entry(kind: pa.DataType) -> pa.StructType:
    return pa.struct([kind.key_field, kind.item_field])
