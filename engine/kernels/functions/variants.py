"""The one text of a JSON value: no blanks, fields in the order of their names, one form of each number and
string. VARIANT values are such texts.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.functions.json_paths import (
    blank_end,
    digits_end,
    hex_word,
    name_end,
    put_character,
    skip,
    string_end,
    word_end,
)
from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U8, OUT_I64, OUT_U8, VOID, kernel
from penstock.engine.kernels.pointers import pointer

WRITTEN, LEFT, REPEATED = 0, 1, 2
"""What became of a text: written, left to the general parser, or refused as it has a name twice."""
_DEEPEST = 60
_MOST_SORTED = 64
# a DECIMAL has 38 digits at most; a number with more is a double
_DECIMAL_DIGITS = 38


@njit(nogil=True)
def _hex_letter(digit):
    return digit + 48 if digit < 10 else digit + 55


@njit(nogil=True)
def put_escaped(out, at, code):
    """Write a character of a string, with an escape where JSON needs one; return the position behind."""
    if code in (34, 92):
        out[at] = 92
        out[at + 1] = code
        return at + 2
    if code >= 32:
        return put_character(out, at, code)
    out[at] = 92
    short = 0
    if code == 8:
        short = 98
    elif code == 9:
        short = 116
    elif code == 10:
        short = 110
    elif code == 12:
        short = 102
    elif code == 13:
        short = 114
    if short:
        out[at + 1] = short
        return at + 2
    out[at + 1] = 117
    out[at + 2] = 48
    out[at + 3] = 48
    out[at + 4] = _hex_letter(code >> 4)
    out[at + 5] = _hex_letter(code & 15)
    return at + 6


@njit(nogil=True)
def _unescaped(letter):
    """Return the character of an escape of one letter; a quote and a slash are their own."""
    if letter == 98:
        return 8
    if letter == 102:
        return 12
    if letter == 110:
        return 10
    if letter == 114:
        return 13
    return 9 if letter == 116 else letter


@njit(nogil=True)
def _put_string(data, pos, end, out, at):
    """Write the string at ``pos``; return the positions behind it in both, -1 where there is none."""
    behind, escaped = string_end(data, pos + 1, end)
    if behind < 0:
        return -1, at
    if not escaped:
        for k in range(pos, behind):
            out[at] = data[k]
            at += 1
        return behind, at
    out[at] = 34
    at += 1
    pos += 1
    while pos < behind - 1:
        code = np.int64(data[pos])
        pos += 1
        if code != 92:
            out[at] = code
            at += 1
            continue
        code = np.int64(data[pos])
        pos += 1
        if code == 117:
            code = hex_word(data, pos, end)
            pos += 4
            if 0xD800 <= code < 0xDC00:
                code = 0x10000 + ((code - 0xD800) << 10) + (hex_word(data, pos + 2, end) - 0xDC00)
                pos += 6
        else:
            code = _unescaped(code)
        at = put_escaped(out, at, code)
    out[at] = 34
    return behind, at + 1


@njit(nogil=True)
def _put_number(data, pos, end, out, at):
    """Write a whole number or a decimal without zeros at its end; return the positions behind it, -1 for what
    is no number and for one with an exponent.
    """
    begin = pos
    pos += pos < end and data[pos] == 45
    whole = pos
    pos = digits_end(data, pos, end)
    digits = pos - whole
    if digits == 0 or (digits > 1 and data[whole] == 48):
        return -1, at
    last = pos
    if pos < end and data[pos] == 46:
        point = pos
        pos = digits_end(data, pos + 1, end)
        if pos == point + 1:
            return -1, at
        digits += pos - point - 1
        last = pos
        while data[last - 1] == 48:
            last -= 1
        # 1.0 is 1
        last -= data[last - 1] == 46
    if digits > _DECIMAL_DIGITS or (pos < end and (data[pos] | 32) == 101):
        return -1, at
    # -0 is 0
    if last == whole + 1 and data[whole] == 48:
        begin = whole
    for k in range(begin, last):
        out[at] = data[k]
        at += 1
    return pos, at


@njit(nogil=True)
def _order(out, a_begin, a_end, b_begin, b_end):
    """Compare two names by their bytes: below zero, zero or above."""
    shorter = min(a_end - a_begin, b_end - b_begin)
    for k in range(shorter):
        if out[a_begin + k] != out[b_begin + k]:
            return np.int64(out[a_begin + k]) - np.int64(out[b_begin + k])
    return (a_end - a_begin) - (b_end - b_begin)


@njit(nogil=True)
def _sort_fields(out, begin, at, spans, first, count, copy):
    """Sort the fields of an object, which end at ``at``; return whether no name is there twice. A field has
    three words in ``spans``: where it begins, where its name ends, and where it ends.
    """
    sorted_already = True
    for i in range(first + 1, first + count):
        order = _order(out, spans[3 * i - 3] + 1, spans[3 * i - 2], spans[3 * i] + 1, spans[3 * i + 1])
        if order == 0:
            return WRITTEN, False
        sorted_already = sorted_already and order < 0
    if sorted_already:
        return WRITTEN, True
    if count > _MOST_SORTED:
        return LEFT, True
    for i in range(first + 1, first + count):
        k = i
        while k > first:
            order = _order(out, spans[3 * k - 3] + 1, spans[3 * k - 2], spans[3 * k] + 1, spans[3 * k + 1])
            if order == 0:
                return WRITTEN, False
            if order < 0:
                break
            for word in range(3):
                spans[3 * k + word], spans[3 * k - 3 + word] = spans[3 * k - 3 + word], spans[3 * k + word]
            k -= 1
    for k in range(begin, at):
        copy[k - begin] = out[k]
    target = begin
    for i in range(first, first + count):
        if i > first:
            out[target] = 44
            target += 1
        for k in range(spans[3 * i], spans[3 * i + 2]):
            out[target] = copy[k - begin]
            target += 1
    return WRITTEN, True


@njit(nogil=True)
def _put_scalar(data, pos, end, out, at):
    """Write a string, a number or a word; return the positions behind it in both, -1 where there is none."""
    byte = data[pos]
    if byte == 34:
        return _put_string(data, pos, end, out, at)
    if byte == 45 or 48 <= byte <= 57:
        return _put_number(data, pos, end, out, at)
    behind = word_end(data, pos, end)
    for k in range(pos, behind):
        out[at] = data[k]
        at += 1
    return behind, at


@njit(nogil=True)
def _put_name(data, pos, end, out, at, spans, field):
    """Write the name of a field and its colon; return the positions behind, -1 where there is none."""
    pos = blank_end(data, pos, end)
    if pos >= end or data[pos] != 34:
        return -1, at
    spans[3 * field] = at
    pos, at = _put_string(data, pos, end, out, at)
    if pos < 0:
        return -1, at
    spans[3 * field + 1] = at - 1
    pos = blank_end(data, pos, end)
    if pos >= end or data[pos] != 58:
        return -1, at
    out[at] = 58
    return pos + 1, at + 1


@njit(nogil=True)
def _push(stack, depth, byte, begin):
    """Add a container to the stack; return its first field, behind those of the objects around it."""
    first, frame = 0, 4 * depth
    if depth:
        first = stack[frame - 1] + (stack[frame - 2] + 1 if stack[frame - 4] == 125 else 0)
    stack[frame], stack[frame + 1], stack[frame + 2], stack[frame + 3] = byte + 2, begin, 0, first
    return first


@njit(nogil=True)
def _put_value(data, pos, end, out, at, spans, stack, copy):
    """Write a value; return a state and the positions behind it in both. ``stack`` has four words a container
    around ``pos``: its closing byte, where its content begins, how many values it has, its first field.
    """
    depth = 0
    while True:
        pos = blank_end(data, pos, end)
        if pos >= end:
            return LEFT, pos, at
        byte = np.int64(data[pos])
        opened = byte in (123, 91)
        if opened:
            if depth == _DEEPEST:
                return LEFT, pos, at
            first = _push(stack, depth, byte, at + 1)
            out[at] = byte
            at += 1
            depth += 1
            pos = blank_end(data, pos + 1, end)
            if pos < end and data[pos] != byte + 2:
                if byte == 123:
                    pos, at = _put_name(data, pos, end, out, at, spans, first)
                    if pos < 0:
                        return LEFT, pos, at
                continue
        else:
            pos, at = _put_scalar(data, pos, end, out, at)
            if pos < 0:
                return LEFT, pos, at
        # behind a value: a comma and the next, or the end of what it is in
        while True:
            if depth == 0:
                return WRITTEN, pos, at
            frame = 4 * depth - 4
            close, first = stack[frame], stack[frame + 3]
            if not opened:
                if close == 125:
                    spans[3 * (first + stack[frame + 2]) + 2] = at
                stack[frame + 2] += 1
            opened = False
            pos = blank_end(data, pos, end)
            if pos >= end:
                return LEFT, pos, at
            if data[pos] != close:
                break
            out[at] = close
            if close == 125:
                state, distinct = _sort_fields(
                    out, stack[frame + 1], at, spans, first, stack[frame + 2], copy
                )
                if not distinct or state != WRITTEN:
                    return (state if distinct else REPEATED), pos, at
            pos += 1
            at += 1
            depth -= 1
        if data[pos] != 44:
            return LEFT, pos, at
        out[at] = 44
        pos += 1
        at += 1
        if close == 125:
            pos, at = _put_name(data, pos, end, out, at, spans, first + stack[frame + 2])
            if pos < 0:
                return LEFT, pos, at


@kernel(I64(IN_I32, IN_U8, OUT_U8, OUT_I64, OUT_U8, OUT_I64, OUT_U8))
def write_canonical(offsets, bytes_in, states, out_offsets, out_bytes, spans_out, copy_out):
    """Write the one text of each JSON text, nothing for those that are not ``WRITTEN``. Return the number of
    bytes, at most that of the texts. ``spans_out`` has three words for each fourth byte of the longest text,
    ``copy_out`` as many bytes as that.
    """
    data, out, spans, copy = pointer(bytes_in), pointer(out_bytes), pointer(spans_out), pointer(copy_out)
    stack_array = np.zeros(4 * (_DEEPEST + 1), np.int64)
    stack, at = pointer(stack_array), 0
    out_offsets[0] = 0
    for i in range(states.size):
        begin, end = I64(offsets[i]), I64(offsets[i + 1])
        state, pos, behind = _put_value(data, begin, end, out, at, spans, stack, copy)
        if state == WRITTEN and blank_end(data, pos, end) != end:
            state = LEFT
        states[i] = state
        if state == WRITTEN:
            at = behind
        out_offsets[i + 1] = at
    return at


@kernel(VOID(IN_U8, IN_I64, IN_I64, IN_U8, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def locate_children(bytes_in, starts, ends, wanted, name_starts, name_ends, value_starts, value_ends):
    """Write the bounds of the elements, or of the fields and their names without quotes, of all wanted
    containers.
    """
    data, turn = pointer(bytes_in), 0
    for i in range(starts.size):
        if not wanted[i]:
            continue
        pos, end = starts[i], ends[i]
        in_object = data[pos] == 123
        pos = blank_end(data, pos + 1, end)
        while pos < end - 1:
            name_starts[turn] = name_ends[turn] = pos
            if in_object:
                closing, behind, _ = name_end(data, pos, end)
                name_starts[turn], name_ends[turn] = pos, closing
                pos = behind
            value_starts[turn] = pos
            pos, _, _ = skip(data, pos, end, np.uint64(0), 0, False)
            value_ends[turn] = pos
            turn += 1
            # the comma, or the end
            pos += 1
