"""Peers: rows of a partition that are equal in all order keys; ranks are told by them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import is_true, truths
from penstock.engine.expressions.call_site import EvaluationContext
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.nested_text import canonical_text
from penstock.engine.operators.over.partitions import Partitions
from penstock.planner.expressions.nodes import SortKey


class PeerGroups:
    """The groups of peers among sorted rows. By row, int64: ``numbers`` of groups from 0, ``firsts`` and
    ``ends``, a group's bounds.
    """

    def __init__(self, begins: np.ndarray) -> None:
        self.numbers = np.cumsum(begins) - 1
        firsts = np.flatnonzero(begins)
        self.firsts = firsts[self.numbers]
        self.ends = np.append(firsts[1:], begins.size)[self.numbers]


class Peers:
    """Finds peers by the keys of an order."""

    def __init__(self, order: Sequence[SortKey], time_zone: str) -> None:
        context = EvaluationContext(time_zone)
        self._keys = [compile_expression(key.expression, context) for key in order]

    def of(self, part: Partitions) -> PeerGroups:
        """Return the groups of sorted rows; without order keys a partition is one group."""
        count = part.rows.num_rows
        begins = part.starts == np.arange(count)
        if count > 1 and self._keys:
            for evaluate in self._keys:
                begins[1:] |= _differs(evaluate(part.rows))
        return PeerGroups(begins)

    def ranks(self, part: Partitions, rank: str) -> np.ndarray:
        """Return row_number, rank or dense_rank of sorted rows within their partitions, int64."""
        if rank == "row_number":
            return np.arange(part.rows.num_rows) - part.starts + 1
        groups = self.of(part)
        if rank == "rank":
            return groups.firsts - part.starts + 1
        return groups.numbers - groups.numbers[part.starts] + 1


def _differs(values: pa.Array) -> np.ndarray:
    """Return of each value but the first whether it differs from the one before; NULL is like NULL, NaN
    like NaN.
    """
    if pa.types.is_nested(values.type):
        return _differs(canonical_text(values))
    if col.is_bytes(values.type):
        unequal = is_true(pc.not_equal(values.slice(1), values.slice(0, len(values) - 1)))
    elif pa.types.is_decimal128(values.type):
        low, high = col.wide_words(values)
        unequal = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    else:
        words = col.words(values)
        unequal = words[1:] != words[:-1]
    if not values.null_count:
        return unequal
    valid = truths(values.is_valid())
    return (valid[1:] != valid[:-1]) | (valid[1:] & valid[:-1] & unequal)
