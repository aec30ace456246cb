"""Counts of values, and of TRUE and FALSE: COUNT, BOOL_AND, BOOL_OR."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.aggregates import accumulate as kernel
from penstock.engine.state.aggregates.accumulator import TablePart


class CountPart(TablePart):
    """The weighted number of rows. Table: count."""

    def __init__(self) -> None:
        super().__init__(1)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        kernel.count(slots, weights, self.table)

    def merge(self, into: np.ndarray, other: CountPart, slots: np.ndarray) -> None:
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
        return array_of(false <= 0, (false == 0) & (true == 0))

    def some_true(self, state: np.ndarray) -> pa.Array:
        """Return BOOL_OR, NULL over no values."""
        false, true = state
        return array_of(true > 0, (false == 0) & (true == 0))
