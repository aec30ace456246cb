"""Counts and sums: COUNT, BOOL_AND, BOOL_OR, SUM, SUM0, AVG.

Integers and decimals are summed exactly, floating-point numbers with what rounding lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.aggregates import accumulate as kernel
from penstock.engine.kernels.aggregates import int128
from penstock.engine.state.aggregates.accumulator import TablePart


class OutOfRange(Exception):
    """A sum does not fit its type. The caller raises the error for users, with the name of the call."""


class ExactSum(TablePart):
    """The exact sum of integers, or of decimals of one scale. Table: word, carries (of 2**64), count; wide:
    low, high, carries (of 2**128), count.

    ``counted``: the count is needed, for means and for sums that are NULL over no values. Without it the
    count may be left out.
    """

    def __init__(self, kind: pa.DataType, counted: bool = True) -> None:
        self._wide = col.is_wide(kind)
        self._scale = kind.scale if pa.types.is_decimal128(kind) else 0
        # Wide: low, high, carries, count. Else: word, carries and, if counted, count.
        super().__init__(4 if self._wide else 2 + counted)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        if self._wide:
            kernel.sum_pairs(slots, *col.wide_words(values), weights, self.table)
        else:
            kernel.sum_words(slots, col.words(values), weights, self.table)

    def merge(self, into: np.ndarray, other: ExactSum, slots: np.ndarray) -> None:
        merge = kernel.merge_pairs if self._wide else kernel.merge_words
        merge(into, slots, other.table, self.table)

    def _totals(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the low and high words of the sums, and the counts; raises OutOfRange past 128 bits."""
        # A carry of 2**128 is beyond every type.
        if self._wide:
            if state[2].any():
                raise OutOfRange
            return state[0], state[1], state[3]
        # The word is signed: where it is negative, 2**64 is missing in the high word.
        return state[0], (state[0] >> 63) + state[1], state[-1]

    def total(self, state: np.ndarray, kind: pa.DataType, *, null_when_empty: bool) -> pa.Array:
        """Return SUM (or SUM0) as BIGINT or DECIMAL; raises OutOfRange."""
        low, high, counts = self._totals(state)
        valid = (counts != 0).view(np.uint8) if null_when_empty and not counts.all() else col.NO_BYTES
        if pa.types.is_decimal128(kind):
            return _decimals(low, high, valid, kind)
        # More than 64 bits: no BIGINT.
        if (high != low >> 63).any():
            raise OutOfRange
        return col.array_of_words(low, valid, kind)

    def mean(self, state: np.ndarray, kind: pa.DataType) -> pa.Array:
        """Return AVG: DOUBLE of integers, DECIMAL (rounded half away from zero) of decimals; raises
        OutOfRange.
        """
        low, high, counts = self._totals(state)
        empty = counts == 0
        valid = (~empty).view(np.uint8) if empty.any() else col.NO_BYTES
        if pa.types.is_decimal128(kind):
            fits = np.empty(low.size, np.int64)
            # Digits that AVG has more than its argument.
            int128.average(low, high, counts, kind.scale - self._scale, fits)
            if not fits.all():
                raise OutOfRange
            return _decimals(low, high, valid, kind)
        # As floating point, with one rounding for each half; exact first where 64 bits suffice.
        total = low.view(np.uint64).astype(np.float64) + high.astype(np.float64) * 2.0**64
        narrow = high == low >> 63
        total[narrow] = low[narrow]
        with np.errstate(divide="ignore", invalid="ignore"):
            return array_of(total / counts, empty)


