"""Numbers in other bases: read from texts, and written as texts."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.kernel import (
    I64,
    IN_I32,
    IN_U8,
    IN_U64,
    OUT_I64,
    OUT_U8,
    OUT_U64,
    U64,
    VOID,
    kernel,
)
from penstock.engine.kernels.pointers import pointer

_MOST_DIGITS = 64
_BLANK, _MINUS = 32, 45


@kernel(VOID(IN_I32, IN_U8, I64, OUT_U64, OUT_U8, OUT_U8, OUT_U8))
def read_numbers(offsets, bytes_in, base, numbers, negative, absent, left):
    """Write the numbers at the beginning of texts, without their signs. Blanks around are left out.

    ``absent`` is 1 for a text of blanks only, ``left`` for one with characters beyond ASCII, or
    of more than 64 bits.
    """
    data = pointer(bytes_in)
    largest = U64(0xFFFFFFFFFFFFFFFF) // U64(base)
    for i in range(numbers.size):
        at, end = I64(offsets[i]), I64(offsets[i + 1])
        number, beyond, read = U64(0), 0, True
        while at < end and data[at] == _BLANK:
            at += 1
        absent[i] = at == end
        negative[i] = at < end and data[at] == _MINUS
        at += negative[i]
        while at < end:
            byte = I64(data[at])
            at += 1
            beyond |= byte
            digit = byte - 48 if byte < 58 else (byte | 32) - 87 if byte >= 65 else -1
            # those between digits and letters, and below, are none
            if digit < 0 or digit >= base or (byte >= 58 and digit < 10):
                read = False
            if read:
                larger = number * U64(base) + U64(digit)
                if number > largest or larger < U64(digit):
                    beyond = 128
                number = larger
        numbers[i] = number
        left[i] = beyond >= 128


@kernel(I64(IN_U64, IN_U8, IN_U8, I64, I64, OUT_I64, OUT_U8))
def write_numbers(numbers, negative, valid, base, shift, ends, out_in):
    """Write numbers as texts in a base, which is two to the power of ``shift`` unless that is 0. Return the
    number of bytes, at most 65 a number.
    """
    out, used = pointer(out_in), 0
    digits_array = np.empty(_MOST_DIGITS, np.uint8)
    digits = pointer(digits_array)
    ends[0] = 0
    for i in range(numbers.size):
        if valid.size == 0 or valid[i]:
            number, count = numbers[i], 0
            while True:
                if shift > 0:
                    digit, number = number & U64(base - 1), number >> U64(shift)
                elif base == 10:
                    rest = number // U64(10)
                    digit, number = number - rest * U64(10), rest
                else:
                    rest = number // U64(base)
                    digit, number = number - rest * U64(base), rest
                digits[count] = digit + U64(48) if digit < U64(10) else digit + U64(55)
                count += 1
                if number == U64(0):
                    break
            if negative[i]:
                out[used] = _MINUS
                used += 1
            for k in range(count):
                out[used + k] = digits[count - 1 - k]
            used += count
        ends[i + 1] = used
    return used
