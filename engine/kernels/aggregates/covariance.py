"""Sums of pairs of numbers, of their squares and products, to 32 digits.

Tables have one row per slot: count, count of pairs with infinities and NaN, then y, x, y*y, x*x and x*y, each
with its low part, last the greatest y*y and x*x there ever was: what is small beside these is what rounding
left of pairs that were taken back.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.aggregates.double_double import accumulate, central, two_product
from penstock.engine.kernels.kernel import kernel
from penstock.engine.kernels.signatures import IN_F64, IN_I64, OUT_F64, SLOTS_F64, VOID

COUNT, ODD, FIRST, GREATEST = 0, 1, 2, 12
WIDTH = 14
_NOTHING = 1e-28


@kernel(VOID(IN_I64, IN_F64, IN_F64, IN_I64, SLOTS_F64))
def add(slots, ys, xs, weights, table):
    """Add weighted pairs to slots."""
    for i in range(slots.size):
        slot, y, x = slots[i], ys[i], xs[i]
        weight = np.float64(weights[i]) if weights.size else 1.0
        if not (np.isfinite(y) and np.isfinite(x)):
            table[slot, ODD] += weight
            continue
        table[slot, COUNT] += weight
        if table[slot, COUNT] == 0.0:
            table[slot, FIRST:WIDTH] = 0.0
            continue
        high, low = two_product(y, weight)
        accumulate(table, slot, FIRST, high, low)
        high, low = two_product(x, weight)
        accumulate(table, slot, FIRST + 2, high, low)
        column = FIRST + 4
        for a, b in ((y, y), (x, x), (x, y)):
            high, low = two_product(a, b)
            scaled, rest = two_product(high, weight)
            accumulate(table, slot, column, scaled, rest + low * weight)
            column += 2
        table[slot, GREATEST] = max(table[slot, GREATEST], y * y)
        table[slot, GREATEST + 1] = max(table[slot, GREATEST + 1], x * x)


@kernel(VOID(IN_I64, IN_I64, SLOTS_F64, SLOTS_F64))
def merge(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        slot, source = into[i], slots[i]
        table[slot, COUNT] += other[source, COUNT]
        table[slot, ODD] += other[source, ODD]
        for column in range(FIRST, GREATEST, 2):
            accumulate(table, slot, column, other[source, column], other[source, column + 1])
        for column in range(GREATEST, WIDTH):
            table[slot, column] = max(table[slot, column], other[source, column])


@kernel(VOID(SLOTS_F64, OUT_F64, OUT_F64, OUT_F64))
def centred(columns, syy, sxx, sxy):
    """Write the sums of squared distances from the means, and of their products, of the table's columns; 0
    where a side does not vary.
    """
    for i in range(syy.size):
        count = columns[COUNT, i]
        syy[i] = sxx[i] = sxy[i] = 0.0
        if count <= 1.0:
            continue
        y, y_low, x, x_low = columns[2, i], columns[3, i], columns[4, i], columns[5, i]
        syy[i] = central(y, y_low, y, y_low, columns[6, i], columns[7, i], count)
        sxx[i] = central(x, x_low, x, x_low, columns[8, i], columns[9, i], count)
        if syy[i] <= _NOTHING * columns[GREATEST, i]:
            syy[i] = 0.0
        if sxx[i] <= _NOTHING * columns[GREATEST + 1, i]:
            sxx[i] = 0.0
        if syy[i] > 0.0 and sxx[i] > 0.0:
            sxy[i] = central(x, x_low, y, y_low, columns[10, i], columns[11, i], count)
