"""BestKeys: a filter before a Top-N, which drops rows that cannot be among the first by their first order
key.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import truths
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.aggregates.min_max import pass_best
from penstock.planner.expressions.nodes import SortKey

# A row is compared with at most so many keys.
LIMIT_MAX = 32
_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class BestKeys:
    """Remembers the best keys of each slot. It may forget (nothing of it is in snapshots): then more rows
    pass, never fewer than must.
    """

    def __init__(self, key: SortKey, limit: int, time_zone: str) -> None:
        self._evaluate = compile_expression(key.expression, EvaluationContext(time_zone))
        self._descending, self._nulls_first = key.descending, key.nulls_first
        # (capacity, limit) words in descending order; the least word means "no row yet".
        self._best = np.full((0, limit), _LEAST, np.int64)

    @staticmethod
    def serve(kind: pa.DataType, limit: int) -> bool:
        """Return whether keys of a type have an order of words, and the limit is small enough."""
        words = pa.types.is_integer(kind) or pa.types.is_temporal(kind) or kind == pa.float64()
        return words and limit <= LIMIT_MAX

    def passed(self, rows: pa.RecordBatch, slots: np.ndarray, capacity: int) -> np.ndarray:
        """Return the positions of rows that may be among the first ``limit`` of their slot. Fewer than
        ``limit`` rows of the slot seen so far are ahead of them. Slots are below ``capacity``.
        """
        # New slots have seen no row.
        if len(self._best) < capacity:
            more = np.full((capacity - len(self._best), self._best.shape[1]), _LEAST, np.int64)
            self._best = np.concatenate([self._best, more])
        passed = np.empty(slots.size, np.uint8)
        pass_best(slots, self._words(self._evaluate(rows)), self._best, passed)
        return np.flatnonzero(passed)

    def forget(self, slots: np.ndarray) -> None:
        """Forget the keys seen of slots that other partitions will reuse."""
        # Otherwise the keys of the old partition would drop rows of the new one.
        self._best[slots[slots < len(self._best)]] = _LEAST

    def _words(self, keys: pa.Array) -> np.ndarray:
        """Return keys as words: the earlier a row sorts, the greater its word. Equal keys, equal words."""
        if keys.type == pa.float64():
            values = keys.to_numpy(zero_copy_only=False) + 0.0  # one nought, not two
            bits = values.view(np.int64)
            # flipping the lower bits of negative doubles makes their words sort as the numbers do
            words = np.where(np.isnan(values), _GREATEST, bits ^ ((bits >> 63) & _GREATEST))
        else:
            words = col.words(keys)
        # the greatest word comes first: ascending keys are complemented
        words = words if self._descending else ~words
        return (
            np.where(truths(keys.is_null()), _GREATEST if self._nulls_first else _LEAST, words)
            if keys.null_count
            else words
        )
