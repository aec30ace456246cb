"""Sums of values and of squares in double-double arithmetic (32 digits): order hardly matters, and a retraction undoes an insertion.

Tables have one row per slot: count, sum, its low part, sum of squares, its low part, count of infinities and NaN.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from engine.kernels.kernel import kernel
from engine.kernels.signatures import IN_F64, IN_I64, OUT_F64, SLOTS_F64, VOID

_SPLIT = 134217729.0  # 2**27 + 1
COUNT, SUM, SQUARES, ODD = 0, 1, 3, 5


@njit(nogil=True, inline="always")
def _sum(a, b):
    """Return a + b and what rounding lost of it."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@njit(nogil=True, inline="always")
def _product(a, b):
    """Return a * b and what rounding lost of it (Dekker)."""
    result = a * b
    big_a, big_b = a * _SPLIT, b * _SPLIT
    a_high, b_high = big_a - (big_a - a), big_b - (big_b - b)
    a_low, b_low = a - a_high, b - b_high
    return result, a_low * b_low - (((result - a_high * b_high) - a_low * b_high) - a_high * b_low)


@njit(nogil=True)
def _add(table, slot, column, high, low):
    total, lost = _sum(table[slot, column], high)
    lost += table[slot, column + 1] + low
    table[slot, column] = total + lost
    table[slot, column + 1] = lost - (table[slot, column] - total)


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
        high, low = _product(value, weight)
        _add(table, slot, SUM, high, low)
        high, low = _product(value, value)
        scaled, rest = _product(high, weight)
        _add(table, slot, SQUARES, scaled, rest + low * weight)


@kernel(VOID(IN_I64, IN_I64, SLOTS_F64, SLOTS_F64))
def merge(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        slot, source = into[i], slots[i]
        table[slot, COUNT] += other[source, COUNT]
        table[slot, ODD] += other[source, ODD]
        _add(table, slot, SUM, other[source, SUM], other[source, SUM + 1])
        _add(table, slot, SQUARES, other[source, SQUARES], other[source, SQUARES + 1])


@kernel(VOID(SLOTS_F64, OUT_F64))
def distances(columns, out):
    """Write the sum of squared distances from the mean, of the table's columns: sum of squares less square of sum by count."""
    for i in range(out.size):
        count = columns[COUNT, i]
        out[i] = 0.0
        if count <= 1.0:
            continue
        square, low = _product(columns[SUM, i], columns[SUM, i])
        low += 2.0 * columns[SUM, i] * columns[SUM + 1, i]
        quotient = square / count
        back, lost = _product(quotient, count)
        rest = (((square - back) - lost) + low) / count
        total, error = _sum(columns[SQUARES, i], -quotient)
        out[i] = max(0.0, total + (error + columns[SQUARES + 1, i] - rest))
