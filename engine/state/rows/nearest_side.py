"""NearestSide: the rows of one side of a nearest join, also in the order of their value within each key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.ordered_values import OrderedValues, Renumber
from penstock.engine.state.index.sorted_runs import SortedRuns
from penstock.engine.state.rows.join_side import JoinSide
from penstock.engine.state.time_to_live import LastWrites

_LEAST = np.iinfo(np.int64).min


class NearestSide(JoinSide):
    """Rows found by key slot and by the word of their value, which is never NULL. A row is in ``runs`` while
    its weight is above zero.

    ``latest``: words ascend with the values, otherwise they descend. ``shift`` is added to each word. Of
    distinct rows of one word the first by ``ties`` counts, which the join decides. ``ordered``, of both
    sides: the words of values that are no words.
    """

    def __init__(
        self,
        schema: pa.Schema,
        key_columns: Sequence[int],
        value_column: int,
        keys: KeyIndex,
        max_parallelism: int,
        *,
        latest: bool,
        shift: int,
        retracting: bool,
        writes: LastWrites | None = None,
        ordered: OrderedValues | None = None,
    ) -> None:
        self._value_column, self._latest, self._shift = value_column, latest, shift
        self._ordered = ordered
        if ordered is not None:
            ordered.followers.append(self._renumber)
        super().__init__(
            schema,
            key_columns,
            keys,
            max_parallelism,
            retracting=retracting,
            counts=False,
            writes=writes,
            by_key=True,
        )

    def clear(self) -> None:
        super().clear()
        self.runs = SortedRuns()
        self._were_shown = np.zeros(0, np.bool_)

    def words(self, rows: pa.RecordBatch) -> np.ndarray:
        """Return the words of rows. One that would be below all words is the least one."""
        column = rows.column(self._value_column)
        ordered = (
            np.ascontiguousarray(col.order_words(column)[:, 0])
            if self._ordered is None
            else self._ordered.words(column)
        )
        ordered = ordered if self._latest else ~ordered
        return np.where(ordered == _LEAST, _LEAST, ordered + self._shift) if self._shift else ordered

    @property
    def ordered_words(self) -> np.ndarray:
        """The words that ``ordered`` has for the values of all rows."""
        return self._as_ordered(self.runs.words)

    def _as_ordered(self, words: np.ndarray) -> np.ndarray:
        return words - self._shift if self._latest else ~(words - self._shift)

    def _renumber(self, renumber: Renumber) -> None:
        def replaced(words: np.ndarray) -> np.ndarray:
            ordered = renumber(self._as_ordered(words))
            return (ordered if self._latest else ~ordered) + self._shift

        self.runs.renumber(replaced)

    def shown(self, ids: np.ndarray) -> np.ndarray:
        """Return which stored rows (-1: none) are in ``runs``."""
        return (ids >= 0) & (self.store.weights(np.maximum(ids, 0)) > 0)

    def change(
        self, batch: Batch, slots: np.ndarray, matched: np.ndarray, arrived: np.ndarray | None = None
    ) -> np.ndarray:
        """As of every join side; the runs follow."""
        if self.retracting:
            batch, slots, matched = self._one_each(batch, slots, matched)
            self.hide(batch, slots)
        emptied = super().change(batch, slots, matched, arrived)
        if self.retracting:
            ids = self.ids_of(batch)
            new = np.flatnonzero(self.shown(ids) & ~self._were_shown)
            self.runs.add(slots[new], self.words(batch.rows)[new], ids[new])
        return emptied

    def hide(self, batch: Batch, slots: np.ndarray) -> None:
        """Take rows out of ``runs`` whose weight this batch of distinct rows brings to zero or below."""
        ids = self.ids_of(batch)
        self._were_shown = self.shown(ids)
        if batch.weights is None:
            return
        left = self.store.weights(np.maximum(ids, 0)) + batch.weights
        gone = np.flatnonzero(self._were_shown & (left <= 0))
        # twice is once: what is hidden is looked for in vain
        self.runs.remove(slots[gone], self.words(batch.rows)[gone], ids[gone])

    def _index(self, ids: np.ndarray, rows: pa.RecordBatch, slots: np.ndarray, matched: np.ndarray) -> None:
        super()._index(ids, rows, slots, matched)
        if not self.retracting:
            self.runs.add(slots, self.words(rows), ids)

    def forget_keys(self, slots: np.ndarray) -> None:
        """Drop all rows of distinct keys."""
        positions, ids = self.links.expand(slots)
        shown = self.shown(ids)
        owners = slots[positions][shown]
        for first, last in cut(self.store.sizes(ids[shown]), LIMITS.piece_rows, LIMITS.piece_bytes):
            some = ids[shown][first:last]
            self.runs.remove(owners[first:last], self.words(self.store.take(some)), some)
        self.remove(ids)
