"""Equality deletes of an Iceberg table, as Flink's upserts write them: the rows of older files that have one
of these keys are deleted.

A delete applies to data files of a smaller sequence number. So of each key only its newest delete counts, and
one index serves all data files of a partition. NULL is equal to NULL, and NaN to NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# reads the columns of a file by their ids
ReadColumns = Callable[[Any, tuple[int, ...]], pa.Table]


class DeletedKeys:
    """Numbers the distinct keys of some columns from 0, and finds keys among them."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._values = [pc.unique(column) for column in columns]
        # of each column after the first: the pairs that it makes with the number of the columns before it
        self._pairs: list[np.ndarray] = []
        self.numbers = self._numbers_in(self._values[0], columns[0])
        for column, values in zip(columns[1:], self._values[1:], strict=True):
            pairs = _paired(self.numbers, self._numbers_in(values, column), len(values))
            distinct, self.numbers = np.unique(pairs, return_inverse=True)
            self._pairs.append(distinct)
        self.size = len(self._pairs[-1] if self._pairs else self._values[0])

    def find(self, columns: Sequence[pa.Array]) -> np.ndarray:
        """Return the number of each key, -1 for one that is not there."""
        numbers = self._numbers_in(self._values[0], columns[0])
        for column, values, distinct in zip(columns[1:], self._values[1:], self._pairs, strict=True):
            pairs = _paired(numbers, self._numbers_in(values, column), len(values))
            places = np.minimum(np.searchsorted(distinct, pairs), len(distinct) - 1)
            numbers = np.where(distinct[places] == pairs, places, -1)
        return numbers

    def _numbers_in(self, values: pa.Array, column: pa.Array) -> np.ndarray:
        found = pc.index_in(column, value_set=values)
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _paired(first: np.ndarray, second: np.ndarray, width: int) -> np.ndarray:
    """Return one number for each pair, -1 where one of them is none. Of fewer than 2**31 keys none is too
    large.
    """
    return np.where((first < 0) | (second < 0), -1, first * width + second)


class EqualityDeletes:
    """The equality deletes of one partition by the same columns. ``ids``: those of the columns. The files are
    read when a data file first asks, and their keys are kept.
    """

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = ids
        self.newest = 0
        self._files: dict[str, tuple[Any, int]] = {}
        self._index: DeletedKeys | None = None
        self._sequences = np.zeros(0, np.int64)

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the files."""
        return frozenset(self._files)

    def add(self, file: Any, sequence: int) -> None:
        """Add a file of keys, deleted with a snapshot of this sequence number."""
        self._files[file.file_path] = file, sequence
        self.newest = max(self.newest, sequence)

    def are_deleted(self, columns: Sequence[pa.Array], sequence: int, read: ReadColumns) -> np.ndarray:
        """Return for each row of a data file of a sequence number whether it is deleted. ``columns``: those
        of ``ids``.
        """
        if self._index is None:
            self._index = self._load(read)
        if not self._index.size:
            return np.zeros(len(columns[0]), bool)
        found = self._index.find([_plain(column) for column in columns])
        return (found >= 0) & (self._sequences[found] > sequence)

    def _load(self, read: ReadColumns) -> DeletedKeys:
        tables, sequences = [], []
        for file, sequence in self._files.values():
            tables.append(read(file, self.ids))
            sequences.append(np.full(tables[-1].num_rows, sequence))
        keys = pa.concat_tables(tables, promote_options="permissive")
        index = DeletedKeys([_plain(column) for column in keys.columns])
        self._sequences = np.zeros(index.size, np.int64)
        np.maximum.at(self._sequences, index.numbers, np.concatenate(sequences))
        return index


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece and in a layout that can be looked up: of two layouts of texts one."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ExtensionArray):
        return whole.storage
    if pa.types.is_string(whole.type):
        return whole.cast(pa.large_string())
    if pa.types.is_binary(whole.type):
        return whole.cast(pa.large_binary())
    return whole
