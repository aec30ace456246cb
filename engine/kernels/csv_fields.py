"""CSV without quotes: finds the ends of values eight bytes at a time, and parses numbers and times in
place.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import (
    BOOL,
    I64,
    IN_I32,
    IN_U8,
    IN_U64,
    OUT_I32,
    OUT_I64,
    OUT_U8,
    OUT_U64,
    U8,
    kernel,
)

# Eight bytes in one word (SWAR): all bits of each byte but its top one; a 1 in each byte; and the factor that
# moves the number of the byte that has the only 1 into the top byte.
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONES = np.uint64(0x0101010101010101)
_WHERE = np.uint64(0x0001020304050607)
_NEWLINE = np.uint8(10)
_EXACT = 18
"""So many digits always fit 64 bits."""
_BLOCK = 64


@kernel(I64(IN_U8, IN_U64, U8, I64, OUT_I32, OUT_U64))
def find_ends(data, words, delimiter, width, ends, bits):
    """Write the end of each value, ``width`` values per record. Return the number of records, or -1 when one
    has more or fewer values.

    ``words`` are the complete 8-byte groups of ``data``. ``ends`` must have one entry more than ``data`` has
    bytes. ``bits[0]`` gets the OR of all words. The last record need not end with a line end.
    """
    delimiters, newlines = np.uint64(delimiter) * _ONES, np.uint64(_NEWLINE) * _ONES
    written, field = 0, 0
    # Zeros of the same type: ``seen`` is the OR of all words so far.
    seen = delimiters & ~delimiters
    block = np.empty(_BLOCK, np.uint64)
    for first in range(0, words.size, _BLOCK):
        count = min(_BLOCK, words.size - first)
        for i in range(count):  # nothing but words in a loop of its own, which goes several words at a time
            seen |= words[first + i]
            # a byte of a (b) is 0 where the text has the delimiter (a newline); the marks have its top bit
            # there
            a, b = words[first + i] ^ delimiters, words[first + i] ^ newlines
            # A zero byte is found without a carry into its neighbours: (byte & 0x7F) + 0x7F has the top bit
            # set unless the seven bits are 0.
            block[i] = ~((((a & _LOW) + _LOW) | a | _LOW) & (((b & _LOW) + _LOW) | b | _LOW))
        for i in range(count):
            marks = block[i]
            while marks:
                # the lowest mark is the next end; the last value of a record must end in a newline, others
                # must not
                lowest = marks & (~marks + np.uint64(1))
                position = (first + i) * 8 + np.int64(((lowest >> np.uint64(7)) * _WHERE) >> np.uint64(56))
                field += 1
                if (data[position] == _NEWLINE) != (field == width):
                    return -1
                ends[written] = position
                written += 1
                if field == width:
                    field = 0
                # The lowest mark is done.
                marks ^= lowest
    # the bytes behind the last whole word, one by one
    bits[0] = seen
    for last in range(words.size * 8, data.size):
        bits[0] |= np.uint64(data[last])
        if data[last] == delimiter or data[last] == _NEWLINE:
            field += 1
            if (data[last] == _NEWLINE) != (field == width):
                return -1
            ends[written] = last
            written += 1
            if field == width:
                field = 0
    # a last record without a line end
    if data.size and data[data.size - 1] != _NEWLINE:
        if field != width - 1:
            return -1
        ends[written] = data.size
        written += 1
    return written // width


@njit(BOOL(IN_U8, I64, I64, IN_U8), nogil=True, cache=True)
def _is_null(data, start, end, literal):
    """Return whether a value is empty or equal to the NULL literal."""
    if start == end:
        return True
    if end - start != literal.size:
        return False
    # No early exit: literals are short.
    same = 0
    for i in range(literal.size):
        same += data[start + i] == literal[i]
    return same == literal.size


@njit(I64(IN_U8, I64, I64), nogil=True, cache=True)
def _digits(data, start, end):
    """Return the number that digits spell, -1 if some byte is no digit."""
    value = 0
    for at in range(start, end):
        # Unsigned: a byte below "0" wraps to a large number.
        digit = data[at] - np.uint8(48)
        if digit > 9:
            return -1
        value = value * 10 + digit
    return value


@njit(I64(IN_I32, I64, I64, I64), nogil=True, cache=True)
def _start(ends, record, width, column):
    """Return the start of a value."""
    before = record * width + column - 1
    return 0 if before < 0 else ends[before] + 1


@kernel(I64(IN_U8, IN_I32, I64, I64, I64, IN_U8, OUT_I64, OUT_U8))
def read_integers(data, ends, records, width, column, literal, values, nulls):
    """Parse a column of plain whole numbers. Return the number of NULLs, or -1 for a value in another
    format.
    """
    count = 0
    for record in range(records):
        start, end = _start(ends, record, width, column), np.int64(ends[record * width + column])
        # 45 is the minus sign.
        negative = start < end and data[start] == 45
        first = start + negative
        # More digits may overflow: the column is then parsed the general way.
        value = _digits(data, first, end) if 0 < end - first <= _EXACT else -1
        if value >= 0:
            values[record] = -value if negative else value
            nulls[record] = 0
        elif _is_null(data, start, end, literal):
            values[record] = 0
            nulls[record] = 1
            count += 1
        else:
            return -1
    return count


@njit(I64(I64, I64, I64), nogil=True, cache=True)
def _day_number(year, month, day):
    """Return the days since 1970-01-01 of a date, -1000000 for an invalid one."""
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    # Odd months up to July and even ones from August have 31 days.
    longest = 30 + ((month + (month > 7)) & 1) - (month == 2) * (2 - leap)
    if month < 1 or month > 12 or day < 1 or day > longest or year < 1:
        return -1000000
    # Years begin in March here, so that the leap day is the last of its year; an era has 400 years.
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - era * 400
    # Days before the month in a year that begins in March: 30.6 a month on average.
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@njit(I64(IN_U8, I64, I64, OUT_I64), nogil=True, cache=True)
def _moment(data, start, end, last):
    """Return the microseconds of ``2020-01-31 23:59:59[.123[456]]``, the least int64 for another format.

    ``last`` caches the previous date as one number, and its days since 1970.
    """
    wrong = -(2**63)
    length = end - start
    # "2020-01-31 23:59:59" has 19 characters, with milliseconds 23, with microseconds 26; 45 is "-".
    if length not in (19, 23, 26) or data[start + 4] != 45 or data[start + 7] != 45:
        return wrong
    if (
        # A blank or "T" between date and time; 58 is ":".
        (data[start + 10] != 32 and data[start + 10] != 84)
        or data[start + 13] != 58
        or data[start + 16] != 58
    ):
        return wrong
    year, month, day = (
        _digits(data, start, start + 4),
        _digits(data, start + 5, start + 7),
        _digits(data, start + 8, start + 10),
    )
    hour, minute = _digits(data, start + 11, start + 13), _digits(data, start + 14, start + 16)
    second = _digits(data, start + 17, start + 19)
    if min(year, month, day, hour, minute, second) < 0 or hour > 23 or minute > 59 or second > 59:
        return wrong
    date = (year * 100 + month) * 100 + day
    # Neighbouring rows often have one date.
    if date != last[0]:
        last[0], last[1] = date, _day_number(year, month, day)
    if last[1] == -1000000:
        return wrong
    fraction = 0
    if length > 19:
        fraction = _digits(data, start + 20, end)
        # 46 is the decimal point.
        if data[start + 19] != 46 or fraction < 0:
            return wrong
        # Milliseconds to microseconds.
        if length == 23:
            fraction *= 1000
    return ((last[1] * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + fraction


@kernel(I64(IN_U8, IN_I32, I64, I64, I64, IN_U8, OUT_I64, OUT_U8))
def read_timestamps(data, ends, records, width, column, literal, values, nulls):
    """Parse a column of plain timestamps in microseconds. Return the number of NULLs, or -1 for a value in
    another format.
    """
    count = 0
    last = np.full(2, -1, np.int64)
    for record in range(records):
        start, end = _start(ends, record, width, column), np.int64(ends[record * width + column])
        value = _moment(data, start, end, last)
        if value != -(2**63):
            values[record] = value
            nulls[record] = 0
        elif _is_null(data, start, end, literal):
            values[record] = 0
            nulls[record] = 1
            count += 1
        else:
            return -1
    return count


@kernel(I64(IN_U8, IN_I32, I64, I64, I64, IN_U8, OUT_I32, OUT_U8))
def find_texts(data, ends, records, width, column, literal, bounds, nulls):
    """Write the bounds of a column's texts. Text i is from ``bounds[2 i]`` to ``bounds[2 i + 1]``. Return the
    number of NULLs.
    """
    count = 0
    for record in range(records):
        start, end = _start(ends, record, width, column), np.int64(ends[record * width + column])
        bounds[2 * record] = start
        bounds[2 * record + 1] = end
        nulls[record] = _is_null(data, start, end, literal)
        count += nulls[record]
    # The end of the last text's data, so that bounds are Arrow offsets.
    bounds[2 * records] = data.size
    return count
