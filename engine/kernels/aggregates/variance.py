"""Sums of values and of squares in double-double arithmetic (32 digits): order hardly matters, and a
retraction undoes an insertion.

Tables have one row per slot: count, sum, its low part, sum of squares, its low part, count of infinities and
NaN.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.aggregates.double_double import accumulate, central, two_product
from penstock.engine.kernels.kernel import kernel
from penstock.engine.kernels.signatures import IN_F64, IN_I64, OUT_F64, SLOTS_F64, VOID

COUNT, SUM, SQUARES, ODD = 0, 1, 3, 5


@kernel(VOID(IN_I64, IN_F64, IN_I64, SLOTS_F64))
def add(slots, values, weights, table):
    """Add weighted values to slots."""
    for i in range(slots.size):
        slot, value = slots[i], values[i]
        weight = np.float64(weights[i]) if weights.size else 1.0
        if not np.isfinite(value):
            table[slot, ODD] += weight
            continue
        table[slot, COUNT] += weight
        if table[slot, COUNT] == 0.0:
            table[slot, SUM : SUM + 4] = 0.0
            continue
        high, low = two_product(value, weight)
        accumulate(table, slot, SUM, high, low)
        high, low = two_product(value, value)
        scaled, rest = two_product(high, weight)
        accumulate(table, slot, SQUARES, scaled, rest + low * weight)


@kernel(VOID(IN_I64, IN_I64, SLOTS_F64, SLOTS_F64))
def merge(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        slot, source = into[i], slots[i]
        table[slot, COUNT] += other[source, COUNT]
        table[slot, ODD] += other[source, ODD]
        accumulate(table, slot, SUM, other[source, SUM], other[source, SUM + 1])
        accumulate(table, slot, SQUARES, other[source, SQUARES], other[source, SQUARES + 1])


@kernel(VOID(SLOTS_F64, OUT_F64))
def distances(columns, out):
    """Write the sum of squared distances from the mean, of the table's columns: sum of squares less square
    of sum by count.
    """
    for i in range(out.size):
        count = columns[COUNT, i]
        out[i] = 0.0
        if count <= 1.0:
            continue
        total, low = columns[SUM, i], columns[SUM + 1, i]
        out[i] = max(
            0.0, central(total, low, total, low, columns[SQUARES, i], columns[SQUARES + 1, i], count)
        )
