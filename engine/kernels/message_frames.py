"""Values of messages as lines: each value is checked to be one record, and is copied with a line end."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import BOOL, I64, IN_I64, IN_U8, OUT_I64, OUT_U8, U8, kernel

WHOLE, NO_RECORD, OPEN, SEVERAL = 0, 1, 2, 3
"""What a value is: one record; none; one that does not end; more than one, or something behind it."""


@njit(I64(IN_U8, I64, I64), nogil=True, cache=True)
def _text_end(data, at, end):
    """Return the position behind a JSON string that begins before ``at``; -1 when it does not end, or a line
    end is in it.
    """
    while at < end:
        byte = data[at]
        # 34 is the quote, 92 the backslash, which escapes the next character
        if byte == 34:
            return at + 1
        if byte == 92:
            at += 1
        elif byte in (10, 13):
            return -1
        at += 1
    return -1


@njit(I64(IN_U8, I64, I64), nogil=True, cache=True)
def _frame(data, start, end):
    """Return what a value is: an object with balanced brackets, and blanks around it."""
    depth, objects, at = 0, 0, start
    while at < end:
        byte = data[at]
        at += 1
        if byte == 34:
            if depth == 0:
                return SEVERAL if objects else NO_RECORD
            at = _text_end(data, at, end)
            if at < 0:
                return OPEN
        # 123 and 91 open an object and an array, 125 and 93 close them
        elif byte in (123, 91):
            if depth == 0 and (objects or byte == 91):
                return SEVERAL if objects else NO_RECORD
            depth += 1
        elif byte in (125, 93):
            if depth == 0:
                return SEVERAL if objects else NO_RECORD
            depth -= 1
            objects += depth == 0
        elif depth == 0 and byte not in (32, 9, 10, 13):
            return SEVERAL if objects else NO_RECORD
    if depth:
        return OPEN
    return WHOLE if objects else NO_RECORD


@kernel(I64(IN_U8, IN_I64, IN_I64, OUT_U8, OUT_U8))
def json_lines(data, starts, ends, lines, frames):
    """Copy each value that is one JSON object to ``lines``, with blanks for line ends and one line end more.
    Return the number of bytes written; ``frames`` gets what each value is.

    ``lines`` must have space for all values and one byte more for each.
    """
    written = 0
    for i in range(starts.size):
        frames[i] = _frame(data, starts[i], ends[i])
        if frames[i] != WHOLE:
            continue
        for at in range(starts[i], ends[i]):
            # inside a string there is no line end: _frame has refused it
            byte = data[at]
            lines[written] = np.uint8(32) if byte in (10, 13) else byte
            written += 1
        lines[written] = 10
        written += 1
    return written


@njit(BOOL(U8), nogil=True, cache=True)
def _is_line_end(byte):
    return byte in (10, 13)


@kernel(I64(IN_U8, IN_I64, IN_I64, U8, OUT_U8, OUT_U8))
def csv_lines(data, starts, ends, quote, lines, frames):
    """Copy each value that is one csv record to ``lines``, with a line end. Return the number of bytes
    written; ``frames`` gets what each value is. A line end at the end of a value is not part of it.
    """
    written = 0
    for i in range(starts.size):
        end = ends[i]
        while end > starts[i] and _is_line_end(data[end - 1]):
            end -= 1
        quoted = False
        frames[i] = NO_RECORD if end == starts[i] else WHOLE
        for at in range(starts[i], end):
            # a quote that is written twice toggles twice
            if data[at] == quote:
                quoted = not quoted
            elif not quoted and _is_line_end(data[at]):
                frames[i] = SEVERAL
        if quoted:
            frames[i] = OPEN
        if frames[i] == WHOLE:
            for at in range(starts[i], end):
                lines[written] = data[at]
                written += 1
            lines[written] = 10
            written += 1
    return written


@kernel(I64(IN_U8, IN_I64, I64, I64, OUT_I64))
def read_numbers(data, starts, width, big_endian, words):
    """Read numbers of ``width`` bytes as unsigned words."""
    for i in range(starts.size):
        word = np.uint64(0)
        for at in range(width):
            byte = data[starts[i] + (at if big_endian else width - 1 - at)]
            word = (word << np.uint64(8)) | np.uint64(byte)
        words[i] = np.int64(word)
    return starts.size
