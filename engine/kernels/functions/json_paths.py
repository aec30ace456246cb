"""The value at a path of JSON texts, found in one pass over the bytes that parses nothing it passes over.

A text that is not plain is left to the general parser: what is no strict JSON, more than 60 levels, a number
or an escape that is printed otherwise than it is written.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U8, OUT_I64, OUT_U8, VOID, kernel
from penstock.engine.kernels.pointers import pointer

LEFT, ABSENT, TEXT, ESCAPED, NUMBER, TRUTH, JSON_NULL, ARRAY, OBJECT = -1, 0, 1, 2, 3, 4, 5, 6, 7
"""What is at a path. LEFT: for the general parser. ESCAPED: a string with escapes."""
_DEEPEST = 60
# a double of so many digits is printed with the same digits
_EXACT_DIGITS = 15
_LONGEST_WHOLE = 18


@njit(nogil=True)
def blank_end(data, pos, end):
    """Return the position of the next byte that is no blank."""
    while pos < end and (data[pos] == 32 or data[pos] == 10 or data[pos] == 13 or data[pos] == 9):
        pos += 1
    return pos


@njit(nogil=True)
def hex_word(data, pos, end):
    """Return the number of four hexadecimal digits, -1 where there are none."""
    if pos + 4 > end:
        return -1
    word = 0
    for k in range(4):
        letter = data[pos + k]
        if 48 <= letter <= 57:
            digit = letter - 48
        elif 97 <= (letter | 32) <= 102:
            digit = (letter | 32) - 87
        else:
            return -1
        word = word * 16 + digit
    return word


@njit(nogil=True)
def _escape_end(data, pos, end):
    """Return the position behind an escape whose backslash is before ``pos``; -1 for an invalid one. Half of
    a surrogate pair is invalid, and so is the character 0, which DuckDB's texts cannot have.
    """
    if pos >= end:
        return -1
    letter = data[pos]
    if letter in (34, 92, 47, 98, 102, 110, 114, 116):
        return pos + 1
    if letter != 117:
        return -1
    high = hex_word(data, pos + 1, end)
    if high <= 0 or 0xDC00 <= high < 0xE000:
        return -1
    if high < 0xD800 or high >= 0xE000:
        return pos + 5
    # the second half follows as another escape
    if pos + 7 > end or data[pos + 5] != 92 or data[pos + 6] != 117:
        return -1
    low = hex_word(data, pos + 7, end)
    return pos + 11 if 0xDC00 <= low < 0xE000 else -1


@njit(nogil=True)
def string_end(data, pos, end):
    """Return the position behind a string that begins before ``pos``, and whether it has escapes; -1 where it
    does not end.
    """
    escaped = False
    while pos < end:
        byte = data[pos]
        if byte == 34:
            return pos + 1, escaped
        if byte < 32:
            return -1, escaped
        pos += 1
        if byte == 92:
            escaped = True
            pos = _escape_end(data, pos, end)
            if pos < 0:
                return -1, escaped
    return -1, escaped


@njit(nogil=True)
def digits_end(data, pos, end):
    """Return the position of the next byte that is no digit."""
    while pos < end and 48 <= data[pos] <= 57:
        pos += 1
    return pos


@njit(nogil=True)
def _number_end(data, pos, end):
    """Return the position behind a number, and whether it is printed as it is written; -1 for no number, and
    for one that may be too great for a double.
    """
    begin = pos
    pos += pos < end and data[pos] == 45
    whole = pos
    pos = digits_end(data, pos, end)
    digits = pos - whole
    # 01 is no number
    if digits == 0 or (digits > 1 and data[whole] == 48):
        return -1, False
    # -0 is a double
    same = digits <= _LONGEST_WHOLE and (digits > 1 or data[whole] != 48 or whole == begin)
    if pos < end and data[pos] == 46:
        point = pos
        pos = digits_end(data, pos + 1, end)
        if pos == point + 1:
            return -1, False
        # 1.50 is 1.5, 0.001 may be 1e-3, and 1.0 is a matter of the printer
        same = digits + pos - point - 1 <= _EXACT_DIGITS and data[pos - 1] != 48
        same = same and (data[whole] != 48 or data[point + 1] != 48)
    if pos < end and (data[pos] | 32) == 101:
        pos += 1
        pos += pos < end and (data[pos] == 43 or data[pos] == 45)
        negative = data[pos - 1] == 45
        exponent = pos
        pos = digits_end(data, pos, end)
        if pos == exponent or pos - exponent > 3:
            return -1, False
        if pos - exponent == 3 and not negative:
            power = np.int64(0)
            for k in range(exponent, pos):
                power = power * 10 + (np.int64(data[k]) - 48)
            # the greatest double is 1.8E308
            if digits + power > (309 if data[whole] == 49 else 308):
                return -1, False
        same = False
    return (pos, same) if pos - begin < 200 else (-1, False)


@njit(nogil=True)
def word_end(data, pos, end):
    """Return the position behind true, false or null, -1 when there is none of them."""
    if end - pos < 4:
        return -1
    first, second, third, fourth = data[pos], data[pos + 1], data[pos + 2], data[pos + 3]
    if first == 116 and second == 114 and third == 117 and fourth == 101:
        return pos + 4
    if first == 110 and second == 117 and third == 108 and fourth == 108:
        return pos + 4
    if first == 102 and second == 97 and third == 108 and fourth == 115 and end - pos >= 5:
        return pos + 5 if data[pos + 4] == 101 else -1
    return -1


@njit(nogil=True)
def name_end(data, pos, end):
    """Return the position behind the closing quote of a name and behind its colon, and whether it has
    escapes; -1 for no name.
    """
    pos = blank_end(data, pos, end)
    if pos >= end or data[pos] != 34:
        return -1, -1, False
    closed, escaped = string_end(data, pos + 1, end)
    if closed < 0:
        return -1, -1, False
    pos = blank_end(data, closed, end)
    return (closed, pos + 1, escaped) if pos < end and data[pos] == 58 else (-1, -1, False)


@njit(nogil=True)
def _plain_end(data, pos, end):
    """Return the position behind a string, a number or a word, and whether its JSON is printed as it is
    written.
    """
    if data[pos] == 34:
        behind, escaped = string_end(data, pos + 1, end)
        if not escaped or behind < 0:
            return behind, True
        for k in range(pos + 1, behind - 1):
            # \/ is printed as /, \u0041 as A; behind a backslash either is left to the printer
            if data[k] == 92 and (data[k + 1] == 47 or data[k + 1] == 117):
                return behind, False
        return behind, True
    if data[pos] == 45 or 48 <= data[pos] <= 57:
        return _number_end(data, pos, end)
    return word_end(data, pos, end), True


@njit(nogil=True)
def skip(data, pos, end, kinds, depth, behind):
    """Pass over values until all containers are closed. ``kinds`` has a bit a container around ``pos``: 1 for
    an object. ``behind``: a value has just ended.

    Return the position, -1 for what is no plain JSON. Return too whether the JSON is printed as it is
    written, and the values passed at the first level.
    """
    same, count, first = True, 0, depth + 1
    closed = False
    while True:
        if not behind:
            pos = blank_end(data, pos, end)
            if pos >= end:
                return -1, False, 0
            byte = data[pos]
            if byte in (123, 91):
                if depth == _DEEPEST:
                    return -1, False, 0
                kinds = (kinds << np.uint64(1)) | np.uint64(byte == 123)
                depth += 1
                pos = blank_end(data, pos + 1, end)
                if pos >= end:
                    return -1, False, 0
                # 125 and 93 close at once: empty
                closed = data[pos] == (125 if byte == 123 else 93)
                if not closed:
                    count += depth == first
                    if byte == 123:
                        name = blank_end(data, pos, end)
                        _, pos, escaped = name_end(data, pos, end)
                        if pos < 0:
                            return -1, False, 0
                        same = same and (not escaped or _plain_end(data, name, end)[1])
                    continue
            else:
                pos, plain = _plain_end(data, pos, end)
                same = same and plain
                if pos < 0:
                    return -1, False, 0
        behind = False
        # behind a value: a comma and the next, or the end of what it is in
        while True:
            if closed:
                pos += 1
                depth -= 1
                kinds >>= np.uint64(1)
            closed = False
            if depth == 0:
                return pos, same, count
            pos = blank_end(data, pos, end)
            if pos >= end:
                return -1, False, 0
            in_object = kinds & np.uint64(1) == np.uint64(1)
            closed = data[pos] == (125 if in_object else 93)
            if not closed:
                break
        if data[pos] != 44:
            return -1, False, 0
        pos += 1
        count += depth == first
        if in_object:
            name = blank_end(data, pos, end)
            _, pos, escaped = name_end(data, pos, end)
            if pos < 0:
                return -1, False, 0
            same = same and (not escaped or _plain_end(data, name, end)[1])


@njit(nogil=True)
def _child(data, pos, end, step_name, step_begin, step_end, index, canonical):
    """Return where a field or element of the container at ``pos`` begins, and a state: 1 it was found, 0 the
    container is behind ``pos`` without it, -1 for the general parser. ``index`` is -1 for a field.
    ``canonical``: names have one spelling, so those with escapes are compared too.
    """
    close = 125 if index < 0 else 93
    pos = blank_end(data, pos + 1, end)
    if pos >= end:
        return pos, -1
    if data[pos] == close:
        return pos + 1, 0
    at = 0
    while True:
        if index < 0:
            begin = blank_end(data, pos, end) + 1
            closing, pos, escaped = name_end(data, pos, end)
            # a name with an escape is compared by the general parser
            if pos < 0 or (escaped and not canonical):
                return pos, -1
            found = closing - 1 - begin == step_end - step_begin
            k = 0
            while found and k < step_end - step_begin:
                found = data[begin + k] == step_name[step_begin + k]
                k += 1
        else:
            found = at == index
            at += 1
        pos = blank_end(data, pos, end)
        if pos >= end:
            return pos, -1
        if found:
            return pos, 1
        pos, _, _ = skip(data, pos, end, np.uint64(0), 0, False)
        if pos < 0:
            return pos, -1
        pos = blank_end(data, pos, end)
        if pos >= end or (data[pos] != 44 and data[pos] != close):
            return pos, -1
        if data[pos] == close:
            return pos + 1, 0
        pos += 1


@njit(nogil=True)
def _kind_of(byte, escaped):
    """Return the kind of a value by its first byte."""
    if byte == 34:
        return ESCAPED if escaped else TEXT
    if byte == 123:
        return OBJECT
    if byte == 91:
        return ARRAY
    if byte == 110:
        return JSON_NULL
    return TRUTH if byte in (116, 102) else NUMBER


@njit(nogil=True)
def _locate(data, pos, end, names, steps, count, canonical):
    """Return what is at the path, where it begins and ends, and how many values it has."""
    kinds, depth = np.uint64(0), 0
    pos = blank_end(data, pos, end)
    if pos >= end:
        return LEFT, pos, pos, 0
    found = True
    for step in range(count):
        index = steps[3 * step]
        # a field of an object, an element of an array; anything else has none
        if data[pos] != (123 if index < 0 else 91):
            found = False
            break
        pos, state = _child(data, pos, end, names, steps[3 * step + 1], steps[3 * step + 2], index, canonical)
        if state < 0:
            return LEFT, pos, pos, 0
        if state == 0:
            found = False
            # the container is behind
            pos, _, _ = skip(data, pos, end, kinds, depth, True)
            return (ABSENT if pos >= 0 and blank_end(data, pos, end) == end else LEFT), pos, pos, 0
        kinds = (kinds << np.uint64(1)) | np.uint64(index < 0)
        depth += 1
    begin = pos
    behind, same, values = skip(data, pos, end, np.uint64(0), 0, False)
    if behind < 0:
        return LEFT, pos, pos, 0
    # the rest must be JSON too
    pos, _, _ = skip(data, behind, end, kinds, depth, True)
    if pos < 0 or blank_end(data, pos, end) != end:
        return LEFT, begin, begin, 0
    if not found:
        return ABSENT, begin, begin, 0
    escaped = False
    if data[begin] == 34:
        for k in range(begin + 1, behind - 1):
            escaped = escaped or data[k] == 92
    elif not (same or canonical):
        return LEFT, begin, behind, values
    return _kind_of(data[begin], escaped), begin, behind, values


@kernel(VOID(IN_I32, IN_U8, IN_U8, IN_I64, I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def locate(offsets, bytes_in, names_in, steps_in, canonical, kinds, starts, ends, counts):
    """Write the kind of the value at a path of each text, where it begins and ends, and how many elements or
    fields it has. A step is an index, or -1 and the bounds of its name. ``canonical`` is 1 for texts of
    ``variants``, of which none is left.
    """
    data, names, steps, count = pointer(bytes_in), pointer(names_in), pointer(steps_in), steps_in.size // 3
    for i in range(kinds.size):
        begin, end = I64(offsets[i]), I64(offsets[i + 1])
        # no text, or none with a value
        if begin == end:
            kinds[i], starts[i], ends[i], counts[i] = ABSENT, begin, begin, 0
        else:
            kinds[i], starts[i], ends[i], counts[i] = _locate(
                data, begin, end, names, steps, count, canonical
            )


@njit(nogil=True)
def put_character(out, at, code):
    """Write a character as UTF-8; return the position behind."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | (code >> 6)
        out[at + 1] = 0x80 | (code & 63)
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | (code >> 12)
        out[at + 1] = 0x80 | ((code >> 6) & 63)
        out[at + 2] = 0x80 | (code & 63)
        return at + 3
    out[at] = 0xF0 | (code >> 18)
    out[at + 1] = 0x80 | ((code >> 12) & 63)
    out[at + 2] = 0x80 | ((code >> 6) & 63)
    out[at + 3] = 0x80 | (code & 63)
    return at + 4


