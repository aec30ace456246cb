"""RowDerivations: how often each row was derived in each iteration of a recursive query, and the first
iteration that has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.catalog.types import BIGINT
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.state.aggregates.accumulators import Accumulators
from penstock.engine.state.groups.group_state import GroupState
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import MultiIndex
from penstock.engine.state.index.slot_sets import DistinctSlots
from penstock.engine.state.index.word_index import grown
from penstock.planner.expressions.nodes import AggregateCall

NEVER = np.iinfo(np.int64).max
"""The first iteration of a row that no iteration has."""

_COUNT = AggregateCall("count", (), BIGINT, False)


class RowDerivations(GroupState):
    """Groups are pairs of a row and an iteration, with the number of derivations. Rows have slots of their
    own, in ``rows``; ``first`` is their first iteration as it was emitted, by these slots.

    A restored row is in the first of its iterations: a snapshot is taken only when all are emitted.
    """

    def __init__(self, types: Sequence[pa.DataType], max_parallelism: int) -> None:
        counts = Accumulators((_COUNT,), insert_only=False)
        super().__init__([*types, pa.int64()], counts, max_parallelism)
        self.rows = KeyIndex(types)
        self.first = np.zeros(0, np.int64)
        self._distinct = DistinctSlots()
        # by the slot of a pair: its iteration; a row to its pairs
        self._iterations = np.zeros(0, np.int64)
        self._pairs = MultiIndex()

    def add(self, columns: Sequence[pa.Array], weights: np.ndarray, iteration: int) -> np.ndarray:
        """Count derivations of rows in one iteration; return the slots of these rows, each once."""
        iterations = np.full(weights.size, iteration)
        pairs = self.slots([*columns, array_of(iterations)], weights.size)
        rows = self._linked(columns, pairs, iterations)
        touched = self._distinct.of(pairs, self.keys.capacity)
        self.mark(touched)
        names = [str(i) for i in range(len(columns))]
        self.accumulators.add(pairs, pa.RecordBatch.from_arrays(list(columns), names), weights)
        empty = touched[self.accumulators.last_counts(touched) == 0]
        self._pairs.unlink(empty)
        self.remove(empty)
        return np.unique(rows)

    def _linked(self, columns: Sequence[pa.Array], pairs: np.ndarray, iterations: np.ndarray) -> np.ndarray:
        """Give rows their slots, and link each pair to its row."""
        rows = self.rows.lookup_or_insert(columns, pairs.size)
        if self.rows.capacity > self.first.size:
            known = self.first.size
            self.first = grown(self.first, self.rows.capacity)
            self.first[known:] = NEVER
        if self.keys.capacity > self._iterations.size:
            self._iterations = grown(self._iterations, self.keys.capacity)
        self._iterations[pairs] = iterations
        self._pairs.link(rows, pairs)
        return rows

    def earliest(self, rows: np.ndarray) -> np.ndarray:
        """Return the first iteration that derives each row, ``NEVER`` where none does."""
        positions, pairs = self._pairs.expand(rows)
        derived = self.accumulators.last_counts(pairs) > 0
        earliest = np.full(rows.size, NEVER)
        np.minimum.at(earliest, positions[derived], self._iterations[pairs[derived]])
        return earliest

    def forget(self, rows: np.ndarray) -> None:
        """Free the slots of those distinct rows that no iteration derives."""
        self.rows.remove(rows[self._pairs.counts(rows) == 0])

    def restore(self, part: pa.Table) -> None:
        super().restore(part)
        *columns, iterations = (
            part.column(f"k{i}").combine_chunks()
            for i in range(part.num_columns)
            if f"k{i}" in part.column_names
        )
        pairs = self.slots([*columns, iterations], part.num_rows)
        rows = np.unique(self._linked(columns, pairs, iterations.to_numpy()))
        self.first[rows] = self.earliest(rows)
