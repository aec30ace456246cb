"""Variance and standard deviation, from sums kept to 32 digits: STDDEV_SAMP, STDDEV_POP, VAR_SAMP,
VAR_POP.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.aggregates import variance as kernel
from penstock.engine.state.aggregates.accumulator import FloatPart


class MomentsPart(FloatPart):
    """Sums of values and of their squares. Table: see ``penstock.engine.kernels.aggregates.variance``."""

    def __init__(self) -> None:
        super().__init__(6)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        kernel.add(slots, _doubles(values), weights, self.table.view(np.float64))

    def merge(self, into: np.ndarray, other: MomentsPart, slots: np.ndarray) -> None:
        kernel.merge(into, slots, other.table.view(np.float64), self.table.view(np.float64))

    def variance(self, state: np.ndarray, *, sample: bool) -> pa.Array:
        """Return VAR_SAMP (NULL for fewer than two values) or VAR_POP (NULL for none)."""
        fewest = 1 if sample else 0
        numbers = state.view(np.float64)
        count, odd = numbers[kernel.COUNT], numbers[kernel.ODD]
        distances = np.empty(count.size, np.float64)
        kernel.distances(numbers, distances)
        with np.errstate(divide="ignore", invalid="ignore"):
            result = np.where(odd > 0, np.nan, distances / (count - fewest))
        return pa.array(result, mask=count + odd <= fewest, from_pandas=False)

    def deviation(self, state: np.ndarray, *, sample: bool) -> pa.Array:
        """Return STDDEV_SAMP or STDDEV_POP."""
        return pc.sqrt(self.variance(state, sample=sample))


def _doubles(values: pa.Array) -> np.ndarray:
    """Return any numbers as float64."""
    return col.floats(values if pa.types.is_floating(values.type) else values.cast(pa.float64()))
