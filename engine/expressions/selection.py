"""Rows an expression is computed on: a whole batch, or the part of one that is still undecided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.expressions.datum import Datum, repeated


class Rows(Protocol):
    """Columns by position and their length; a record batch is one."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""

    def column(self, i: int) -> pa.Array:
        """Return a column."""


Evaluate = Callable[[Rows], Datum]


class Selection:
    """Some rows of others, by position; a column is gathered when it is first read."""

    def __init__(self, rows: Rows, positions: np.ndarray) -> None:
        self._rows = rows
        self._positions = pa.array(positions)
        self._columns: dict[int, pa.Array] = {}

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self._positions)

    def column(self, i: int) -> pa.Array:
        """Return a column."""
        found = self._columns.get(i)
        if found is None:
            found = self._columns[i] = self._rows.column(i).take(self._positions)
        return found


def spread(part: Datum, positions: np.ndarray, length: int) -> pa.Array:
    """Return a column of ``length`` with ``part`` at the positions and NULL elsewhere."""
    if isinstance(part, pa.Scalar):
        part = repeated(part, len(positions))
    where = np.full(length, -1, np.int64)
    where[positions] = np.arange(len(positions))
    return part.take(array_of(where, where < 0))
