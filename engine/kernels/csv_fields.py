"""CSV without quotes: finds the ends of values 64 bytes at a time, and parses numbers and times in
place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.extending import intrinsic

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
from penstock.engine.kernels.stable_hash import load_word

_NEWLINE = np.uint8(10)
_EXACT = 18
"""So many digits always fit 64 bits."""
_BLOCK = 64
_AT_ONCE = 4
"""Ends that are written for a block whether it has so many or not: how many it has cannot be foreseen, and a
branch that is guessed wrong takes as long as ten of them.
"""
# Eight digits in one word: their bytes without the code of "0", the sum that sets the top bit of a byte above
# 9, and the steps that add neighbours up: to two digits, then to four and eight.
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE, _TOPS = np.uint64(0x7676767676767676), np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0x000000FF000000FF)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)


def _marks(_typing: Any, data: Any, at: Any, byte: Any) -> Any:
    """Return which of the 64 bytes from ``data[at]`` on are equal to a byte, as bits from the lowest on. The
    caller stays inside the array.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bytes_ = ir.VectorType(ir.IntType(8), _BLOCK)
        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        found = builder.load(builder.bitcast(builder.gep(start, [arguments[1]]), bytes_.as_pointer()))
        found.align = 1
        one = builder.insert_element(ir.Constant(bytes_, ir.Undefined), arguments[2], ir.IntType(32)(0))
        all_ = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), _BLOCK), None))
        return builder.bitcast(builder.icmp_unsigned("==", found, all_), ir.IntType(64))

    return types.uint64(data, types.int64, types.uint8), generate


def _zeros_below(_typing: Any, bits: Any) -> Any:
    """Return how many bits are zero below the lowest one: 64 without one."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.int64(types.uint64), generate


def _ones(_typing: Any, bits: Any) -> Any:
    """Return how many bits are one."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


# Called without the context, which numba hands in.
marks_of: Any = intrinsic(_marks)
zeros_below: Any = intrinsic(_zeros_below)
ones: Any = intrinsic(_ones)


@kernel(I64(IN_U8, IN_U64, U8, I64, OUT_I32, OUT_U64))
def find_ends(data, words, delimiter, width, ends, bits):
    """Write the end of each value, ``width`` values per record. Return the number of records, or -1 when one
    has more or fewer values.

    ``words`` are the complete 8-byte groups of ``data``. ``ends`` must have one entry more than ``data`` has
    bytes. ``bits[0]`` gets the OR of all words. The last record need not end with a line end.
    """
    written, lines, blocks = 0, 0, data.size // _BLOCK
    for block in range(blocks):
        newlines = marks_of(data, block * _BLOCK, _NEWLINE)
        marks = marks_of(data, block * _BLOCK, delimiter) | newlines
        count = ones(marks)
        lines += ones(newlines)
        for k in range(_AT_ONCE):
            ends[written + k] = block * _BLOCK + zeros_below(marks)
            # The lowest mark is done.
            marks &= marks - np.uint64(1)
        k = _AT_ONCE
        while marks:
            ends[written + k] = block * _BLOCK + zeros_below(marks)
            marks &= marks - np.uint64(1)
            k += 1
        written += count
    # the bytes behind the last whole block, one by one
    for last in range(blocks * _BLOCK, data.size):
        if data[last] == delimiter or data[last] == _NEWLINE:
            lines += data[last] == _NEWLINE
            ends[written] = last
            written += 1
    seen = np.uint64(0)
    for i in range(words.size):
        seen |= words[i]
    for last in range(words.size * 8, data.size):
        seen |= np.uint64(data[last])
    bits[0] = seen
    # a last record without a line end
    if data.size and data[data.size - 1] != _NEWLINE:
        ends[written] = data.size
        written += 1
        lines += 1
    # as many line ends as records, and one behind each: no value before the last ends in one
    records = written // width
    if written != records * width or lines != records:
        return -1
    for record in range(1, records + 1):
        end = ends[record * width - 1]
        if end < data.size and data[end] != _NEWLINE:
            return -1
    return records


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


@njit(nogil=True)
def _number(word, digits):
    """Return the number that the last ``digits`` bytes of a word spell, 1 to 8; -1 if some byte is no
    digit.
    """
    # the bytes of other values before it become digits 0
    others = np.uint64(64 - 8 * digits)
    x = ((word ^ _ZEROS) >> others) << others
    if ((x + _ABOVE_NINE) | x) & _TOPS:
        return I64(-1)
    x = x * np.uint64(10) + (x >> np.uint64(8))
    high = (x & _PAIRS) * _FIRST_FACTOR
    return I64((high + ((x >> np.uint64(16)) & _PAIRS) * _SECOND_FACTOR) >> np.uint64(32))


@njit(nogil=True)
def _whole(data, first, end):
    """Return the number that digits spell, -1 for none. How long a number is cannot be foreseen: eight digits
    at a time take a third of the time of a loop over them.
    """
    length = end - first
    if length <= 0 or length > _EXACT:
        return I64(-1)
    if length > 16 or end < 16:
        return _digits(data, first, end)
    value = _number(load_word(data, end - 8), min(length, 8))
    if length > 8 and value >= 0:
        high = _number(load_word(data, end - 16), length - 8)
        value = high * 100_000_000 + value if high >= 0 else high
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
        value = _whole(data, first, end)
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
