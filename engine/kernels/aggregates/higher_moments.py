"""Sums of the first four powers of numbers, to 32 digits.

Tables have one row per slot: count, count of infinities and NaN, then the sums of the powers, each with its
low part.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.aggregates.double_double import accumulate, over, plus, times
from penstock.engine.kernels.kernel import kernel
from penstock.engine.kernels.signatures import IN_F64, IN_I64, OUT_F64, SLOTS_F64, VOID

COUNT, ODD, FIRST = 0, 1, 2
WIDTH = 10


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
            table[slot, FIRST:WIDTH] = 0.0
            continue
        high, low = weight, 0.0
        for column in range(FIRST, WIDTH, 2):
            high, low = times(high, low, value, 0.0)
            accumulate(table, slot, column, high, low)


@kernel(VOID(IN_I64, IN_I64, SLOTS_F64, SLOTS_F64))
def merge(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        slot, source = into[i], slots[i]
        table[slot, COUNT] += other[source, COUNT]
        table[slot, ODD] += other[source, ODD]
        for column in range(FIRST, WIDTH, 2):
            accumulate(table, slot, column, other[source, column], other[source, column + 1])


@kernel(VOID(SLOTS_F64, OUT_F64, OUT_F64, OUT_F64))
def centred(columns, second, third, fourth):
    """Write the sums of the second, third and fourth power of the distances from the mean; 0 where values
    do not vary.
    """
    for i in range(second.size):
        count = columns[COUNT, i]
        second[i] = third[i] = fourth[i] = 0.0
        if count <= 1.0:
            continue
        mean, mean_low = over(columns[2, i], columns[3, i], count)
        square, square_low = times(mean, mean_low, mean, mean_low)
        part, part_low = times(square, square_low, -count, 0.0)
        total, _ = plus(columns[4, i], columns[5, i], part, part_low)
        if total <= 1e-29 * columns[4, i]:
            continue
        second[i] = total
        cube, cube_low = times(square, square_low, mean, mean_low)
        part, part_low = times(columns[4, i], columns[5, i], -3.0 * mean, -3.0 * mean_low)
        high, low = plus(columns[6, i], columns[7, i], part, part_low)
        part, part_low = times(cube, cube_low, 2.0 * count, 0.0)
        third[i], _ = plus(high, low, part, part_low)
        part, part_low = times(columns[6, i], columns[7, i], -4.0 * mean, -4.0 * mean_low)
        high, low = plus(columns[8, i], columns[9, i], part, part_low)
        part, part_low = times(columns[4, i], columns[5, i], 6.0 * square, 6.0 * square_low)
        high, low = plus(high, low, part, part_low)
        part, part_low = times(cube, cube_low, -3.0 * count * mean, -3.0 * count * mean_low)
        fourth[i], _ = plus(high, low, part, part_low)
