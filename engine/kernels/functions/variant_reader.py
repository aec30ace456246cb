"""VARIANT values in the binary encoding of Parquet and Spark as JSON. Nothing in a file is believed: each
position is tested, and a value is refused of which more bytes are read than it has.

Values that are neither numbers, texts nor words (doubles, times, bytes) are listed, for Arrow to write, and
put in by the second pass.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.functions.variants import put_escaped
from penstock.engine.kernels.kernel import BOOL, I64, IN_I64, IN_U8, OUT_I64, OUT_U8, kernel
from penstock.engine.kernels.pointers import pointer

_DEEPEST = 60
DIGITS = 42
"""Bytes that must be behind the end of what is written: a number is written from its last digit."""
_LARGEST = 1 << 31
"""A value whose text is longer is refused: few names, each of them long, may be those of many fields."""
_FRAME = 7
"""Words of a container: whether it is an object, its values, the next one, where identifiers, offsets and
values begin, and the widths of offsets and identifiers.
"""
_PIECES = np.full(24, -2, np.int64)
"""Bytes of the values that are listed, by type; below zero where there is no such type."""
for _type, _bytes in (
    (7, 8),
    (11, 4),
    (12, 8),
    (13, 8),
    (14, 4),
    (17, 8),
    (18, 8),
    (19, 8),
    (20, 16),
):
    _PIECES[_type] = _bytes


@njit(nogil=True)
def _get(data, at, width):
    value = np.int64(0)
    for k in range(width):
        value |= np.int64(data[at + k]) << (8 * k)
    return value


@njit(nogil=True)
def _signed(data, at, width):
    value = _get(data, at, width)
    if width < 8 and data[at + width - 1] >= 128:
        value -= np.int64(1) << (8 * width)
    return value


@njit(nogil=True)
def _put_text(data, begin, end, out, at, writes):
    """Write bytes as a string of JSON; return the position behind."""
    if writes:
        out[at] = 34
    at += 1
    for k in range(begin, end):
        byte = np.int64(data[k])
        if byte >= 32 and byte not in (34, 92):
            if writes:
                out[at] = byte
            at += 1
        elif writes:
            at = put_escaped(out, at, byte)
        else:
            at += 2 if byte >= 32 else 6
    if writes:
        out[at] = 34
    return at + 1


@njit(nogil=True)
def _put_digits(limbs, negative, scale, out, at):
    """Write the number in four limbs of 32 bits as decimal digits; return the position behind. The limbs are
    zero afterwards, and ``DIGITS`` bytes of ``out`` are overwritten.
    """
    end = at + DIGITS - 1
    last, digits = end, 0
    while digits <= scale or limbs[0] or limbs[1] or limbs[2] or limbs[3]:
        rest = np.int64(0)
        for k in range(4):
            rest = (rest << 32) | limbs[3 - k]
            limbs[3 - k] = rest // 10
            rest -= limbs[3 - k] * 10
        if digits == scale and scale:
            last -= 1
            out[last] = 46
        last -= 1
        out[last] = 48 + rest
        digits += 1
    if negative:
        out[at] = 45
        at += 1
    for k in range(last, end):
        out[at] = out[k]
        at += 1
    return at


@njit(nogil=True)
def _put_number(data, at_in, width, scale, out, at, writes, limbs):
    """Write a whole number or a decimal of so many bytes; return the position behind."""
    if not writes:
        # a sign, a point, and the digits of a number or the zeros in front of it
        digits = 39 if width == 16 else 19 if width == 8 else 10 if width == 4 else 5
        return at + 2 + max(digits, scale + 1)
    negative = data[at_in + width - 1] >= 128
    carry = np.int64(1) if negative else np.int64(0)
    for limb in range(4):
        part = np.int64(0)
        for k in range(4):
            byte = np.int64(255 if negative else 0)
            if 4 * limb + k < width:
                byte = np.int64(data[at_in + 4 * limb + k])
            part |= byte << (8 * k)
        if negative:
            part = (part ^ 0xFFFFFFFF) + carry
            carry = part >> 32
            part &= 0xFFFFFFFF
        limbs[limb] = part
    return _put_digits(limbs, negative, scale, out, at)


@njit(nogil=True)
def _put_word(word, out, at, writes):
    """Write null (0), true (1) or false (2); return the position behind."""
    if writes:
        if word == 0:
            out[at], out[at + 1], out[at + 2], out[at + 3] = 110, 117, 108, 108
        elif word == 1:
            out[at], out[at + 1], out[at + 2], out[at + 3] = 116, 114, 117, 101
        else:
            out[at], out[at + 1], out[at + 2], out[at + 3], out[at + 4] = 102, 97, 108, 115, 101
    return at + (5 if word == 2 else 4)


@njit(nogil=True)
def _scalar_bytes(data, pos, end):
    """Return how many bytes a value that is no container has, -1 where it is none or ends behind ``end``."""
    head = np.int64(data[pos])
    more = head >> 2
    size = np.int64(-1)
    if head & 3 == 1:
        size = 1 + more
    elif more <= 2:
        size = np.int64(1)
    elif more <= 6:
        size = 1 + (np.int64(1) << (more - 3))
    elif 8 <= more <= 10:
        size = 2 + (np.int64(4) << (more - 8))
    elif more in (15, 16):
        size = 5 + _get(data, pos + 1, 4) if pos + 5 <= end else size
    elif more <= 20:
        size = 1 + _PIECES[more]
    if size > end - pos or (8 <= more <= 10 and head & 3 == 0 and size > 0 and data[pos + 1] > 38):
        return np.int64(-1)
    return size


@njit(nogil=True)
def _put_scalar(data, pos, size, out, at, writes, limbs, pieces, piece_offsets, piece_bytes):
    """Write a value that is no container, which has ``size`` bytes; return the position behind it in
    ``out``.
    """
    head = np.int64(data[pos])
    kind, more = head & 3, head >> 2
    if kind == 1:
        return _put_text(data, pos + 1, pos + size, out, at, writes)
    if more <= 2:
        return _put_word(more, out, at, writes)
    if more <= 6:
        return _put_number(data, pos + 1, size - 1, 0, out, at, writes, limbs)
    if 8 <= more <= 10:
        return _put_number(data, pos + 2, size - 2, np.int64(data[pos + 1]), out, at, writes, limbs)
    if more == 16:
        return _put_text(data, pos + 5, pos + size, out, at, writes)
    turn = pieces[0]
    pieces[0] += 1
    if not writes:
        before = 5 if more == 15 else 1
        pieces[3 * turn + 1], pieces[3 * turn + 2], pieces[3 * turn + 3] = more, pos + before, size - before
        return at
    for k in range(piece_offsets[turn], piece_offsets[turn + 1]):
        out[at] = piece_bytes[k]
        at += 1
    return at


@njit(nogil=True)
def _open(data, pos, end, stack, frame):
    """Read the head of a container; return whether all of it is there."""
    head = np.int64(data[pos])
    in_object, more = head & 3 == 2, head >> 2
    width = (more & 3) + 1
    id_width = ((more >> 2) & 3) + 1 if in_object else 0
    large = (more >> 4) & 1 if in_object else (more >> 2) & 1
    pos += 1
    count_width = 4 if large else 1
    if pos + count_width > end:
        return False
    count = _get(data, pos, count_width)
    pos += count_width
    begin = pos + count * (id_width + width) + width
    if begin > end:
        return False
    stack[frame], stack[frame + 1], stack[frame + 2] = np.int64(in_object), count, 0
    stack[frame + 3], stack[frame + 4], stack[frame + 5] = pos, pos + count * id_width, begin
    stack[frame + 6] = 8 * width + id_width
    return True


@njit(nogil=True)
def _put_name(names, begin, end, known, out, at, writes):
    """Write the name of a field and its colon; return the position behind, -1 where there is no such name."""
    if end - begin < 1 or names[begin] & 15 != 1:
        return -1
    width = (np.int64(names[begin]) >> 6) + 1
    if begin + 1 + width > end:
        return -1
    count = _get(names, begin + 1, width)
    first = begin + 1 + width * (count + 2)
    if known >= count or first > end:
        return -1
    low = first + _get(names, begin + 1 + width * (known + 1), width)
    high = first + _get(names, begin + 1 + width * (known + 2), width)
    if not low <= high <= end:
        return -1
    at = _put_text(names, low, high, out, at, writes)
    if writes:
        out[at] = 58
    return at + 1


@njit(nogil=True)
def _put_value(data, pos, end, names, names_begin, names_end, out, at, writes, stack, limbs, pieces,
               piece_offsets, piece_bytes):  # fmt: skip
    """Write one value; return the position behind it, -1 where it is none."""
    depth, frame, left, first = 0, -_FRAME, end - pos, at
    while True:
        # values share no bytes, so one whose parts have more bytes than it has leads in a circle or repeats
        if pos >= end or left <= 0 or at - first > _LARGEST:
            return -1
        if np.int64(data[pos]) & 3 >= 2:
            left -= 1
            depth += 1
            frame += _FRAME
            if depth > _DEEPEST or not _open(data, pos, end, stack, frame):
                return -1
            if writes:
                out[at] = 123 if stack[frame] else 91
            at += 1
        else:
            size = _scalar_bytes(data, pos, end)
            left -= size
            if size < 0 or left < 0:
                return -1
            at = _put_scalar(data, pos, size, out, at, writes, limbs, pieces, piece_offsets, piece_bytes)
        while depth and stack[frame + 2] == stack[frame + 1]:
            if writes:
                out[at] = 125 if stack[frame] else 93
            at += 1
            depth -= 1
            frame -= _FRAME
        if not depth:
            return at
        turn = stack[frame + 2]
        stack[frame + 2] += 1
        if turn:
            if writes:
                out[at] = 44
            at += 1
        width, id_width = stack[frame + 6] >> 3, stack[frame + 6] & 7
        if stack[frame]:
            known = _get(data, stack[frame + 3] + id_width * turn, id_width)
            at = _put_name(names, names_begin, names_end, known, out, at, writes)
            if at < 0:
                return -1
        pos = stack[frame + 5] + _get(data, stack[frame + 4] + width * turn, width)


@kernel(I64(IN_U8, IN_I64, IN_U8, IN_I64, IN_U8, OUT_I64, BOOL, I64, IN_I64, IN_U8, OUT_I64, OUT_U8, OUT_U8))
def read(values, value_offsets, names_in, name_offsets, valid, pieces_out, writes, most, piece_offsets_in,
         pieces_in, out_offsets, out_bytes, states):  # fmt: skip
    """Write the JSON of each value. Without ``writes`` only measure a bound of its bytes, and list the values
    that Arrow writes: ``pieces_out`` has their number, then type, position and length of each. Measuring ends
    early beyond ``most`` bytes. With it ``pieces_in`` are those, as JSON, and ``out_bytes`` has ``DIGITS``
    bytes more than that bound. ``states``: 1 where a value is none. Return the number of bytes.
    """
    data, names, out, pieces = pointer(values), pointer(names_in), pointer(out_bytes), pointer(pieces_out)
    piece_offsets, piece_bytes = pointer(piece_offsets_in), pointer(pieces_in)
    stack_array, limbs_array = np.zeros(_FRAME * (_DEEPEST + 1), np.int64), np.zeros(4, np.int64)
    stack, limbs, at = pointer(stack_array), pointer(limbs_array), I64(0)
    pieces[0] = 0
    out_offsets[0] = 0
    for i in range(value_offsets.size - 1):
        known = pieces[0]
        if valid.size == 0 or valid[i]:
            if writes and states[i]:
                behind = np.int64(-1)
            else:
                behind = _put_value(
                    data, value_offsets[i], value_offsets[i + 1], names, name_offsets[i],
                    name_offsets[i + 1], out, at, writes, stack, limbs, pieces, piece_offsets, piece_bytes,
                )  # fmt: skip
            if behind < 0:
                states[i] = 1
                pieces[0] = known
            else:
                at = behind
        out_offsets[i + 1] = at
        if at > most:
            return at
    return at