def _decimals(low: np.ndarray, high: np.ndarray, valid: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return 128-bit numbers as decimals; raises OutOfRange when one has too many digits."""
    limit = 10**kind.precision
    negative = high < 0
    # The absolute value, as two unsigned words.
    size_low = np.where(negative, -low, low).view(np.uint64)
    size_high = np.where(negative, ~high + (low == 0), high).view(np.uint64)
    limit_low, limit_high = np.uint64(limit & (2**64 - 1)), np.uint64(limit >> 64)
    beyond = (size_high > limit_high) | ((size_high == limit_high) & (size_low >= limit_low))
    # A NULL may have any words.
    if (beyond if valid.size == 0 else beyond & (valid == 1)).any():
        raise OutOfRange
    return col.array_of_wide_words(low, high, valid, kind)


# The columns of a FloatSum that count infinities and NaN.
_POSITIVE, _NEGATIVE, _NAN = 3, 4, 5


class FloatSum(TablePart):
    """The sum of floating-point numbers; infinities and NaN are counted apart, so that they can be retracted.

    Table: sum, lost, count (float64 each); counts of +inf, -inf and NaN.
    """

    def __init__(self) -> None:
        super().__init__(6)

    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        # The same array seen as floats (sum, lost, count) and as integers (three counts).
        return self.table[:, :3].view(np.float64), self.table[:, 3:]

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        kernel.sum_floats(slots, col.floats(values), weights, *self._halves())

    def merge(self, into: np.ndarray, other: FloatSum, slots: np.ndarray) -> None:
        sums, odd = self._halves()
        other_sums, other_odd = other._halves()
        kernel.merge_floats(into, slots, other_sums, sums, other_odd, odd)

    def arrays(self, state: np.ndarray) -> list[pa.Array]:
        return [array_of(column) for column in (*state[:3].view(np.float64), *state[3:])]

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        super().restore(slots, [column.view(pa.int64()) for column in columns])

    def _totals(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums, lost, counts = state[:3].view(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            # An infinite sum has overflowed; its lost part is NaN.
            total = np.where(np.isfinite(sums), sums + lost, sums)
        if state[3:].any():
            # Counts of infinities and NaN above 0. The first three rows are floats, which are not read here.
            odd = state > 0
            # SQL as IEEE has it: inf and -inf together, or any NaN, make NaN
            total[odd[_POSITIVE]] = np.inf
            total[odd[_NEGATIVE]] = -np.inf
            total[odd[_NAN] | (odd[_POSITIVE] & odd[_NEGATIVE])] = np.nan
        return total, counts

    def total(self, state: np.ndarray, kind: pa.DataType, *, null_when_empty: bool) -> pa.Array:
        """Return SUM (or SUM0) as DOUBLE."""
        total, counts = self._totals(state)
        return array_of(total, (counts == 0) if null_when_empty else None)

    def mean(self, state: np.ndarray, kind: pa.DataType) -> pa.Array:
        """Return AVG as DOUBLE."""
        total, counts = self._totals(state)
        with np.errstate(divide="ignore", invalid="ignore"):
            return array_of(total / counts, counts == 0)


class CountPart(TablePart):
    """The weighted number of rows. Table: count."""

    def __init__(self) -> None:
        super().__init__(1)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        kernel.count(slots, weights, self.table)

    def merge(self, into: np.ndarray, other: CountPart, slots: np.ndarray) -> None:
        # Merging is adding the other's count as a weight.
        kernel.count(into, np.ascontiguousarray(other.table[slots, 0]), self.table)

    def count(self, state: np.ndarray) -> pa.Array:
        """Return COUNT."""
        return array_of(state[0])


class BooleanPart(TablePart):
    """The weighted numbers of FALSE and of TRUE. Table: false, true."""

    def __init__(self) -> None:
        super().__init__(2)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        kernel.count_booleans(slots, col.words(values), weights, self.table)

    def merge(self, into: np.ndarray, other: BooleanPart, slots: np.ndarray) -> None:
        for value in (0, 1):
            kernel.count_booleans(
                into, np.full(into.size, value), np.ascontiguousarray(other.table[slots, value]), self.table
            )

    def all_true(self, state: np.ndarray) -> pa.Array:
        """Return BOOL_AND, NULL over no values."""
        false, true = state
        # No FALSE: true over any TRUE. Counts below 0 come from retractions ahead of their rows.
        return array_of(false <= 0, (false == 0) & (true == 0))

    def some_true(self, state: np.ndarray) -> pa.Array:
        """Return BOOL_OR, NULL over no values."""
        false, true = state
        return array_of(true > 0, (false == 0) & (true == 0))
