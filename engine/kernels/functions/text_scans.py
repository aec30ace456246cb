"""Texts scanned once: LIKE with several parts, numbers with commas, base 64, CRC-32."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U8, OUT_I64, OUT_U8, VOID, kernel
from penstock.engine.kernels.pointers import pointer

_MOST_DIGITS = 19


@njit(nogil=True)
def _folded(byte):
    return byte | 32 if 65 <= byte <= 90 else byte


@njit(nogil=True)
def _is_at(data, pos, parts, begin, end, fold):
    """Return whether a part is at a position, behind which there are enough bytes."""
    for k in range(end - begin):
        byte = _folded(data[pos + k]) if fold else data[pos + k]
        if byte != parts[begin + k]:
            return False
    return True


@njit(nogil=True)
def _find_part(data, pos, end, parts, begin, behind, fold):
    """Return the position behind the next occurrence of a part, -1 where there is none."""
    last = end - (behind - begin)
    first = parts[begin]
    while pos <= last:
        byte = _folded(data[pos]) if fold else data[pos]
        if byte == first and _is_at(data, pos, parts, begin, behind, fold):
            return pos + behind - begin
        pos += 1
    return -1


@kernel(VOID(IN_I32, IN_U8, IN_U8, IN_I64, I64, I64, I64, OUT_U8))
def like(offsets, bytes_in, parts_in, bounds, from_start, to_end, fold, matches):
    """Write 1 for each text that has the parts in their order, else 0. The first is at its beginning with
    ``from_start``, the last at its end with ``to_end``. ``fold``: parts are in small letters, and letters of
    ASCII are compared so.
    """
    data, parts, count = pointer(bytes_in), pointer(parts_in), bounds.size - 1
    for i in range(matches.size):
        pos, end, part, last = I64(offsets[i]), I64(offsets[i + 1]), 0, count
        matches[i] = 0
        if from_start:
            size = bounds[1]
            if end - pos < size or not _is_at(data, pos, parts, 0, size, fold):
                continue
            pos += size
            part = 1
        if to_end:
            last = count - 1
            size = bounds[count] - bounds[last]
            if end - pos < size or not _is_at(data, end - size, parts, bounds[last], bounds[count], fold):
                continue
            end -= size
        while part < last and pos >= 0:
            pos = _find_part(data, pos, end, parts, bounds[part], bounds[part + 1], fold)
            part += 1
        matches[i] = pos >= 0


@kernel(I64(IN_I64, IN_U8, IN_U8, I64, I64, OUT_I64, OUT_U8))
def group_digits(numbers, negative, valid, scale, zeros, out_offsets, out):
    """Write numbers, which are not below zero, with a comma before each three digits of their whole part.
    ``scale`` digits are behind the point, and ``zeros`` behind those. Return the number of bytes, at most 28
    and ``scale`` and ``zeros`` a number.
    """
    target, at = pointer(out), 0
    digits_array = np.empty(_MOST_DIGITS, np.uint8)
    digits = pointer(digits_array)
    out_offsets[0] = 0
    for i in range(numbers.size):
        if valid.size == 0 or valid[i]:
            left, count = numbers[i], 0
            while left > 0 or count <= scale:
                digits[count] = 48 + left % 10
                left //= 10
                count += 1
            if negative[i]:
                target[at] = 45
                at += 1
            while count > scale:
                count -= 1
                target[at] = digits[count]
                at += 1
                if count > scale and (count - scale) % 3 == 0:
                    target[at] = 44
                    at += 1
            if scale + zeros:
                target[at] = 46
                at += 1
            while count > 0:
                count -= 1
                target[at] = digits[count]
                at += 1
            for _ in range(zeros):
                target[at] = 48
                at += 1
        out_offsets[i + 1] = at
    return at


@njit(nogil=True)
def _sextet(byte):
    """Return the six bits of a letter of base 64, -1 for another."""
    if 65 <= byte <= 90:
        return byte - 65
    if 97 <= byte <= 122:
        return byte - 71
    if 48 <= byte <= 57:
        return byte + 4
    return 62 if byte == 43 else 63 if byte == 47 else -1


@kernel(I64(IN_I32, IN_U8, OUT_I64, OUT_U8, OUT_U8))
def unbase64(offsets, bytes_in, out_offsets, out, left):
    """Write the bytes of texts in base 64, with or without padding. ``left`` is 1 for a text that is none, or
    has blanks in it. Return the number of bytes, at most three for each four letters.
    """
    data, target, at = pointer(bytes_in), pointer(out), 0
    out_offsets[0] = 0
    for i in range(left.size):
        pos, end = I64(offsets[i]), I64(offsets[i + 1])
        padding = 0
        while padding < 2 and end > pos and data[end - 1] == 61:
            end -= 1
            padding += 1
        size, begin, word, bits = end - pos, at, I64(0), 0
        left[i] = size % 4 == 1 or (padding > 0 and (size + padding) % 4 != 0)
        while pos < end and not left[i]:
            six = _sextet(I64(data[pos]))
            pos += 1
            if six < 0:
                left[i] = 1
            word = ((word << 6) | six) & 0xFFFF
            bits += 6
            if bits >= 8:
                bits -= 8
                target[at] = (word >> bits) & 255
                at += 1
        if left[i]:
            at = begin
        out_offsets[i + 1] = at
    return at


@kernel(VOID(IN_I32, IN_U8, IN_I64, OUT_I64))
def crc32(offsets, bytes_in, table_in, sums):
    """Write the CRC-32 of each text. ``table_in``: the remainders of 256 bytes."""
    data, table = pointer(bytes_in), pointer(table_in)
    for i in range(sums.size):
        crc = I64(0xFFFFFFFF)
        for pos in range(I64(offsets[i]), I64(offsets[i + 1])):
            crc = (crc >> 8) ^ table[(crc ^ I64(data[pos])) & 255]
        sums[i] = crc ^ 0xFFFFFFFF


@kernel(VOID(IN_I32, IN_U8, OUT_U8))
def capitalize(offsets, bytes_in, out_in):
    """Write texts of ASCII with a capital at the beginning of each word, and small letters behind it. Blanks
    separate words.
    """
    data, out, base = pointer(bytes_in), pointer(out_in), I64(offsets[0])
    for i in range(offsets.size - 1):
        is_first = True
        for pos in range(I64(offsets[i]), I64(offsets[i + 1])):
            byte = data[pos]
            if is_first:
                byte = byte & 0xDF if 97 <= byte <= 122 else byte
            else:
                byte = _folded(byte)
            out[pos - base] = byte
            is_first = byte == 32


@kernel(VOID(IN_I32, IN_U8, IN_U8, OUT_I64, OUT_U8))
def base64(offsets, bytes_in, letters_in, ends, out_in):
    """Write bytes in base 64: four letters for each three bytes, padded. ``letters_in``: the 64."""
    data, letters, out, used = pointer(bytes_in), pointer(letters_in), pointer(out_in), 0
    ends[0] = 0
    for i in range(offsets.size - 1):
        pos, end = I64(offsets[i]), I64(offsets[i + 1])
        while pos < end:
            second = I64(data[pos + 1]) if pos + 1 < end else 0
            third = I64(data[pos + 2]) if pos + 2 < end else 0
            word = (I64(data[pos]) << 16) | (second << 8) | third
            out[used] = letters[word >> 18]
            out[used + 1] = letters[(word >> 12) & 63]
            out[used + 2] = letters[(word >> 6) & 63] if pos + 1 < end else 61
            out[used + 3] = letters[word & 63] if pos + 2 < end else 61
            used += 4
            pos += 3
        ends[i + 1] = used
