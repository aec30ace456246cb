"""Distances and sounds of words: Levenshtein's distance, and SOUNDEX of ASCII texts."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_U8, OUT_I32, OUT_I64, OUT_U8, VOID, kernel
from penstock.engine.kernels.pointers import pointer

_WORD_BITS = 64
# characters of ISO 8859-1 have their place in a table of the pattern's positions
_TABLED = 256
# the sound of each letter: 0 separates, 7 does not, 1 to 6 are groups of consonants
_SOUNDS = np.frombuffer(b"01230127022455012623017202", np.uint8) - np.uint8(48)


@njit(nogil=True)
def _decode(data, pos, end, out):
    """Write the code points of a text; return their number and the greatest."""
    count, greatest = 0, I64(0)
    while pos < end:
        byte = I64(data[pos])
        if byte < 0x80:
            code, pos = byte, pos + 1
        elif byte < 0xE0:
            code, pos = (byte & 31) << 6 | (data[pos + 1] & 63), pos + 2
        elif byte < 0xF0:
            code = (byte & 15) << 12 | I64(data[pos + 1] & 63) << 6 | (data[pos + 2] & 63)
            pos += 3
        else:
            code = (byte & 7) << 18 | I64(data[pos + 1] & 63) << 12
            code |= I64(data[pos + 2] & 63) << 6 | (data[pos + 3] & 63)
            pos += 4
        out[count] = code
        count += 1
        greatest = max(greatest, code)
    return count, greatest


@njit(nogil=True)
def _short_distance(pattern, length, text, count, places):
    """Return the distance of a pattern of 1 to 64 characters by Myers' bits. A column of the table of
    distances is two words, which say where it rises and where it falls. ``places`` is zero, and is left so.
    """
    one = np.uint64(1)
    for k in range(length):
        places[pattern[k]] |= one << np.uint64(k)
    rises, falls, last = ~np.uint64(0), np.uint64(0), one << np.uint64(length - 1)
    distance = length
    for k in range(count):
        same = places[text[k]]
        vertical = same | falls
        horizontal = (((same & rises) + rises) ^ rises) | same
        up, down = falls | ~(horizontal | rises), rises & horizontal
        distance += I64(up & last != 0) - I64(down & last != 0)
        up, down = (up << one) | one, down << one
        rises, falls = down | ~(vertical | up), up & vertical
    for k in range(length):
        places[pattern[k]] = np.uint64(0)
    return distance


@njit(nogil=True)
def _long_distance(first, first_count, second, second_count, row):
    """Return the distance by a row of the table, which is overwritten character by character."""
    for j in range(second_count + 1):
        row[j] = j
    for i in range(first_count):
        before, row[0] = row[0], i + 1
        for j in range(second_count):
            changed = before + (first[i] != second[j])
            before = row[j + 1]
            row[j + 1] = min(min(row[j + 1], row[j]) + 1, changed)
    return row[second_count]


@kernel(VOID(IN_I32, IN_U8, IN_I32, IN_U8, OUT_I64, OUT_I64, OUT_I64, OUT_I32))
def levenshtein(
    first_offsets, first_bytes, second_offsets, second_bytes, first_out, second_out, row_out, out
):
    """Write the distance of two texts of each row, in characters. The scratch arrays have a word for each
    byte of the longest text, and one more.
    """
    first_data, second_data = pointer(first_bytes), pointer(second_bytes)
    first, second, row = pointer(first_out), pointer(second_out), pointer(row_out)
    places_array = np.zeros(_TABLED, np.uint64)
    places = pointer(places_array)
    for i in range(out.size):
        a, a_greatest = _decode(first_data, I64(first_offsets[i]), I64(first_offsets[i + 1]), first)
        b, b_greatest = _decode(second_data, I64(second_offsets[i]), I64(second_offsets[i + 1]), second)
        if a == 0 or b == 0:
            out[i] = a + b
        elif max(a_greatest, b_greatest) >= _TABLED or min(a, b) > _WORD_BITS:
            out[i] = _long_distance(first, a, second, b, row)
        elif a <= b:
            out[i] = _short_distance(first, a, second, b, places)
        else:
            out[i] = _short_distance(second, b, first, a, places)


@kernel(I64(IN_I32, IN_U8, OUT_U8, OUT_I64, OUT_U8))
def soundex(offsets, data, left, out_offsets, out):
    """Write the first letter and three digits of sounds of each text; return the number of bytes. A text that
    does not begin with a letter is written as it is. ``left`` is 1 for a text that is not ASCII.
    """
    at = 0
    out_offsets[0] = 0
    for i in range(left.size):
        begin, end = I64(offsets[i]), I64(offsets[i + 1])
        left[i] = 0
        for k in range(begin, end):
            left[i] |= data[k] >> 7
        if left[i] == 0 and begin < end:
            letter = (data[begin] | 32) - 97
            if 0 <= letter < 26:
                out[at] = data[begin] & 0xDF
                last, count = I64(_SOUNDS[letter]), 1
                k = begin + 1
                while k < end and count < 4:
                    letter = (data[k] | 32) - 97
                    sound = I64(_SOUNDS[letter]) if 0 <= letter < 26 else 0
                    k += 1
                    if sound == 7:
                        continue
                    if sound not in (0, last):
                        out[at + count] = 48 + sound
                        count += 1
                    last = sound
                while count < 4:
                    out[at + count] = 48
                    count += 1
                at += 4
            else:
                for k in range(begin, end):
                    out[at] = data[k]
                    at += 1
        out_offsets[i + 1] = at
    return at
