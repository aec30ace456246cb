"""What numbers are like beyond mean and spread, and what two columns have in common: SKEWNESS, KURTOSIS;
CORR, COVAR_*, REGR_*.

Fourth powers of numbers that were taken back would leave more behind than the rest has: under retraction a
ValueBag gives SKEWNESS and KURTOSIS.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.aggregates import covariance, higher_moments
from penstock.engine.state.aggregates.accumulator import FloatPart


class ShapePart(FloatPart):
    """The sums of four powers. Table: see ``penstock.engine.kernels.aggregates.higher_moments``."""

    def __init__(self) -> None:
        super().__init__(higher_moments.WIDTH)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        higher_moments.add(slots, col.floats(values), weights, self.table.view(np.float64))

    def merge(self, into: np.ndarray, other: ShapePart, slots: np.ndarray) -> None:
        higher_moments.merge(into, slots, other.table.view(np.float64), self.table.view(np.float64))

    def of(self, function: str, state: np.ndarray) -> pa.Array:
        """Return ``skewness`` or ``kurtosis``, NULL where values do not vary."""
        numbers = state.view(np.float64)
        count, odd = numbers[higher_moments.COUNT], numbers[higher_moments.ODD]
        second, third, fourth = (np.empty(count.size) for _ in range(3))
        higher_moments.centred(numbers, second, third, fourth)
        return array_of(
            np.where(odd > 0, np.nan, shape(function, count, second, third, fourth)),
            (odd <= 0) & (second <= 0),
        )


def shape(
    function: str, count: np.ndarray, second: np.ndarray, third: np.ndarray, fourth: np.ndarray
) -> np.ndarray:
    """Return ``skewness`` or ``kurtosis`` from sums of powers of the distances from the mean."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return (
            np.sqrt(count) * third / np.sqrt(second**3)
            if function == "skewness"
            else count * fourth / (second * second) - 3.0
        )


class PairPart(FloatPart):
    """Sums over pairs (y, x). Table: see ``penstock.engine.kernels.aggregates.covariance``."""

    def __init__(self) -> None:
        super().__init__(covariance.WIDTH)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert isinstance(values, pa.StructArray)
        ys, xs = values.flatten()
        covariance.add(slots, col.floats(ys), col.floats(xs), weights, self.table.view(np.float64))

    def merge(self, into: np.ndarray, other: PairPart, slots: np.ndarray) -> None:
        covariance.merge(into, slots, other.table.view(np.float64), self.table.view(np.float64))

    def of(self, function: str, state: np.ndarray) -> pa.Array:
        """Return an aggregate of pairs (y, x), NULL where it is not defined; NaN where a number is not
        finite.
        """
        numbers = state.view(np.float64)
        count, odd = numbers[covariance.COUNT], numbers[covariance.ODD] > 0
        syy, sxx, sxy = (np.empty(count.size) for _ in range(3))
        covariance.centred(numbers, syy, sxx, sxy)
        y, x = numbers[2] + numbers[3], numbers[4] + numbers[5]
        with np.errstate(divide="ignore", invalid="ignore"):
            values, undefined = _PAIRS[function](count, y, x, syy, sxx, sxy)
        return array_of(np.where(odd, np.nan, values), ~odd & (undefined | (count <= 0)))


Found = tuple[np.ndarray, np.ndarray]


def _corr(
    n: np.ndarray, y: np.ndarray, x: np.ndarray, syy: np.ndarray, sxx: np.ndarray, sxy: np.ndarray
) -> Found:
    return np.clip(sxy / np.sqrt(syy) / np.sqrt(sxx), -1.0, 1.0), (syy <= 0) | (sxx <= 0)


def _r2(
    n: np.ndarray, y: np.ndarray, x: np.ndarray, syy: np.ndarray, sxx: np.ndarray, sxy: np.ndarray
) -> Found:
    return np.where(syy <= 0, 1.0, sxy / sxx * (sxy / syy)), sxx <= 0


def _intercept(
    n: np.ndarray, y: np.ndarray, x: np.ndarray, syy: np.ndarray, sxx: np.ndarray, sxy: np.ndarray
) -> Found:
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
"""What each gives for count, sums of y and x, sums of squared distances and of their products; and where
it is not defined.
"""
