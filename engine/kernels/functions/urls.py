"""URLs: percent-encoding of texts, and the parts of a URL."""

from __future__ import annotations

from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_U8, OUT_I64, OUT_U8, VOID, kernel
from penstock.engine.kernels.pointers import pointer

PROTOCOL, AUTHORITY, USERINFO, HOST, PATH, QUERY, REF, FILE = 0, 1, 2, 3, 4, 5, 6, 7
"""Parts of a URL."""


@njit(nogil=True)
def _is_plain(byte):
    """Whether a byte stays as it is: a letter, a digit, or one of * - . _"""
    lower = byte | 32
    return 97 <= lower <= 122 or 48 <= byte <= 57 or byte in (42, 45, 46, 95)


@njit(nogil=True)
def _hex_digit(byte):
    if 48 <= byte <= 57:
        return I64(byte) - 48
    lower = I64(byte) | 32
    return lower - 87 if 97 <= lower <= 102 else -1


@kernel(I64(IN_I32, IN_U8, OUT_I64, OUT_U8))
def encode(offsets, data, out_offsets, out):
    """Write each text with all but plain bytes as %XX and blanks as +; return the number of bytes, at most
    three times the texts'.
    """
    at = 0
    out_offsets[0] = 0
    for i in range(out_offsets.size - 1):
        for k in range(offsets[i], offsets[i + 1]):
            byte = data[k]
            if _is_plain(byte):
                out[at] = byte
                at += 1
            elif byte == 32:
                out[at] = 43
                at += 1
            else:
                high, low = byte >> 4, byte & 15
                out[at] = 37
                out[at + 1] = high + (48 if high < 10 else 55)
                out[at + 2] = low + (48 if low < 10 else 55)
                at += 3
        out_offsets[i + 1] = at
    return at


@njit(nogil=True)
def _is_utf8(data, pos, end):
    while pos < end:
        byte = data[pos]
        more = 0
        low, high = 0x80, 0xBF
        if byte >= 0x80:
            if 0xC2 <= byte < 0xE0:
                more = 1
            elif 0xE0 <= byte < 0xF0:
                more = 2
                # no longer form of a shorter one, and no half of a surrogate pair
                low = 0xA0 if byte == 0xE0 else 0x80
                high = 0x9F if byte == 0xED else 0xBF
            elif 0xF0 <= byte < 0xF5:
                more = 3
                low = 0x90 if byte == 0xF0 else 0x80
                high = 0x8F if byte == 0xF4 else 0xBF
            else:
                return False
        if pos + more >= end:
            return False
        for k in range(more):
            if not low <= data[pos + 1 + k] <= high:
                return False
            low, high = 0x80, 0xBF
        pos += 1 + more
    return True


@kernel(I64(IN_I32, IN_U8, OUT_U8, OUT_I64, OUT_U8))
def decode(offsets, data, left, out_offsets, out):
    """Write each text without its encoding; return the number of bytes. ``left`` is 1 for a text with a %
    that precedes no two digits, or whose bytes are no UTF-8.
    """
    at = 0
    out_offsets[0] = 0
    for i in range(left.size):
        k, end, begin = I64(offsets[i]), I64(offsets[i + 1]), at
        left[i] = 0
        wide = False
        while k < end:
            byte = I64(data[k])
            if byte == 37:
                high = _hex_digit(data[k + 1]) if k + 2 < end else -1
                low = _hex_digit(data[k + 2]) if k + 2 < end else -1
                if high < 0 or low < 0:
                    left[i] = 1
                    break
                byte = high * 16 + low
                wide = wide or byte >= 0x80
                k += 2
            elif byte == 43:
                byte = 32
            out[at] = byte
            at += 1
            k += 1
        if wide and left[i] == 0 and not _is_utf8(out, begin, at):
            left[i] = 1
        if left[i]:
            at = begin
        out_offsets[i + 1] = at
    return at


