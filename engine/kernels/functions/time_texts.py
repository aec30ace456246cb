"""Times as texts of a fixed width, and back: patterns of digits such as ``yyyy-MM-dd HH:mm:ss``.

A pattern is a ``template``, the bytes of a text with zeros where digits go, and its fields: ``letters`` are
Java's (ASCII), ``places`` where they begin, ``widths`` how many digits they have.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U8, OUT_I64, OUT_U8, VOID, kernel

_DAY = 86_400_000_000
_YEAR, _MONTH, _DAY_OF_MONTH, _HOUR, _MINUTE, _SECOND, _FRACTION = (ord(letter) for letter in "yMdHmsS")
_ZERO = ord("0")
_POWERS = np.array([1, 10, 100, 1_000, 10_000, 100_000, 1_000_000])
_LENGTHS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


@njit(nogil=True)
def _days_of(year, month, day):
    """Return the days from 1970-01-01 to a date of the Gregorian calendar."""
    # Years begin in March, so that the leap day is the last: 400 of them have 146,097 days.
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


@njit(nogil=True)
def _date_of(days):
    """Return year, month and day: ``_days_of`` backwards."""
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, day_of_year - (153 * shifted + 2) // 5 + 1


@kernel(VOID(IN_I64, IN_U8, IN_U8, IN_I64, IN_I64, OUT_U8))
def write_times(micros, template, letters, places, widths, out):
    """Write the text of each time, one after another. Years must be from 0 to 9999."""
    for i in range(micros.size):
        days = micros[i] // _DAY
        rest = micros[i] - days * _DAY
        year, month, day = _date_of(days)
        base = i * template.size
        for k in range(template.size):
            out[base + k] = template[k]
        for field in range(letters.size):
            letter, width = letters[field], widths[field]
            if letter == _YEAR:
                value = year if width == 4 else year % 100
            elif letter == _MONTH:
                value = month
            elif letter == _DAY_OF_MONTH:
                value = day
            elif letter == _HOUR:
                value = rest // 3_600_000_000
            elif letter == _MINUTE:
                value = rest // 60_000_000 % 60
            elif letter == _SECOND:
                value = rest // 1_000_000 % 60
            # the first digits of the microseconds
            else:
                value = rest % 1_000_000 // _POWERS[6 - width]
            # the last digit first
            for k in range(base + places[field] + width - 1, base + places[field] - 1, -1):
                out[k] = _ZERO + value % 10
                value //= 10


@njit(nogil=True)
def _number(data, start, width):
    """Return the number that some digits are, -1 where one is no digit."""
    value = 0
    for k in range(start, start + width):
        digit = I64(data[k]) - _ZERO
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@kernel(VOID(IN_I32, IN_U8, IN_U8, IN_U8, IN_I64, IN_I64, OUT_I64, OUT_U8))
def read_times(offsets, data, template, letters, places, widths, micros, valid):
    """Write the time of each text in microseconds, and 1 where it is one. Parts that the pattern lacks are
    those of 1970-01-01 00:00:00. A year of two digits is one from 2000 on.
    """
    for i in range(micros.size):
        start = I64(offsets[i])
        fits = I64(offsets[i + 1]) - start == template.size
        if fits:
            for k in range(template.size):
                fits &= template[k] == 0 or template[k] == data[start + k]
        year, month, day, time = 1970, 1, 1, 0
        for field in range(letters.size if fits else 0):
            letter, width = letters[field], widths[field]
            value = _number(data, start + places[field], width)
            fits &= value >= 0
            if letter == _YEAR:
                year = value if width == 4 else 2000 + value
            elif letter == _MONTH:
                month = value
            elif letter == _DAY_OF_MONTH:
                day = value
            elif letter == _HOUR:
                fits &= value < 24
                time += value * 3_600_000_000
            elif letter == _MINUTE:
                fits &= value < 60
                time += value * 60_000_000
            elif letter == _SECOND:
                fits &= value < 60
                time += value * 1_000_000
            else:
                time += value * _POWERS[6 - width]
        fits &= 1 <= month <= 12
        if fits:
            leaps = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
            fits = 1 <= day <= _LENGTHS[month] + leaps
        valid[i] = fits
        micros[i] = _days_of(year, month, day) * _DAY + time if fits else 0
