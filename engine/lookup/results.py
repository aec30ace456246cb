"""Rows on their way to what a table has for their keys, and met with it."""

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
    """A piece of what rows met: the positions of rows, of what each met among the ``found``, and those. All
    that rows from ``first`` to before ``last`` meet has come with it.
    """

    at: np.ndarray
    met: np.ndarray
    found: pa.RecordBatch
    first: int
    last: int


@dataclass(eq=False)
class Asked:
    """Rows under way. ``numbers``: of which of their distinct ``keys`` each row is, -1 where it has a NULL.
    ``known``: rows found without asking, and of which key each is. ``answer``: what is waited for, ``None``
    when nothing is; ``missing``: the numbers of the keys it is about.
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
        """Whether nothing is waited for."""
        return self.answer is None or self.answer.done

    def _all_rows(self) -> tuple[np.ndarray, pa.RecordBatch]:
        """Return all rows found and the numbers of their keys, ascending."""
        numbers, rows = self.known_at, self.known
        if self.answer is not None and self.answer.rows is not None:
            numbers = np.concatenate([numbers, self.missing[self.answer.places]])
            rows = as_one([rows, self.answer.rows], rows.schema) if rows.num_rows else self.answer.rows
        order = np.argsort(numbers, kind="stable")
        return numbers[order], rows.take(pa.array(order))

    def pairs(self) -> Iterator[Met]:
        """Yield what all rows met, in pieces that may be emitted at once."""
        numbers, rows = self._all_rows()
        first = np.searchsorted(numbers, self.numbers, "left")
        counts = np.where(self.numbers >= 0, np.searchsorted(numbers, self.numbers, "right") - first, 0)
        widest = widest_row(self.batch.rows) + widest_row(rows)
        for low, high in cut(counts, counts.size, LIMITS.piece_rows):
            some = counts[low:high]
            at = np.repeat(np.arange(low, high), some)
            met = first[at] + np.arange(at.size) - np.repeat(np.cumsum(some) - some, some)
            sizes = partial(_pair_sizes, self.batch.rows, at, rows, met)
            bounds = list(cut_pairs(at.size, widest, sizes)) or [(0, 0)]
            done = low
            for start, end in bounds:
                reached = high if end == at.size else int(at[end])
                yield Met(at[start:end], met[start:end], rows, done, reached)
                done = reached


def _pair_sizes(rows: pa.RecordBatch, at: np.ndarray, found: pa.RecordBatch, met: np.ndarray) -> np.ndarray:
    return row_sizes(rows, at) + row_sizes(found, met)


def asked(batch: Batch, keys: Sequence[int], types: Sequence[pa.DataType], rows: pa.Schema) -> Asked:
    """Return a batch with its distinct keys, none of them known and all of them missing; ``rows``: the
    columns of what is looked up.
    """
    columns = [batch.rows.column(key) for key in keys]
    whole = without_null(columns, batch.num_rows)
    index = KeyIndex(types)
    numbers = np.full(batch.num_rows, -1, np.int64)
    if whole.any():
        numbers[whole] = index.lookup_or_insert(
            columns if whole.all() else [column.filter(pa.array(whole)) for column in columns]
        )
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