@njit(nogil=True)
def _is_unsafe(data, pos, end):
    """Whether a URL has a byte that none can have: blanks, controls, what is not ASCII, and
    < > " { } | \\ ^ `
    """
    unsafe = False
    # all are read: without a way out of the loop many bytes are compared at once
    for k in range(pos, end):
        byte = data[k]
        unsafe |= (byte <= 32) | (byte >= 127) | (byte == 34) | (byte == 60) | (byte == 62) | (byte == 92)
        unsafe |= (byte == 94) | (byte == 96) | ((byte >= 123) & (byte <= 125))
    return unsafe


@njit(nogil=True)
def _until(data, pos, end, first, second, third):
    """Return where one of three bytes is, or the end."""
    while pos < end and data[pos] != first and data[pos] != second and data[pos] != third:
        pos += 1
    return pos


@njit(nogil=True)
def _value_of(data, pos, end, key, length):
    """Return the bounds of the value of a key of a query; -1 where there is none."""
    while pos < end:
        stop = _until(data, pos, end, 38, 38, 38)
        same = stop - pos > length and data[pos + length] == 61
        k = 0
        while same and k < length:
            same = data[pos + k] == key[k]
            k += 1
        if same:
            return pos + length + 1, stop
        pos = stop + 1
    return -1, -1


@njit(nogil=True)
def _part(data, pos, end, part, key, length):
    """Return whether a URL is scheme://authority and so on, and the bounds of a part: -1 for none."""
    if _is_unsafe(data, pos, end):
        return False, -1, -1
    colon = _until(data, pos, end, 58, 47, 63)
    if colon + 2 >= end or data[colon] != 58 or data[colon + 1] != 47 or data[colon + 2] != 47:
        return False, -1, -1
    for k in range(pos, colon):
        lower = data[k] | 32
        if not (97 <= lower <= 122 or (k > pos and (48 <= data[k] <= 57 or data[k] in (43, 45, 46)))):
            return False, -1, -1
    authority = colon + 3
    path = _until(data, authority, end, 47, 63, 35)
    at = _until(data, authority, path, 64, 64, 64)
    host = at + 1 if at < path else authority
    port = _until(data, host, path, 58, 64, 91)
    for k in range(port + 1, path):
        if not 48 <= data[k] <= 57:
            return False, -1, -1
    # a second @, and [::1]
    if colon == pos or (port < path and data[port] != 58):
        return False, -1, -1
    query = _until(data, path, end, 63, 35, 35)
    ref = _until(data, query, end, 35, 35, 35)
    if part == PROTOCOL:
        return True, pos, colon
    if part == AUTHORITY:
        return True, authority, path
    if part == USERINFO:
        return True, (authority if at < path else -1), at
    if part == HOST:
        return True, (host if port > host else -1), port
    if part == PATH:
        return True, path, query
    if part == FILE:
        return True, path, ref
    if part == REF:
        return True, (ref + 1 if ref < end else -1), end
    if query >= end or data[query] != 63:
        return True, -1, -1
    if length:
        begin, stop = _value_of(data, query + 1, ref, key, length)
        return True, begin, stop
    return True, query + 1, ref


@kernel(VOID(IN_I32, IN_U8, I64, IN_U8, I64, OUT_U8, OUT_I64, OUT_I64))
def locate_part(offsets, bytes_in, part, key_in, with_key, left, starts, lengths):
    """Write where a part of each URL begins and its length, -1 where it has none. ``left`` is 1 for a URL
    that is not of the usual form. ``key`` is a key of the query, read where ``with_key`` is 1.
    """
    data, key, length = pointer(bytes_in), pointer(key_in), key_in.size if with_key else 0
    for i in range(left.size):
        usual, begin, end = _part(data, I64(offsets[i]), I64(offsets[i + 1]), part, key, length)
        left[i] = not usual
        starts[i] = max(begin, 0)
        lengths[i] = end - begin if begin >= 0 else -1
