"""The sum of a changelog: which rows are there, and how often."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.api.row_pieces import batches_of, take_rows
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import summed


class Fold:
    """The sum of a changelog: rows and how often each is there. Rows keep the order in which they first
    came.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._folded = pa.Table.from_batches([], schema)
        self._counts = np.empty(0, np.int64)
        self._pending: list[Batch] = []
        self._pending_rows = 0
        self._positive = True

    def add(self, batch: Batch) -> None:
        """Take a piece of the changelog; it is summed when there is as much new as old, so the work stays
        linear.
        """
        self._pending.append(batch)
        self._pending_rows += batch.num_rows
        self._positive = self._positive and batch.weights is None
        if not self._positive and self._pending_rows > max(100_000, self._folded.num_rows):
            self._consolidate()

    def weighted(self) -> list[Batch]:
        """Return the rows that are there now with their weights, those below zero too, in as few batches
        as Arrow can hold them in: none for none.
        """
        self._consolidate()
        found, first = [], 0
        for rows in batches_of(self._folded):
            counts = self._counts[first : first + rows.num_rows]
            found.append(Batch(rows, None if (counts == 1).all() else counts))
            first += rows.num_rows
        return found

    def rows(self) -> pa.Table:
        """Return the rows that are there now, each as often as its weight says."""
        self._consolidate()
        if (self._counts == 1).all():
            return self._folded
        return take_rows(self._folded, np.repeat(np.arange(len(self._counts)), np.maximum(self._counts, 0)))

    def _consolidate(self) -> None:
        if not self._pending:
            return
        tables = [
            self._folded,
            *(pa.Table.from_batches([batch.rows], self._schema) for batch in self._pending),
        ]
        counts = np.concatenate([self._counts, *(weights_of(batch) for batch in self._pending)])
        self._pending, self._pending_rows = [], 0
        rows = pa.concat_tables(tables)
        if self._positive:
            self._folded, self._counts = rows, counts
        else:
            self._folded, self._counts = summed(rows, counts)


def negated(batch: Batch) -> Batch:
    """Return the batch that takes back what a batch gives."""
    return Batch(batch.rows, -weights_of(batch))


def weights_of(batch: Batch) -> np.ndarray:
    """Return the weights of a batch, all +1 when it carries none."""
    return np.ones(batch.num_rows, np.int64) if batch.weights is None else batch.weights
