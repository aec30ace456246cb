"""Sorted partitions and their peer groups: rows sorted by partition, then by an order, with the bounds of
each partition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, is_true, truths
from penstock.engine.expressions.compiler import compile_expression
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.nested_text import canonical_text
from penstock.engine.kernels.partition import counting_sort
from penstock.engine.state.rows.total_order import RowOrder
from penstock.planner.expressions.nodes import SortKey

# a counting sort needs memory for all slots: used up to so many slots a row
_DENSE = 8


@dataclass(frozen=True, eq=False)
class Partitions:
    """Sorted rows. By row, int64: ``slots``, the partition's; ``starts`` and ``ends``, its first position and
    the one behind its last.

    ``origins``: each row's position before the sort.
    """

    rows: pa.RecordBatch
    slots: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    origins: np.ndarray

    def filter(self, mask: np.ndarray) -> Partitions:
        """Return the rows where a mask is true, still sorted."""
        chosen = np.flatnonzero(mask)
        return _bounded(self.rows.take(array_of(chosen)), self.slots[chosen], self.origins[chosen])


def partitioned(
    rows: pa.RecordBatch, slots: np.ndarray, order: RowOrder, arrived: np.ndarray | None = None
) -> Partitions:
    """Sort rows by the slots of their partitions (int64), then by an order. Rows equal in all that keep their
    order.

    ``arrived``: as for ``RowOrder.sorted``.
    """
    # two stable sorts: by order first, then by partition
    by_order = order.sorted(rows, arrived)
    origins = by_order[_by_slot(slots[by_order])]
    return _bounded(rows.take(array_of(origins)), slots[origins], origins)


def _by_slot(slots: np.ndarray) -> np.ndarray:
    """Return the stable order of slots, by a counting sort unless slots are far more than rows."""
    bound = int(slots.max(initial=0)) + 1
    return (
        counting_sort(slots, bound)[0] if bound <= _DENSE * slots.size else np.argsort(slots, kind="stable")
    )


def _bounded(rows: pa.RecordBatch, slots: np.ndarray, origins: np.ndarray) -> Partitions:
    # a partition begins where the slot changes; the prepended value makes row 0 a beginning
    firsts = np.flatnonzero(np.diff(slots, prepend=slots[:1] - 1)) if slots.size else np.zeros(0, np.int64)
    lengths = np.diff(np.append(firsts, slots.size))
    return Partitions(rows, slots, np.repeat(firsts, lengths), np.repeat(firsts + lengths, lengths), origins)


class PeerGroups:
    """Groups of peers (rows equal in all order keys) among sorted rows. By row, int64: ``numbers`` of groups
    from 0, ``firsts`` and ``ends``, a group's bounds.
    """

    def __init__(self, begins: np.ndarray) -> None:
        # `begins`: by sorted row, whether it is the first of its group
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
        # a partition begins a group; so does a row that differs from the one before in some order key
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
        # 1, 1, 3: the position of the first peer
        if rank == "rank":
            return groups.firsts - part.starts + 1
        # DENSE_RANK 1, 1, 2: the number of the group
        return groups.numbers - groups.numbers[part.starts] + 1


def _differs(values: pa.Array) -> np.ndarray:
    """Return, for each value but the first, whether it differs from the previous one. NULL equals NULL, NaN
    equals NaN.
    """
    # ARRAY, MAP, ROW: compared by a text that is equal for equal values
    if pa.types.is_nested(values.type):
        return _differs(canonical_text(values))
    if col.is_bytes(values.type):
        unequal = is_true(pc.not_equal(values.slice(1), values.slice(0, len(values) - 1)))
    # both 64-bit halves
    elif pa.types.is_decimal128(values.type):
        low, high = col.wide_words(values)
        unequal = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    else:
        words = col.words(values)
        unequal = words[1:] != words[:-1]
    if not values.null_count:
        return unequal
    # NULL and a value differ, NULL and NULL do not; words under NULL are undefined
    valid = truths(values.is_valid())
    return (valid[1:] != valid[:-1]) | (valid[1:] & valid[:-1] & unequal)