@njit(nogil=True)
def put_unescaped(data, pos, end, out, at):
    """Write a string without its escapes; return the position behind."""
    while pos < end:
        byte = data[pos]
        pos += 1
        if byte != 92:
            out[at] = byte
            at += 1
            continue
        letter = data[pos]
        pos += 1
        if letter == 117:
            code = hex_word(data, pos, end)
            pos += 4
            if 0xD800 <= code < 0xDC00:
                code = 0x10000 + ((code - 0xD800) << 10) + (hex_word(data, pos + 2, end) - 0xDC00)
                pos += 6
            at = put_character(out, at, code)
            continue
        if letter == 110:
            letter = np.uint8(10)
        elif letter == 116:
            letter = np.uint8(9)
        elif letter == 114:
            letter = np.uint8(13)
        elif letter == 98:
            letter = np.uint8(8)
        elif letter == 102:
            letter = np.uint8(12)
        out[at] = letter
        at += 1
    return at


@njit(nogil=True)
def _put_without_blanks(data, pos, end, out, at):
    """Write an object or array without the blanks between its values; return the position behind."""
    quoted = False
    while pos < end:
        byte = data[pos]
        pos += 1
        if not quoted and byte in (32, 10, 13, 9):
            continue
        out[at] = byte
        at += 1
        if byte == 92:
            # the letter behind a backslash ends no string
            out[at] = data[pos]
            at += 1
            pos += 1
        elif byte == 34:
            quoted = not quoted
    return at


@kernel(I64(IN_U8, IN_I64, IN_I64, IN_I64, OUT_I64, OUT_U8))
def write_values(bytes_in, kinds, starts, ends, out_offsets, out):
    """Write the values that ``locate`` found as texts, those of other kinds as empty texts. Return the number
    of bytes, at most the sum of the values' lengths.
    """
    data, target, at = pointer(bytes_in), pointer(out), 0
    out_offsets[0] = 0
    for i in range(kinds.size):
        begin, end = starts[i], ends[i]
        if kinds[i] == ESCAPED:
            at = put_unescaped(data, begin + 1, end - 1, target, at)
        elif kinds[i] in (ARRAY, OBJECT):
            at = _put_without_blanks(data, begin, end, target, at)
        elif kinds[i] in (TEXT, NUMBER, TRUTH):
            quotes = 1 if kinds[i] == TEXT else 0
            for k in range(begin + quotes, end - quotes):
                target[at] = data[k]
                at += 1
        out_offsets[i + 1] = at
    return at
