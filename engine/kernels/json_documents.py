"""JSON objects that span lines or are in an array, as lines: each byte of white space or punctuation
between and inside objects is replaced by another, so positions stay.
"""

from __future__ import annotations

from penstock.engine.kernels.kernel import OUT_I64, OUT_U8, VOID, kernel

_QUOTE, _ESCAPE, _COMMA, _NEWLINE, _BLANK = ord('"'), ord("\\"), ord(","), ord("\n"), ord(" ")
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = ord("["), ord("]"), ord("{"), ord("}")

DEPTH, TEXT, ARRAY, RECORD = 0, 1, 2, 3
"""The state between two calls: how many braces and brackets of the record are open; 1 inside a text, 2 behind
its backslash; 1 inside the outer array; 0 before a record, 1 in one, 2 before one that a comma asks for.
"""
STATE_LENGTH = 4


@kernel(VOID(OUT_U8, OUT_I64), interpreted_by=(0,))
def split_records(data, state):
    """Replace bytes so that each record is one line, and no record has a line end outside of its texts.

    A record is an element of an outer array, or what begins outside of one and ends at white space. A comma
    or bracket without a record before it stays, so what is no JSON is no JSON after this.
    """
    depth, text, array, record = state[DEPTH], state[TEXT], state[ARRAY], state[RECORD]
    for i in range(data.size):
        letter = data[i]
        if text:
            if text == 2:
                text = 1
            elif letter == _ESCAPE:
                text = 2
            elif letter == _QUOTE:
                text = 0
        elif letter == _BLANK or 9 <= letter <= 13:
            # outside of an array white space ends a record; before one it is a blank line
            ends = depth == 0 and (not array or not record)
            data[i] = _NEWLINE if ends else _BLANK
            if ends:
                record = 0
        elif depth == 0 and not array and letter == _OPEN_ARRAY:
            data[i] = _NEWLINE
            array, record = 1, 0
        elif depth == 0 and array and record < 2 and letter == _CLOSE_ARRAY:
            data[i] = _NEWLINE
            array, record = 0, 0
        elif depth == 0 and array and record == 1 and letter == _COMMA:
            data[i] = _NEWLINE
            record = 2
        else:
            record = 1
            if letter == _QUOTE:
                text = 1
            elif letter in (_OPEN_ARRAY, _OPEN_OBJECT):
                depth += 1
            elif depth and letter in (_CLOSE_ARRAY, _CLOSE_OBJECT):
                depth -= 1
    state[DEPTH], state[TEXT], state[ARRAY], state[RECORD] = depth, text, array, record
