"""BIT_AND, BIT_OR, BIT_XOR: bits are united under inserts, and counted one by one under retraction."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.aggregates import bitwise as kernel
from penstock.engine.state.aggregates.accumulator import TablePart

# (64, 1): shifts that put a row of bits back into words.
_BITS = np.arange(64, dtype=np.uint64)[:, np.newaxis]


class UnitedBits(TablePart):
    """Bits under inserts. Table: see ``penstock.engine.kernels.aggregates.bitwise.unite``."""

    def __init__(self) -> None:
        super().__init__(4)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        kernel.unite(slots, col.words(values), weights, self.table)

    def merge(self, into: np.ndarray, other: UnitedBits, slots: np.ndarray) -> None:
        kernel.merge_united(into, slots, other.table, self.table)

    def of(self, function: str, state: np.ndarray, kind: pa.DataType) -> pa.Array:
        """Return ``bit_and``, ``bit_or`` or ``bit_xor``, NULL over no values."""
        words = {
            # AND: the bits that no value lacks.
            "bit_or": state[kernel.SOME],
            "bit_and": ~state[kernel.SOME_LACK],
            "bit_xor": state[kernel.ODD],
        }[function]
        return col.array_of_words(
            np.ascontiguousarray(words), (state[kernel.COUNT] != 0).view(np.uint8), kind
        )


class CountedBits(TablePart):
    """Bits under retraction. Table: how many values have each of the 64 bits, then how many values there
    are.
    """

    def __init__(self) -> None:
        super().__init__(65)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        kernel.count(slots, col.words(values), weights, self.table)

    def merge(self, into: np.ndarray, other: CountedBits, slots: np.ndarray) -> None:
        kernel.merge_counts(into, slots, other.table, self.table)

    def of(self, function: str, state: np.ndarray, kind: pa.DataType) -> pa.Array:
        """Return ``bit_and``, ``bit_or`` or ``bit_xor``, NULL over no values."""
        counts, total = state[:64], state[64]
        # (64, slots): whether each bit is in the result.
        having = {"bit_or": counts > 0, "bit_and": counts == total, "bit_xor": (counts & 1) == 1}[function]
        words = np.bitwise_or.reduce(having.astype(np.uint64) << _BITS, axis=0).view(np.int64)
        return col.array_of_words(words, (total != 0).view(np.uint8), kind)
