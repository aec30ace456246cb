"""ExpiringJoinSide: a side of an interval join. Its rows have deadlines, after which they match nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.time_to_live import Deadlines


class ExpiringJoinSide(JoinSide):
    """``deadlines``: positions of columns and microseconds to add, the least sum is a row's deadline.
    ``lasting``: a column and microseconds. A row is stored until that time, whatever its deadlines, because
    it may still be retracted. None when rows are never retracted.

    Deadlines are derived from the rows, so snapshots are those of any join side.
    """

    def __init__(
        self,
        schema: pa.Schema,
        key_columns: Sequence[int],
        keys: KeyIndex,
        max_parallelism: int,
        deadlines: Sequence[tuple[int, int]],
        lasting: tuple[int, int] | None,
        *,
        retracting: bool,
        counts: bool,
        lates: bool,
    ) -> None:
        self._deadlines = list(deadlines)
        self._lasting = lasting
        super().__init__(
            schema, key_columns, keys, max_parallelism, retracting=retracting, counts=counts, lates=lates
        )

    def clear(self) -> None:
        super().clear()
        self._coming = Deadlines()
        # By row id: the time after which the row matches nothing, microseconds.
        self._ends = np.zeros(self.store.capacity, np.int64)

    def due(self, time_us: int) -> np.ndarray:
        """Return the ids of the rows whose deadline is before ``time_us``; the caller removes them."""
        # Pairs of (deadline, id) are not removed when a row is retracted, so some are stale by now.
        times, ids = self._coming.due(time_us)
        if not ids.size:
            return ids
        # an id whose row was retracted may have been reused
        ids = ids[(self.store.weights(ids) != 0) & (self._ends[ids] == times)]
        # A row that was retracted and added again with the same id and deadline is in the list twice.
        return np.unique(ids) if self.retracting else ids

    def _index(self, ids: np.ndarray, rows: pa.RecordBatch, slots: np.ndarray, matched: np.ndarray) -> None:
        super()._index(ids, rows, slots, matched)
        if self._ends.size < self.store.capacity:
            self._ends = grown(self._ends, self.store.capacity)
        ends = self._ends_of(rows)
        self._ends[ids] = ends
        self._coming.add(ends, ids)

    def last_met(self, ids: np.ndarray) -> np.ndarray:
        """Return the last times of the other side that rows can match."""
        return (
            self._ends[ids]
            if self._lasting is None
            # With ``lasting`` a row stays longer than it matches: its true deadlines are computed again.
            else least_deadlines(self.store.take(ids), self._deadlines)
        )

    def _ends_of(self, rows: pa.RecordBatch) -> np.ndarray:
        ends = least_deadlines(rows, self._deadlines)
        if self._lasting is not None:
            column, offset_us = self._lasting
            ends = np.maximum(ends, col.words(rows.column(column)) + offset_us)
        return ends


def least_deadlines(rows: pa.RecordBatch, deadlines: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the least of some columns of times, each with microseconds added, of each row."""
    column, offset_us = deadlines[0]
    # The condition `o.t BETWEEN i.t AND i.t + INTERVAL 1 HOUR` gives one pair for each bound on the other
    # side.
    ends = col.words(rows.column(column)) + offset_us
    for column, offset_us in deadlines[1:]:
        ends = np.minimum(ends, col.words(rows.column(column)) + offset_us)
    return ends
