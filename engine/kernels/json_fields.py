"""Flat JSON objects, one a value: one pass over the bytes writes the columns.

A value that is not plain is left to the general parser. That is a nested column, an escape that is no single
character, a number with more digits than a word, a name twice, and whatever is no JSON. What is passed over
(fields that nobody wants) is checked to be JSON all the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.types import UniTuple

from penstock.engine.kernels.kernel import BOOL, I64, IN_I64, IN_U8, OUT_F64, OUT_I64, OUT_U8, kernel
from penstock.engine.kernels.pointers import P_F64, P_I64, P_U8, pointer

INT, DOUBLE, EXACT_LATER, TRUTH, TEXT, DECIMAL, JSON = 0, 1, 2, 3, 4, 5, 6
"""Kinds of columns. Numbers of EXACT_LATER are only found here, and parsed by Arrow. JSON is any
value, as it is written.
"""
COLUMN_WIDTH = 6
"""Numbers of a column: kind, begin and end of its name, two limits, and where its texts begin."""
_EXACT_DIGITS = 18
_LONGEST = 200
"""Characters of a number: below 10^200, times 10^99 by its exponent, a double does not overflow."""
_TENS = 10.0 ** np.arange(23)
_EXACT_WHOLE = 1 << 53


@njit(BOOL(I64), nogil=True, cache=True)
def _is_digit(byte):
    return 48 <= byte <= 57


@njit(BOOL(I64), nogil=True, cache=True)
def _is_text(kind):
    """Return whether the values of a kind are bytes among ``texts``."""
    return kind in (TEXT, JSON)


@njit(I64(P_U8, I64, I64), nogil=True, cache=True)
def _blank_end(data, pos, end):
    """Return the position of the next byte that is no blank."""
    while pos < end and (data[pos] == 32 or data[pos] == 10 or data[pos] == 13 or data[pos] == 9):
        pos += 1
    return pos


@njit(I64(P_U8, I64, I64), nogil=True, cache=True)
def _number_end(data, pos, end):
    """Return the position behind a number of JSON; -1 when there is none, or it may be too great for a
    double.
    """
    begin = pos
    if pos < end and data[pos] == 45:
        pos += 1
    if pos >= end or not _is_digit(data[pos]):
        return -1
    if data[pos] == 48:
        pos += 1
    else:
        while pos < end and _is_digit(data[pos]):
            pos += 1
    if pos < end and data[pos] == 46:
        pos += 1
        if pos >= end or not _is_digit(data[pos]):
            return -1
        while pos < end and _is_digit(data[pos]):
            pos += 1
    # 101 and 69 are e and E
    if pos < end and (data[pos] | 32) == 101:
        pos += 1
        if pos < end and (data[pos] == 43 or data[pos] == 45):
            pos += 1
        if pos >= end or not _is_digit(data[pos]):
            return -1
        exponent = pos
        while pos < end and _is_digit(data[pos]):
            pos += 1
        if pos - exponent > 2:
            return -1
    return pos if pos - begin < _LONGEST else -1


@njit(I64(I64), nogil=True, cache=True)
def _unescaped(byte):
    """Return the character of an escape of one letter, -1 for another."""
    if byte in (34, 92, 47):
        return byte
    if byte == 110:
        return 10
    if byte == 116:
        return 9
    if byte == 114:
        return 13
    if byte == 98:
        return 8
    return 12 if byte == 102 else -1


@njit(I64(P_U8, I64, I64), nogil=True, cache=True)
def _string_end(data, pos, end):
    """Return the position behind a string that begins before ``pos``; -1 where it does not end, or is for the
    general parser.
    """
    while pos < end:
        byte = data[pos]
        if byte == 34:
            return pos + 1
        if byte < 32:
            return -1
        if byte == 92:
            pos += 1
            # \u may be half of a character: the general parser knows
            if pos >= end or _unescaped(data[pos]) < 0:
                return -1
        pos += 1
    return -1


@njit(I64(P_U8, I64, I64), nogil=True, cache=True)
def _word_end(data, pos, end):
    """Return the position behind true, false or null, -1 when there is none of them."""
    if end - pos >= 4:
        first, second, third, fourth = data[pos], data[pos + 1], data[pos + 2], data[pos + 3]
        if first == 116 and second == 114 and third == 117 and fourth == 101:
            return pos + 4
        if first == 110 and second == 117 and third == 108 and fourth == 108:
            return pos + 4
        if first == 102 and second == 97 and third == 108 and fourth == 115 and end - pos >= 5:
            return pos + 5 if data[pos + 4] == 101 else -1
    return -1


@njit(I64(P_U8, I64, I64), nogil=True, cache=True)
def _name_end(data, pos, end):
    """Return the position behind a name and its colon, -1 when there is none."""
    pos = _blank_end(data, pos, end)
    if pos >= end or data[pos] != 34:
        return -1
    pos = _string_end(data, pos + 1, end)
    if pos < 0:
        return -1
    pos = _blank_end(data, pos, end)
    return pos + 1 if pos < end and data[pos] == 58 else -1


@njit(I64(P_U8, I64, I64), nogil=True, cache=True)
def _plain_end(data, pos, end):
    """Return the position behind a string, a number or a word."""
    if data[pos] == 34:
        return _string_end(data, pos + 1, end)
    if data[pos] == 45 or _is_digit(data[pos]):
        return _number_end(data, pos, end)
    return _word_end(data, pos, end)


@njit(I64(P_U8, I64, I64), nogil=True, cache=True)
def _value_end(data, pos, end):
    """Return the position behind a value of any kind, -1 where it is no JSON or too deep."""
    # a bit a level: 1 in an object, 0 in an array
    kinds, depth = np.uint64(0), 0
    while True:
        pos = _blank_end(data, pos, end)
        if pos >= end:
            return -1
        byte = data[pos]
        closed = False
        if byte in (123, 91):
            if depth == 60:
                return -1
            kinds = (kinds << np.uint64(1)) | np.uint64(byte == 123)
            depth += 1
            pos = _blank_end(data, pos + 1, end)
            if pos >= end:
                return -1
            # 125 and 93 close at once: empty
            closed = data[pos] == (125 if byte == 123 else 93)
            if not closed:
                if byte == 123:
                    pos = _name_end(data, pos, end)
                    if pos < 0:
                        return -1
                continue
        else:
            pos = _plain_end(data, pos, end)
            if pos < 0:
                return -1
        # behind a value: a comma and the next, or the end of what it is in
        while True:
            if closed:
                pos += 1
                depth -= 1
                kinds >>= np.uint64(1)
            if depth == 0:
                return pos
            pos = _blank_end(data, pos, end)
            if pos >= end:
                return -1
            in_object = kinds & np.uint64(1) == 1
            closed = data[pos] == (125 if in_object else 93)
            if not closed:
                break
        if data[pos] != 44:
            return -1
        pos += 1
        if in_object:
            pos = _name_end(data, pos, end)
            if pos < 0:
                return -1


@njit(I64(P_U8, I64, I64, P_U8, P_I64, I64, I64), nogil=True, cache=True)
def _column(data, begin, end, names, columns, count, guess):
    """Return the column of a name, the guessed one first; -1 when nobody wants it."""
    length = end - begin
    for step in range(count):
        column = guess + step
        if column >= count:
            column -= count
        first = columns[column * COLUMN_WIDTH + 1]
        if columns[column * COLUMN_WIDTH + 2] - first == length:
            same = 0
            for i in range(length):
                same += data[begin + i] == names[first + i]
            if same == length:
                return column
    return -1


@njit(I64(P_U8, I64, I64, P_U8, I64), nogil=True, cache=True)
def _copy_text(data, pos, end, texts, into):
    """Copy a string that begins before ``pos`` to ``texts``. Return the position behind, -1 for the general
    parser.
    """
    while pos < end:
        byte = data[pos]
        if byte == 34:
            return pos + 1
        if byte < 32:
            return -1
        if byte == 92:
            pos += 1
            letter = _unescaped(data[pos]) if pos < end else -1
            if letter < 0:
                return -1
            byte = np.uint8(letter)
        texts[into] = byte
        into += 1
        pos += 1
    return -1


@njit(UniTuple(I64, 3)(P_U8, I64, I64), nogil=True, cache=True)
def _digits(data, pos, end):
    """Return the digits of a number without its exponent as one whole number, how many are behind the point,
    and how many there are. The latter is -1 when they do not fit a word.
    """
    whole, behind, count, pointed = 0, 0, 0, False
    while pos < end and (data[pos] == 46 or _is_digit(data[pos])):
        if data[pos] == 46:
            pointed = True
        else:
            # zeros in front are no digits
            count += whole != 0 or data[pos] != 48
            behind += pointed
            if count > _EXACT_DIGITS:
                return 0, 0, -1
            whole = whole * 10 + (data[pos] - 48)
        pos += 1
    return whole, behind, count


@njit(I64(P_U8, I64, I64), nogil=True, cache=True)
def _exponent(data, pos, end):
    """Return the exponent of a number, 9999 for a great one."""
    while pos < end and (data[pos] | 32) != 101:
        pos += 1
    if pos >= end:
        return 0
    pos += 1
    negative = data[pos] == 45
    pos += data[pos] == 45 or data[pos] == 43
    if end - pos > 4:
        return 9999
    value = 0
    while pos < end:
        value = value * 10 + (data[pos] - 48)
        pos += 1
    return -value if negative else value


@njit(BOOL(P_U8, I64, I64), nogil=True, cache=True)
def _only_digits(data, pos, end):
    while pos < end:
        if not _is_digit(data[pos]):
            return False
        pos += 1
    return True


@njit(BOOL(P_U8, I64, I64), nogil=True, cache=True)
def _no_exponent(data, pos, end):
    while pos < end:
        if (data[pos] | 32) == 101:
            return False
        pos += 1
    return True


@njit(BOOL(P_U8, I64, I64, P_I64, I64, P_I64, P_F64, P_F64, I64), nogil=True, cache=True)
def _number(data, pos, end, columns, of, words, numbers, tens, at):
    """Write a number; return whether it could be written exactly."""
    kind, low, high = columns[of], columns[of + 3], columns[of + 4]
    negative = data[pos] == 45
    whole, behind, count = _digits(data, pos + negative, end)
    if count < 0:
        return False
    power = _exponent(data, pos, end)
    if kind == INT:
        value = -whole if negative else whole
        words[at] = value
        # 1.0 and 1e2 are for the general parser, which refuses them
        return low <= value <= high and _only_digits(data, pos + negative, end)
    if kind == DECIMAL:
        # low: digits behind the point; high: digits before it
        if power or behind > low or count - behind > high or count + low - behind > _EXACT_DIGITS:
            return False
        for _ in range(low - behind):
            whole *= 10
        words[at] = -whole if negative else whole
        return _no_exponent(data, pos, end)
    power -= behind
    # both are exact as doubles, so that one rounding gives the nearest
    if whole > _EXACT_WHOLE or power > 22 or power < -22:
        return False
    value = np.float64(whole)
    value = value / tens[-power] if power < 0 else value * tens[power]
    numbers[at] = -value if negative else value
    return True


@njit(I64(P_U8, I64, I64, P_I64, I64, I64, P_I64, P_F64, P_F64, P_U8, P_U8, P_I64), nogil=True, cache=True)
def _field(data, pos, end, columns, of, at, words, numbers, tens, valid, texts, later):
    """Read the value of a column. Return the position behind, -1 for the general parser."""
    byte, kind = data[pos], columns[of]
    if kind == JSON:
        behind = _value_end(data, pos, end)
        if behind < 0:
            return -1
        into = columns[of + 5] + words[at]
        for i in range(behind - pos):
            texts[into + i] = data[pos + i]
        words[at] += behind - pos
        valid[at] = 1
        return behind
    if byte == 110:
        return _word_end(data, pos, end)
    if kind == TEXT:
        if byte != 34:
            return -1
        into = columns[of + 5] + words[at]
        behind = _copy_text(data, pos + 1, end, texts, into)
        if behind < 0:
            return -1
        # without escapes the text is as long as what was read
        length = behind - pos - 2
        at_most = pos + 1
        while at_most < behind - 1:
            if data[at_most] == 92:
                length -= 1
                at_most += 1
            at_most += 1
        words[at] += length
    elif kind == TRUTH:
        behind = _word_end(data, pos, end)
        words[at] = byte == 116
        if behind < 0:
            return -1
    else:
        behind = _number_end(data, pos, end)
        if behind < 0:
            return -1
        if kind == EXACT_LATER or not _number(data, pos, behind, columns, of, words, numbers, tens, at):
            if kind in (INT, DECIMAL):
                return -1
            # a number that Arrow rounds
            later[3 * later[0] + 1], later[3 * later[0] + 2], later[3 * later[0] + 3] = at, pos, behind
            later[0] += 1
    valid[at] = 1
    return behind


@njit(
    UniTuple(I64, 2)(
        P_U8, I64, I64, P_U8, P_I64, I64, I64, I64, P_I64, P_F64, P_F64, P_U8, P_U8, P_I64, P_I64
    ),
    nogil=True,
    cache=True,
)
def _object(
    data, pos, end, names, columns, count, row, rows, words, numbers, tens, valid, texts, later, seen
):
    """Read one object. Return whether it was read, and the position behind, or where reading ended."""
    pos = _blank_end(data, pos, end)
    if pos >= end or data[pos] != 123:
        return 0, pos
    pos = _blank_end(data, pos + 1, end)
    guess = 0
    more = pos < end and data[pos] != 125
    while more:
        pos = _blank_end(data, pos, end)
        begin = pos + 1
        if pos >= end or data[pos] != 34:
            return 0, pos
        behind = _string_end(data, begin, end)
        if behind < 0:
            return 0, pos
        # a name with an escape is compared by the general parser
        for i in range(begin, behind - 1):
            if data[i] == 92:
                return 0, pos
        column = _column(data, begin, behind - 1, names, columns, count, guess)
        pos = _blank_end(data, behind, end)
        if pos >= end or data[pos] != 58:
            return 0, pos
        pos = _blank_end(data, pos + 1, end)
        if pos >= end:
            return 0, pos
        if column < 0:
            behind = _value_end(data, pos, end)
        else:
            guess = column + 1 if column + 1 < count else 0
            # a name twice is an error of the general parser
            if seen[column] == row:
                return 0, pos
            seen[column] = row
            behind = _field(data, pos, end, columns, column * COLUMN_WIDTH, column * rows + row, words,
                            numbers, tens, valid, texts, later)  # fmt: skip
        if behind < 0:
            return 0, pos
        pos = _blank_end(data, behind, end)
        more = pos < end and data[pos] == 44
        pos += more
    if pos >= end or data[pos] != 125:
        return 0, pos
    pos = _blank_end(data, pos + 1, end)
    return pos == end, pos


@kernel(I64(IN_U8, IN_I64, IN_I64, IN_U8, IN_I64, OUT_I64, OUT_F64, OUT_U8, OUT_U8, OUT_I64, OUT_I64))
def parse(values, starts, ends, names_in, columns_in, slots, floats, filled, texts_out, later_out, given_up):
    """Parse objects: value ``i`` of column ``c`` is ``slots[c * n + i]``, its validity ``filled[..]``; of a
    text the slot is its end. Return the number of values that are left to the general parser.

    ``given_up``: per value -1, or the position at which it was. ``later_out``: a count, then slot, begin and
    end of the numbers that Arrow has to round.
    """
    data, names, columns, words = pointer(values), pointer(names_in), pointer(columns_in), pointer(slots)
    numbers, valid, texts, later = pointer(floats), pointer(filled), pointer(texts_out), pointer(later_out)
    rows, count, left = starts.size, columns_in.size // COLUMN_WIDTH, 0
    seen_array = np.full(count + 1, -1, np.int64)
    tens_array = _TENS.copy()
    seen, tens = pointer(seen_array), pointer(tens_array)
    for row in range(rows):
        for column in range(count):
            at = column * rows + row
            valid[at] = 0
            # texts go on where the row before has ended
            words[at] = words[at - 1] if row and _is_text(columns[column * COLUMN_WIDTH]) else 0
        known = later[0]
        done, pos = _object(data, starts[row], ends[row], names, columns, count, row, rows, words, numbers,
                            tens, valid, texts, later, seen)  # fmt: skip
        given_up[row] = -1 if done else pos - starts[row]
        if not done:
            left += 1
            later[0] = known
            for column in range(count):
                at = column * rows + row
                valid[at] = 0
                if _is_text(columns[column * COLUMN_WIDTH]):
                    words[at] = words[at - 1] if row else 0
    return left
