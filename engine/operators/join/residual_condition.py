"""The residual condition of a join, tested over pairs before their rows are made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of, is_true
from penstock.engine.expressions.compiler import compile_predicate
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.index import pair_comparisons as kernel
from penstock.engine.state.rows.row_store import RowStore
from penstock.planner.expressions.nodes import Call, Column, Expression, conjuncts

# What each comparison accepts.
_ACCEPTED = {
    "less": kernel.LESS,
    "less_equal": kernel.LESS | kernel.EQUAL,
    "equal": kernel.EQUAL,
    "not_equal": kernel.LESS | kernel.GREATER,
    "greater_equal": kernel.GREATER | kernel.EQUAL,
    "greater": kernel.GREATER,
}
# From this part of a batch on, its rows are emitted without a copy.
_SHARED_FROM = 4


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of rows: positions ``at`` of ``rows``, which are of side ``port``, with rows of the other side's
    ``store``, by id. ``places``: where those are in memory, if that is known.
    """

    rows: pa.RecordBatch
    at: np.ndarray
    port: int
    store: RowStore
    ids: np.ndarray
    places: np.ndarray | None = None

    def columns(self, left: list[int], right: list[int]) -> list[pa.Array]:
        """Return some columns of the left side, then of the right one, with a value for each pair."""
        own, other = (left, right) if self.port == 0 else (right, left)
        mine = list(rows_at(self.rows.select(own), self.at).columns) if own else []
        partners = list(self.store.take(self.ids, other, self.places).columns) if other else []
        return mine + partners if self.port == 0 else partners + mine

    def among(self, chosen: np.ndarray) -> Pairs:
        """Return those pairs that a mask marks."""
        places = None if self.places is None else self.places[chosen]
        return replace(self, at=self.at[chosen], ids=self.ids[chosen], places=places)


class ResidualCondition:
    """The join condition beyond the equal keys; the right side's columns are numbered from ``left_width`` on.
    It is evaluated over the columns it reads, so pairs that fail are never built.

    Comparisons of 64-bit columns, joined by AND, read the rows where they are: to gather the columns for the
    compiled condition takes three times as long.
    """

    def __init__(self, condition: Expression, left_width: int, time_zone: str) -> None:
        read = sorted(condition.columns())
        places = {index: position for position, index in enumerate(read)}
        self._left = [index for index in read if index < left_width]
        self._right = [index - left_width for index in read if index >= left_width]
        # columns are renumbered: the condition sees only those it reads
        narrow = condition.transform(
            lambda node: replace(node, index=places[node.index]) if isinstance(node, Column) else node
        )
        self._holds = compile_predicate(narrow, EvaluationContext(time_zone))
        self._comparisons = _comparisons(condition, left_width)

    def satisfying(self, pairs: Pairs) -> Pairs:
        """Return the pairs that satisfy the condition; NULL does not."""
        found = self._compared(pairs)
        if found is not None:
            return found
        # a condition without columns, as ON TRUE: one column of NULLs has the number of pairs
        columns = pairs.columns(self._left, self._right) or [pa.nulls(pairs.at.size)]
        names = [f"c{position}" for position in range(len(columns))]
        holds = is_true(self._holds(pa.RecordBatch.from_arrays(columns, names=names)))
        return pairs if holds.all() else pairs.among(holds)

    def _compared(self, pairs: Pairs) -> Pairs | None:
        """Return the pairs that satisfy the condition, where it is comparisons of words without NULLs."""
        if self._comparisons is None or not pairs.at.size:
            return None
        operands = [operand for one in self._comparisons for operand in one.operands]
        stored = [column for side, column in operands if side != pairs.port]
        addresses = pairs.store.word_addresses(stored)
        own = {column: pairs.rows.column(column) for side, column in operands if side == pairs.port}
        if addresses is None or any(array.null_count for array in own.values()):
            return None
        # the words stay referenced while the kernel reads them
        words = {column: col.words(array) for column, array in own.items()}
        comparisons = np.zeros((len(self._comparisons), 3), np.int64)
        chunks = np.zeros((2 * len(self._comparisons), addresses.shape[1]), np.int64)
        rows = iter(addresses)
        for number, (side, column) in enumerate(operands):
            if side == pairs.port:
                comparisons[number // 2, kernel.LEFT + number % 2] = words[column].ctypes.data
            else:
                chunks[number] = next(rows)
        comparisons[:, kernel.ACCEPTED] = [one.accepted for one in self._comparisons]
        places = pairs.store.places(pairs.ids)
        at, ids, into = (np.empty(pairs.at.size, np.int64) for _ in range(3))
        count = kernel.satisfying(pairs.at, pairs.ids, places, comparisons, chunks, at, ids, into)
        return replace(pairs, at=at[:count], ids=ids[:count], places=into[:count])


@dataclass(frozen=True)
class _Comparison:
    """A comparison of two columns, each by its side and its position there."""

    accepted: int
    operands: tuple[tuple[int, int], tuple[int, int]]


def _comparisons(condition: Expression, left_width: int) -> tuple[_Comparison, ...] | None:
    """Return a condition as comparisons of columns whose values are words; None where it is more."""
    found = []
    for part in conjuncts(condition):
        if not (isinstance(part, Call) and part.function in _ACCEPTED):
            return None
        columns = [arg for arg in part.args if isinstance(arg, Column) and col.is_word(to_arrow(arg.type))]
        if len(columns) != 2 or columns[0].type != columns[1].type:
            return None
        a, b = ((0, i) if (i := c.index) < left_width else (1, i - left_width) for c in columns)
        found.append(_Comparison(_ACCEPTED[part.function], (a, b)))
    return tuple(found)


def rows_at(rows: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    """Return the rows at ascending positions, which may repeat. Rows without a gap between them are not
    copied: with a primary key each row of a batch has one partner.
    """
    first = int(at[0]) if at.size else 0
    # A few rows are copied all the same: where they are stored, all of the batch would stay in memory.
    many = at.size * _SHARED_FROM >= rows.num_rows
    # the ends alone do not show it: 0, 0, 2
    if many and at.size and int(at[-1]) - first == at.size - 1 and bool((np.diff(at) == 1).all()):
        return rows.slice(first, at.size)
    return rows.take(array_of(at))
