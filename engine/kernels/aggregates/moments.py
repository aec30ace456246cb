"""Sums of powers and products in double-double arithmetic: a number and its rounding error, 32 digits
together.

With 32 digits the order of additions hardly matters, and a retraction undoes an insertion.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import IN_F64, IN_I64, OUT_F64, SLOTS_F64, VOID, kernel

_SPLIT = 134217729.0  # 2**27 + 1: halves the 53 bits of a double (Dekker)

# The tables of this file have one row per slot, and a column that counts the values in front. Each sum takes
# two columns: the sum, and its low part.
COUNT = 0

# Variance: count, sum of values, sum of squares, count of infinities and NaN.
_SUM, _SQUARES, SQUARES_ODD = 1, 3, 5

# Higher moments: count, count of infinities and NaN, sums of the first four powers. Covariance: count, count
# of pairs with infinities and NaN, sums of y, x, y*y, x*x and x*y. Then come the greatest y*y and x*x there
# ever was.
ODD, _FIRST = 1, 2
POWERS_WIDTH = 10
_GREATEST = 12
PRODUCTS_WIDTH = 14

# A sum of squares this small beside the greatest square is what rounding left of retracted pairs: it counts
# as 0.
_NOTHING = 1e-28


@njit(nogil=True, inline="always")
def two_sum(a, b):
    """Return a + b and its rounding error."""
    # Exact for any two doubles, whichever is greater (Knuth).
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@njit(nogil=True, inline="always")
def two_product(a, b):
    """Return a * b and its rounding error (Dekker)."""
    result = a * b
    # Halves of 26 bits, whose products are exact.
    big_a, big_b = a * _SPLIT, b * _SPLIT
    a_high, b_high = big_a - (big_a - a), big_b - (big_b - b)
    a_low, b_low = a - a_high, b - b_high
    return result, a_low * b_low - (((result - a_high * b_high) - a_low * b_high) - a_high * b_low)


@njit(nogil=True)
def times(a, a_low, b, b_low):
    """Return the product of two pairs."""
    high, low = two_product(a, b)
    return two_sum(high, low + (a * b_low + a_low * b))


@njit(nogil=True)
def plus(a, a_low, b, b_low):
    """Return the sum of two pairs."""
    high, low = two_sum(a, b)
    return two_sum(high, low + (a_low + b_low))


@njit(nogil=True)
def over(a, a_low, b):
    """Return a pair divided by a number."""
    # One step of correction: the quotient, and what is left of the dividend, divided again.
    quotient = a / b
    back, lost = two_product(quotient, b)
    return two_sum(quotient, (((a - back) - lost) + a_low) / b)


@njit(nogil=True)
def accumulate(table, slot, column, high, low):
    """Add a pair to the pair in two neighbouring columns of a row."""
    # Renormalised: the high part is the nearest double to the sum.
    total, lost = two_sum(table[slot, column], high)
    lost += table[slot, column + 1] + low
    table[slot, column] = total + lost
    table[slot, column + 1] = lost - (table[slot, column] - total)


@njit(nogil=True)
def central(a, a_low, b, b_low, product, product_low, count):
    """Return the sum of products of deviations from the means: the sum of products minus the product of sums
    divided by the count.
    """
    square, low = two_product(a, b)
    low += a * b_low + a_low * b
    quotient, low_part = over(square, low, count)
    total, error = two_sum(product, -quotient)
    return total + (error + product_low - low_part)


@kernel(VOID(IN_I64, IN_F64, IN_I64, SLOTS_F64))
def add_squares(slots, values, weights, table):
    """Add weighted values to slots."""
    for i in range(slots.size):
        slot, value = slots[i], values[i]
        # Empty weights: +1 each.
        weight = np.float64(weights[i]) if weights.size else 1.0
        # counted apart: added to a sum they could not be retracted
        if not np.isfinite(value):
            table[slot, SQUARES_ODD] += weight
            continue
        table[slot, COUNT] += weight
        # the last value is retracted: what rounding left goes with it
        if table[slot, COUNT] == 0.0:
            table[slot, _SUM : _SUM + 4] = 0.0
            continue
        high, low = two_product(value, weight)
        accumulate(table, slot, _SUM, high, low)
        high, low = two_product(value, value)
        scaled, low_part = two_product(high, weight)
        accumulate(table, slot, _SQUARES, scaled, low_part + low * weight)


@kernel(VOID(IN_I64, IN_I64, SLOTS_F64, SLOTS_F64))
def merge_squares(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        slot, source = into[i], slots[i]
        table[slot, COUNT] += other[source, COUNT]
        table[slot, SQUARES_ODD] += other[source, SQUARES_ODD]
        accumulate(table, slot, _SUM, other[source, _SUM], other[source, _SUM + 1])
        accumulate(table, slot, _SQUARES, other[source, _SQUARES], other[source, _SQUARES + 1])


@kernel(VOID(SLOTS_F64, OUT_F64))
def squared_distances(columns, out):
    """Write the sum of squared deviations from the mean: the sum of squares minus the squared sum divided by
    the count.
    """
    for i in range(out.size):
        count = columns[COUNT, i]
        out[i] = 0.0
        if count <= 1.0:
            continue
        total, low = columns[_SUM, i], columns[_SUM + 1, i]
        # Rounding may leave the sum just below 0.
        out[i] = max(
            0.0, central(total, low, total, low, columns[_SQUARES, i], columns[_SQUARES + 1, i], count)
        )


@kernel(VOID(IN_I64, IN_F64, IN_I64, SLOTS_F64))
def add_powers(slots, values, weights, table):
    """Add weighted values to slots."""
    for i in range(slots.size):
        slot, value = slots[i], values[i]
        weight = np.float64(weights[i]) if weights.size else 1.0
        # Counted apart, as in add_squares.
        if not np.isfinite(value):
            table[slot, ODD] += weight
            continue
        table[slot, COUNT] += weight
        if table[slot, COUNT] == 0.0:
            table[slot, _FIRST:POWERS_WIDTH] = 0.0
            continue
        # The weight times the value, once more for each power.
        high, low = weight, 0.0
        for column in range(_FIRST, POWERS_WIDTH, 2):
            high, low = times(high, low, value, 0.0)
            accumulate(table, slot, column, high, low)


@kernel(VOID(IN_I64, IN_I64, SLOTS_F64, SLOTS_F64))
def merge_powers(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        slot, source = into[i], slots[i]
        table[slot, COUNT] += other[source, COUNT]
        table[slot, ODD] += other[source, ODD]
        for column in range(_FIRST, POWERS_WIDTH, 2):
            accumulate(table, slot, column, other[source, column], other[source, column + 1])


@kernel(VOID(SLOTS_F64, OUT_F64, OUT_F64, OUT_F64))
def central_powers(columns, second, third, fourth):
    """Write the sums of the second, third and fourth power of the deviations from the mean. All are 0 where
    the values do not vary.
    """
    for i in range(second.size):
        count = columns[COUNT, i]
        second[i] = third[i] = fourth[i] = 0.0
        if count <= 1.0:
            continue
        # The mean from the first power; S2, S3 and S4 are in the columns after it.
        mean, mean_low = over(columns[2, i], columns[3, i], count)
        square, square_low = times(mean, mean_low, mean, mean_low)
        part, part_low = times(square, square_low, -count, 0.0)
        total, _ = plus(columns[4, i], columns[5, i], part, part_low)
        # So small a variance beside the sum of squares is a rounding error: the values are equal.
        if total <= 1e-29 * columns[4, i]:
            continue
        second[i] = total
        # sum (x - m)^3 = S3 - 3 m S2 + 2 n m^3
        cube, cube_low = times(square, square_low, mean, mean_low)
        part, part_low = times(columns[4, i], columns[5, i], -3.0 * mean, -3.0 * mean_low)
        high, low = plus(columns[6, i], columns[7, i], part, part_low)
        part, part_low = times(cube, cube_low, 2.0 * count, 0.0)
        third[i], _ = plus(high, low, part, part_low)
        # sum (x - m)^4 = S4 - 4 m S3 + 6 m^2 S2 - 3 n m^4
        part, part_low = times(columns[6, i], columns[7, i], -4.0 * mean, -4.0 * mean_low)
        high, low = plus(columns[8, i], columns[9, i], part, part_low)
        part, part_low = times(columns[4, i], columns[5, i], 6.0 * square, 6.0 * square_low)
        high, low = plus(high, low, part, part_low)
        part, part_low = times(cube, cube_low, -3.0 * count * mean, -3.0 * count * mean_low)
        fourth[i], _ = plus(high, low, part, part_low)


@kernel(VOID(IN_I64, IN_F64, IN_F64, IN_I64, SLOTS_F64))
def add_products(slots, ys, xs, weights, table):
    """Add weighted pairs to slots."""
    for i in range(slots.size):
        slot, y, x = slots[i], ys[i], xs[i]
        weight = np.float64(weights[i]) if weights.size else 1.0
        if not (np.isfinite(y) and np.isfinite(x)):
            # A pair counts as not finite if one of its sides is.
            table[slot, ODD] += weight
            continue
        table[slot, COUNT] += weight
        if table[slot, COUNT] == 0.0:
            table[slot, _FIRST:PRODUCTS_WIDTH] = 0.0
            continue
        high, low = two_product(y, weight)
        accumulate(table, slot, _FIRST, high, low)
        high, low = two_product(x, weight)
        accumulate(table, slot, _FIRST + 2, high, low)
        column = _FIRST + 4
        # Their columns are in this order.
        for a, b in ((y, y), (x, x), (x, y)):
            high, low = two_product(a, b)
            scaled, low_part = two_product(high, weight)
            accumulate(table, slot, column, scaled, low_part + low * weight)
            column += 2
        table[slot, _GREATEST] = max(table[slot, _GREATEST], y * y)
        table[slot, _GREATEST + 1] = max(table[slot, _GREATEST + 1], x * x)


@kernel(VOID(IN_I64, IN_I64, SLOTS_F64, SLOTS_F64))
def merge_products(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        slot, source = into[i], slots[i]
        table[slot, COUNT] += other[source, COUNT]
        table[slot, ODD] += other[source, ODD]
        for column in range(_FIRST, _GREATEST, 2):
            accumulate(table, slot, column, other[source, column], other[source, column + 1])
        for column in range(_GREATEST, PRODUCTS_WIDTH):
            table[slot, column] = max(table[slot, column], other[source, column])


@kernel(VOID(SLOTS_F64, OUT_F64, OUT_F64, OUT_F64))
def central_products(columns, syy, sxx, sxy):
    """Write the sums of squared deviations from the means, and of their products. A sum is 0 where its side
    does not vary.
    """
    for i in range(syy.size):
        count = columns[COUNT, i]
        syy[i] = sxx[i] = sxy[i] = 0.0
        if count <= 1.0:
            continue
        # Sums of y and x; the columns of their squares and products follow.
        y, y_low, x, x_low = columns[2, i], columns[3, i], columns[4, i], columns[5, i]
        syy[i] = central(y, y_low, y, y_low, columns[6, i], columns[7, i], count)
        sxx[i] = central(x, x_low, x, x_low, columns[8, i], columns[9, i], count)
        # The greatest square is never retracted, so the threshold covers all pairs that ever were in the sum.
        if syy[i] <= _NOTHING * columns[_GREATEST, i]:
            syy[i] = 0.0
        if sxx[i] <= _NOTHING * columns[_GREATEST + 1, i]:
            sxx[i] = 0.0
        if syy[i] > 0.0 and sxx[i] > 0.0:
            sxy[i] = central(x, x_low, y, y_low, columns[10, i], columns[11, i], count)
