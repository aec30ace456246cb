"""Values as the fields of PostgreSQL's rows: lengths and bytes side by side, and the digits of numeric."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U8, OUT_I32, OUT_I64, OUT_U8, VOID, kernel

NUMERIC_BYTES = 8 + 2 * 11
"""The longest numeric of 38 digits: four words, and digits of base 10,000 of which two may be partial."""


@kernel(VOID(OUT_U8, OUT_I64, IN_I64, IN_I32, IN_U8))
def write_fields(out, at, starts, lengths, data):
    """Write one field of each row: its length as four bytes, then its bytes; -1 alone is NULL. ``at`` is
    where each row's next field begins, and is moved behind it.
    """
    for row in range(at.size):
        to, length = at[row], lengths[row]
        out[to] = (length >> 24) & 255
        out[to + 1] = (length >> 16) & 255
        out[to + 2] = (length >> 8) & 255
        out[to + 3] = length & 255
        to += 4
        begin = starts[row]
        for byte in range(length):
            out[to + byte] = data[begin + byte]
        at[row] = to + max(length, 0)


@kernel(VOID(OUT_U8, OUT_I64, IN_I64, IN_I32, IN_U8))
def write_bytes(out, at, starts, lengths, data):
    """Write a piece of each row's text; ``at`` is where it begins, and is moved behind it."""
    for row in range(at.size):
        to, begin, length = at[row], starts[row], max(lengths[row], 0)
        for byte in range(length):
            out[to + byte] = data[begin + byte]
        at[row] = to + length


@kernel(VOID(IN_I64, IN_I64, I64, OUT_U8, OUT_I32))
def write_numerics(low, high, scale, out, lengths):
    """Write decimals of ``scale`` as numeric: the number of digits of base 10,000, the weight of the first,
    the sign, the scale, the digits. Each has ``NUMERIC_BYTES`` of ``out``.
    """
    padding = (4 - scale % 4) % 4
    factor = 1
    for _ in range(padding):
        factor *= 10
    digits = np.zeros(12, np.int64)
    limbs = np.zeros(5, np.int64)
    words = np.zeros(4, np.int64)
    for row in range(low.size):
        # five limbs of 32 bits
        limbs[0], limbs[1] = low[row] & 0xFFFFFFFF, (low[row] >> 32) & 0xFFFFFFFF
        limbs[2], limbs[3] = high[row] & 0xFFFFFFFF, (high[row] >> 32) & 0xFFFFFFFF
        limbs[4] = 0
        negative = high[row] < 0
        if negative:
            # two's complement of 128 bits
            carry = 1
            for limb in range(4):
                limbs[limb] = (~limbs[limb] & 0xFFFFFFFF) + carry
                carry, limbs[limb] = limbs[limb] >> 32, limbs[limb] & 0xFFFFFFFF
        # times the factor that puts the point between two digits of base 10,000
        carry = 0
        for limb in range(5):
            product = limbs[limb] * factor + carry
            limbs[limb], carry = product & 0xFFFFFFFF, product >> 32
        count = 0
        while limbs[0] | limbs[1] | limbs[2] | limbs[3] | limbs[4]:
            remainder = 0
            for limb in range(4, -1, -1):
                part = (remainder << 32) | limbs[limb]
                limbs[limb], remainder = part // 10000, part % 10000
            digits[count] = remainder
            count += 1
        # the least significant digits are behind the point
        first = count - 1 - (scale + padding) // 4
        last = 0
        while last < count and digits[last] == 0:
            last += 1
        written, at = count - last, row * NUMERIC_BYTES
        weight = first if written else 0
        words[0], words[1], words[2], words[3] = written, weight, 0x4000 if negative else 0, scale
        for word in range(4):
            out[at + 2 * word], out[at + 2 * word + 1] = (words[word] >> 8) & 255, words[word] & 255
        at += 8
        for position in range(written):
            digit = digits[count - 1 - position]
            out[at + 2 * position], out[at + 2 * position + 1] = digit >> 8, digit & 255
        lengths[row] = 8 + 2 * written
