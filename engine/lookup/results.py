"""Probing rows with their lookup request, and the join of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.engine.api.row_pieces import LIMITS, as_one, cut, cut_pairs, row_sizes, widest_row
from penstock.engine.api.stream_elements import Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.lookup.client import Answer
from penstock.engine.state.index.key_index import KeyIndex


class Met(NamedTuple):
    """A piece of join output: indexes of probing rows, indexes into ``found``, and the looked-up rows. It
    completes the output of the rows from ``first`` to before ``last``.
    """

    at: np.ndarray
    met: np.ndarray
    found: pa.RecordBatch
    first: int
    last: int


@dataclass(eq=False)
class Asked:
    """A batch of probing rows and its lookup. ``numbers``: the index of each row's key among the distinct
    ``keys``, -1 for a NULL.

    ``known``: the cached rows, with the index of each one's key. ``answer``: the pending request, ``None``
    when there is none; ``missing``: the indexes of its keys.
    """

    batch: Batch
    numbers: np.ndarray
    keys: list[pa.Array]
    known: pa.RecordBatch
    known_at: np.ndarray
    missing: np.ndarray
    answer: Answer | None

    @property
    def done(self) -> bool:
        """Whether no request is pending."""
        return self.answer is None or self.answer.done

    def _all_rows(self) -> tuple[np.ndarray, pa.RecordBatch]:
        """Return all looked-up rows and the indexes of their keys, ascending."""
        numbers, rows = self.known_at, self.known
        if self.answer is not None and self.answer.rows is not None:
            # ``key_numbers`` are among the missing keys; ``missing`` leads back to all keys.
            numbers = np.concatenate([numbers, self.missing[self.answer.key_numbers]])
            rows = as_one([rows, self.answer.rows], rows.schema) if rows.num_rows else self.answer.rows
        # Stable: a key's rows stay in the order they were read.
        order = np.argsort(numbers, kind="stable")
        return numbers[order], rows.take(pa.array(order))

    def pairs(self) -> Iterator[Met]:
        """Yield the join output of all rows, in pieces that may be emitted at once."""
        numbers, rows = self._all_rows()
        # looked-up rows are sorted by key number: the matches of a row are the range first .. first + counts
        first = np.searchsorted(numbers, self.numbers, "left")
        # A NULL key has number -1 and no matches.
        counts = np.where(self.numbers >= 0, np.searchsorted(numbers, self.numbers, "right") - first, 0)
        widest = widest_row(self.batch.rows) + widest_row(rows)
        # pieces of bounded output, so that a key with many rows does not fill memory
        for low, high in cut(counts, counts.size, LIMITS.piece_rows):
            some = counts[low:high]
            at = np.repeat(np.arange(low, high), some)
            # the k-th match of each row: its first match plus k
            # ``cumsum - some`` is where each row's matches begin in ``at``.
            met = first[at] + np.arange(at.size) - np.repeat(np.cumsum(some) - some, some)
            sizes = partial(_pair_sizes, self.batch.rows, at, rows, met)
            # A piece without matches is still yielded: it completes its rows for a LEFT JOIN.
            bounds = list(cut_pairs(at.size, widest, sizes)) or [(0, 0)]
            done = low
            for start, end in bounds:
                # A row whose matches are cut is complete only with the last piece.
                reached = high if end == at.size else int(at[end])
                yield Met(at[start:end], met[start:end], rows, done, reached)
                done = reached


def _pair_sizes(
    rows: pa.RecordBatch, at: np.ndarray, looked_up: pa.RecordBatch, met: np.ndarray
) -> np.ndarray:
    return row_sizes(rows, at) + row_sizes(looked_up, met)


def asked(batch: Batch, keys: Sequence[int], types: Sequence[pa.DataType], rows: pa.Schema) -> Asked:
    """Return a batch with its distinct keys, all of them missing from the cache. ``rows``: the schema of the
    looked-up rows.
    """
    columns = [batch.rows.column(key) for key in keys]
    whole = without_null(columns, batch.num_rows)
    # NULL matches nothing in an equi-join, so such rows get no key.
    index = KeyIndex(types)
    numbers = np.full(batch.num_rows, -1, np.int64)
    if whole.any():
        numbers[whole] = index.lookup_or_insert(
            columns if whole.all() else [column.filter(pa.array(whole)) for column in columns]
        )
    # Slots of a new index are 0, 1, ... in order of first occurrence.
    distinct = np.arange(len(index))
    return Asked(
        batch,
        numbers,
        index.keys(distinct),
        pa.RecordBatch.from_pylist([], rows),
        np.zeros(0, np.int64),
        distinct,
        None,
    )


def without_null(columns: Sequence[pa.Array], count: int) -> np.ndarray:
    """Return which of so many rows have no NULL in these columns."""
    whole = np.ones(count, np.bool_)
    for column in columns:
        if column.null_count:
            whole &= col.validity(column).astype(np.bool_)
    return whole
