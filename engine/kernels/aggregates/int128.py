"""128-bit arithmetic on (low uint64, high int64) pairs, inside kernels."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, VOID, kernel

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@njit(nogil=True)
def multiply(left, right):
    """Return the exact product of two int64 as its low and high word."""
    a, b = np.uint64(left), np.uint64(right)
    # Schoolbook multiplication of 32-bit halves, unsigned; the two corrections below make it signed.
    a0, a1, b0, b1 = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    first = a0 * b0
    middle = a1 * b0 + (first >> _HALF)
    other = a0 * b1 + (middle & _LOW)
    high = np.int64(a1 * b1 + (middle >> _HALF) + (other >> _HALF))
    # An unsigned product counts a negative factor 2**64 too high: the other factor is in excess in the high
    # word.
    if left < 0:
        high -= right
    if right < 0:
        high -= left
    return left * right, high


@njit(nogil=True)
def _next_digit(low, high, digit):
    """Return ten times a 128-bit number, plus a digit."""
    # Ten times is eight times plus twice: the bits shifted out of the low word, and the two carries of the
    # sums.
    high = high * np.uint64(10) + ((low >> np.uint64(61)) + (low >> np.uint64(63)))
    eight, two = low << np.uint64(3), low << np.uint64(1)
    total = eight + two
    if total < eight:
        high += np.uint64(1)
    result = total + digit
    if result < total:
        high += np.uint64(1)
    return result, high


@kernel(VOID(OUT_I64, OUT_I64, IN_I64, I64, OUT_I64))
def average(low, high, counts, digits, fits):
    """Divide each 128-bit sum by its count in place. The quotient has ``digits`` more decimals, rounded half
    away from zero. ``fits`` becomes 0 where 128 bits overflow.
    """
    for i in range(counts.size):
        fits[i] = 1
        # No values: the caller makes it NULL.
        if counts[i] <= 0:
            continue
        negative = high[i] < 0
        lo, hi = np.uint64(low[i]), np.uint64(high[i])
        # The division is of the absolute value.
        if negative:
            lo = ~lo + np.uint64(1)
            hi = ~hi + np.uint64(1 if lo == np.uint64(0) else 0)
        count = np.uint64(counts[i])
        quotient_low, quotient_high, remainder = np.uint64(0), np.uint64(0), np.uint64(0)
        # Long division bit by bit: numba has no 128-bit integers.
        for bit in range(127, -1, -1):
            word = hi if bit >= 64 else lo
            remainder = (remainder << np.uint64(1)) | ((word >> np.uint64(bit & 63)) & np.uint64(1))
            quotient_high = (quotient_high << np.uint64(1)) | (quotient_low >> np.uint64(63))
            quotient_low <<= np.uint64(1)
            if remainder >= count:
                remainder -= count
                quotient_low |= np.uint64(1)
        # The remainder gives the digits behind the point, one by one.
        for _ in range(digits):
            remainder *= np.uint64(10)
            # Another digit could reach the sign bit.
            if quotient_high >> np.uint64(59):
                fits[i] = 0
            quotient_low, quotient_high = _next_digit(quotient_low, quotient_high, remainder // count)
            remainder %= count
        # Half away from zero: of the absolute value, half rounds up.
        if remainder * np.uint64(2) >= count:
            quotient_low += np.uint64(1)
            quotient_high += np.uint64(1 if quotient_low == np.uint64(0) else 0)
        if negative:
            quotient_low = ~quotient_low + np.uint64(1)
            quotient_high = ~quotient_high + np.uint64(1 if quotient_low == np.uint64(0) else 0)
        low[i], high[i] = np.int64(quotient_low), np.int64(quotient_high)
