"""Moments: STDDEV_*, VAR_*, SKEWNESS, KURTOSIS of one column; CORR, COVAR_* and REGR_* of two.

All are computed from sums of powers and products with 32 digits. Retracted fourth powers would leave more
rounding error than what remains is worth: under retraction a ValueBag computes SKEWNESS and KURTOSIS.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.aggregates import moments as kernel
from penstock.engine.state.aggregates.accumulator import FloatPart


class MomentsPart(FloatPart):
    """Sums of values and of their squares. Table: see ``penstock.engine.kernels.aggregates.moments``."""

    def __init__(self) -> None:
        super().__init__(6)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        kernel.add_squares(slots, _doubles(values), weights, self.table.view(np.float64))

    def merge(self, into: np.ndarray, other: MomentsPart, slots: np.ndarray) -> None:
        kernel.merge_squares(into, slots, other.table.view(np.float64), self.table.view(np.float64))

    def variance(self, state: np.ndarray, *, sample: bool) -> pa.Array:
        """Return VAR_SAMP (NULL for fewer than two values) or VAR_POP (NULL for none)."""
        fewest = 1 if sample else 0
        numbers = state.view(np.float64)
        count, odd = numbers[kernel.COUNT], numbers[kernel.SQUARES_ODD]
        distances = np.empty(count.size, np.float64)
        kernel.squared_distances(numbers, distances)
        with np.errstate(divide="ignore", invalid="ignore"):
            # VAR_SAMP divides by n - 1; an infinite or NaN value makes the result NaN.
            result = np.where(odd > 0, np.nan, distances / (count - fewest))
        # ``odd`` values count as values: one NaN is not NULL.
        return pa.array(result, mask=count + odd <= fewest, from_pandas=False)

    def deviation(self, state: np.ndarray, *, sample: bool) -> pa.Array:
        """Return STDDEV_SAMP or STDDEV_POP."""
        return pc.sqrt(self.variance(state, sample=sample))


def _doubles(values: pa.Array) -> np.ndarray:
    """Return any numbers as float64."""
    return col.floats(values if pa.types.is_floating(values.type) else values.cast(pa.float64()))


class ShapePart(FloatPart):
    """The sums of four powers. Table: see ``penstock.engine.kernels.aggregates.moments``."""

    def __init__(self) -> None:
        super().__init__(kernel.POWERS_WIDTH)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        kernel.add_powers(slots, col.floats(values), weights, self.table.view(np.float64))

    def merge(self, into: np.ndarray, other: ShapePart, slots: np.ndarray) -> None:
        kernel.merge_powers(into, slots, other.table.view(np.float64), self.table.view(np.float64))

    def of(self, function: str, state: np.ndarray) -> pa.Array:
        """Return ``skewness`` or ``kurtosis``, NULL where values do not vary."""
        numbers = state.view(np.float64)
        count, odd = numbers[kernel.COUNT], numbers[kernel.ODD]
        second, third, fourth = (np.empty(count.size) for _ in range(3))
        kernel.central_powers(numbers, second, third, fourth)
        return array_of(
            np.where(odd > 0, np.nan, shape(function, count, second, third, fourth)),
            # No value, or all equal: NULL.
            (odd <= 0) & (second <= 0),
        )


def shape(
    function: str, count: np.ndarray, second: np.ndarray, third: np.ndarray, fourth: np.ndarray
) -> np.ndarray:
    """Return ``skewness`` or ``kurtosis`` from sums of powers of the distances from the mean."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Kurtosis is the excess over that of a normal distribution, 3.
        return (
            np.sqrt(count) * third / np.sqrt(second**3)
            if function == "skewness"
            else count * fourth / (second * second) - 3.0
        )


class PairPart(FloatPart):
    """Sums over pairs (y, x). Table: see ``penstock.engine.kernels.aggregates.moments``."""

    def __init__(self) -> None:
        super().__init__(kernel.PRODUCTS_WIDTH)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert isinstance(values, pa.StructArray)
        # (y, x), in the order of the SQL arguments.
        ys, xs = values.flatten()
        kernel.add_products(slots, col.floats(ys), col.floats(xs), weights, self.table.view(np.float64))

    def merge(self, into: np.ndarray, other: PairPart, slots: np.ndarray) -> None:
        kernel.merge_products(into, slots, other.table.view(np.float64), self.table.view(np.float64))

    def of(self, function: str, state: np.ndarray) -> pa.Array:
        """Return an aggregate of pairs (y, x), NULL where it is not defined; NaN where a number is not
        finite.
        """
        numbers = state.view(np.float64)
        count, odd = numbers[kernel.COUNT], numbers[kernel.ODD] > 0
        syy, sxx, sxy = (np.empty(count.size) for _ in range(3))
        kernel.central_products(numbers, syy, sxx, sxy)
        # A sum is its high and its low part.
        y, x = numbers[2] + numbers[3], numbers[4] + numbers[5]
        with np.errstate(divide="ignore", invalid="ignore"):
            values, undefined = _PAIRS[function](count, y, x, syy, sxx, sxy)
        # Infinities and NaN decide before "not defined".
        return array_of(np.where(odd, np.nan, values), ~odd & (undefined | (count <= 0)))


ValuesAndUndefined = tuple[np.ndarray, np.ndarray]


def _corr(
    n: np.ndarray, y: np.ndarray, x: np.ndarray, syy: np.ndarray, sxx: np.ndarray, sxy: np.ndarray
) -> ValuesAndUndefined:
    # Rounding may put the quotient just beyond 1.
    return np.clip(sxy / np.sqrt(syy) / np.sqrt(sxx), -1.0, 1.0), (syy <= 0) | (sxx <= 0)


def _r2(
    n: np.ndarray, y: np.ndarray, x: np.ndarray, syy: np.ndarray, sxx: np.ndarray, sxy: np.ndarray
) -> ValuesAndUndefined:
    # A constant y is explained fully.
    return np.where(syy <= 0, 1.0, sxy / sxx * (sxy / syy)), sxx <= 0


def _intercept(
    n: np.ndarray, y: np.ndarray, x: np.ndarray, syy: np.ndarray, sxx: np.ndarray, sxy: np.ndarray
) -> ValuesAndUndefined:
    return (y - sxy / sxx * x) / n, sxx <= 0


_PAIRS = {
    "corr": _corr,
    "covar_pop": lambda n, y, x, syy, sxx, sxy: (sxy / n, n <= 0),
    "covar_samp": lambda n, y, x, syy, sxx, sxy: (sxy / (n - 1), n <= 1),
    "regr_avgx": lambda n, y, x, syy, sxx, sxy: (x / n, n <= 0),
    "regr_avgy": lambda n, y, x, syy, sxx, sxy: (y / n, n <= 0),
    "regr_sxx": lambda n, y, x, syy, sxx, sxy: (sxx, n <= 0),
    "regr_syy": lambda n, y, x, syy, sxx, sxy: (syy, n <= 0),
    "regr_sxy": lambda n, y, x, syy, sxx, sxy: (sxy, n <= 0),
    "regr_slope": lambda n, y, x, syy, sxx, sxy: (sxy / sxx, sxx <= 0),
    "regr_intercept": _intercept,
    "regr_r2": _r2,
}
"""The value of each aggregate from count, sums of y and x, sums of squared distances and of their products;
and where it is not defined.
"""
