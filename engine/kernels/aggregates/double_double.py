"""Arithmetic on pairs of doubles, a number and what rounding lost of it: 32 digits."""

from __future__ import annotations

from numba import njit

_SPLIT = 134217729.0  # 2**27 + 1


@njit(nogil=True, inline="always")
def two_sum(a, b):
    """Return a + b and what rounding lost of it."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@njit(nogil=True, inline="always")
def two_product(a, b):
    """Return a * b and what rounding lost of it (Dekker)."""
    result = a * b
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
    quotient = a / b
    back, lost = two_product(quotient, b)
    return two_sum(quotient, (((a - back) - lost) + a_low) / b)


@njit(nogil=True)
def accumulate(table, slot, column, high, low):
    """Add a pair to the pair in two neighbouring columns of a row."""
    total, lost = two_sum(table[slot, column], high)
    lost += table[slot, column + 1] + low
    table[slot, column] = total + lost
    table[slot, column + 1] = lost - (table[slot, column] - total)


@njit(nogil=True)
def central(a, a_low, b, b_low, product, product_low, count):
    """Return the sum of products of distances from the means: the sum of products less the product of sums
    by count.
    """
    square, low = two_product(a, b)
    low += a * b_low + a_low * b
    quotient, rest = over(square, low, count)
    total, error = two_sum(product, -quotient)
    return total + (error + product_low - rest)
