"""Partitions: rows sorted by partition, then by an order, and where each partition begins and ends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.kernels.partition import counting_sort
from penstock.engine.state.rows.total_order import RowOrder

_DENSE = 8


@dataclass(frozen=True, eq=False)
class Partitions:
    """Sorted rows. By row, int64: ``slots``, the partition's; ``starts`` and ``ends``, its first position and
    the one behind its last.

    ``origins`` says where each row stood before it was sorted.
    """

    rows: pa.RecordBatch
    slots: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    origins: np.ndarray

    def kept(self, mask: np.ndarray) -> Partitions:
        """Return the rows of a mask, still sorted."""
        chosen = np.flatnonzero(mask)
        return _bounded(self.rows.take(array_of(chosen)), self.slots[chosen], self.origins[chosen])


def partitioned(
    rows: pa.RecordBatch, slots: np.ndarray, order: RowOrder, arrived: np.ndarray | None = None
) -> Partitions:
    """Sort rows by the slots of their partitions (int64), then by an order; rows equal in all that stay in
    turn.

    ``arrived``: as ``RowOrder.sorted`` takes it.
    """
    by_order = order.sorted(rows, arrived)
    origins = by_order[_by_slot(slots[by_order])]
    return _bounded(rows.take(array_of(origins)), slots[origins], origins)


def _by_slot(slots: np.ndarray) -> np.ndarray:
    """Return the stable order of slots; they are counted where they are not far more than rows."""
    bound = int(slots.max(initial=0)) + 1
    return (
        counting_sort(slots, bound)[0] if bound <= _DENSE * slots.size else np.argsort(slots, kind="stable")
    )


def _bounded(rows: pa.RecordBatch, slots: np.ndarray, origins: np.ndarray) -> Partitions:
    firsts = np.flatnonzero(np.diff(slots, prepend=slots[:1] - 1)) if slots.size else np.zeros(0, np.int64)
    lengths = np.diff(np.append(firsts, slots.size))
    return Partitions(rows, slots, np.repeat(firsts, lengths), np.repeat(firsts + lengths, lengths), origins)
