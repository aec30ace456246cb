"""Loops over messages of PostgreSQL's logical replication protocol (pgoutput). They return what each
message is, where the values of its rows are, and the bytes of one column.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I64, IN_U8, OUT_I64, OUT_U8, TABLE_I64, VOID, kernel

BEGIN, COMMIT, INSERT, UPDATE, DELETE = ord("B"), ord("C"), ord("I"), ord("U"), ord("D")
RELATION, TRUNCATE, KEEPALIVE = ord("R"), ord("T"), ord("k")

FACT_WORDS = 6

ABSENT = -1
"""The place of a row that is not there."""

FULL_ROW, KEY_ROW = 1, 2
"""What the server sends of an old row: all of it, or its key, with NULL for the other columns."""

NULL, UNCHANGED = -1, -2
"""Lengths of a value that is NULL, and of one stored out of line that an update has not changed."""

IN_KEY, MAY_LACK = 1, 2
"""Of a wanted column: a row that is only a key has it; the value of an update may be nowhere."""

COMMIT_AT, COMMIT_TIME, OPEN, SAFE, TRANSACTION_WORDS = 0, 1, 2, 3, 4
"""Words of what is known of the current transaction, see ``scan_messages``."""

_XLOG_DATA, _OLD, _KEY, _NEW = ord("w"), ord("O"), ord("K"), ord("N")
_NULL_MARK, _UNCHANGED_MARK = ord("n"), ord("u")
XLOG_HEADER = 25
"""Bytes before the payload of XLogData: its letter, two positions and a clock."""


@njit(inline="always")
def _word(buffer, at):
    value = np.int64(0)
    for place in range(8):
        value = (value << 8) | np.int64(buffer[at + place])
    return value


@njit(inline="always")
def _half(buffer, at):
    # signed: mixed with unsigned numbers the compiler would compute in floats
    value = np.int64(0)
    for place in range(4):
        value = (value << 8) | np.int64(buffer[at + place])
    return value


@njit(inline="always")
def _short(buffer, at):
    return (np.int64(buffer[at]) << 8) | np.int64(buffer[at + 1])


@njit
def _after_row(buffer, at):
    """Return the place behind a row."""
    columns = _short(buffer, at)
    at += 2
    for _ in range(columns):
        mark = buffer[at]
        at += 1
        if mark not in (_NULL_MARK, _UNCHANGED_MARK):
            at += 4 + _half(buffer, at)
    return at


@kernel(VOID(IN_U8, IN_I64, I64, OUT_I64, OUT_U8, TABLE_I64))
def scan_messages(buffer, ends, count, transaction, tags, facts):
    """Tell what each of ``count`` messages is. ``tags``: its letter, KEEPALIVE for one.

    ``facts`` has a row of six words per message. Of a change: its relation, the places of its old and new
    row, and as the last word what there is of the old one. Of a keepalive: whether it wants an answer. Of
    others: where they are. The words 3 and 4 are the position of the transaction's commit and its time
    (microseconds since 2000).
    ``transaction`` has both, then whether one is open, and the position up to which all is received.
    """
    start = 0
    for i in range(count):
        at = start
        start = ends[i]
        if buffer[at] != _XLOG_DATA:
            tags[i] = buffer[at]
            facts[i, 0] = buffer[at + 17]
            # between transactions: all commits up to there were sent
            if transaction[OPEN] == 0:
                transaction[SAFE] = max(transaction[SAFE], _word(buffer, at + 1))
            continue
        at += XLOG_HEADER
        tag = buffer[at]
        tags[i] = tag
        facts[i, 0] = at
        if tag == BEGIN:
            transaction[COMMIT_AT], transaction[COMMIT_TIME] = _word(buffer, at + 1), _word(buffer, at + 9)
            transaction[OPEN] = 1
        elif tag == COMMIT:
            transaction[OPEN] = 0
            transaction[SAFE] = max(transaction[SAFE], _word(buffer, at + 10))
        elif tag in (INSERT, UPDATE, DELETE):
            facts[i, 0] = _half(buffer, at + 1)
            facts[i, 1], facts[i, 2] = ABSENT, ABSENT
            kind = buffer[at + 5]
            row = at + 6
            if kind != _NEW:
                facts[i, 1] = row
                facts[i, 5] = FULL_ROW if kind == _OLD else KEY_ROW
                if tag == UPDATE:
                    row = _after_row(buffer, row) + 1
            if tag != DELETE:
                facts[i, 2] = row
        facts[i, 3], facts[i, 4] = transaction[COMMIT_AT], transaction[COMMIT_TIME]


@kernel(I64(IN_U8, IN_I64, IN_U8, IN_I64, IN_U8, I64, TABLE_I64, TABLE_I64))
def locate_values(buffer, rows, follows, wanted, known, width, starts, lengths):
    """Find the values of rows: ``starts`` and ``lengths`` have a line per wanted column.

    ``wanted`` has for each column of the relation the line it goes to, -1 for none. ``follows``: 0, or what
    the row before is, of which this is the new one. Values that the update has not changed come from there.
    ``known``, per line: IN_KEY if a key row has it, MAY_LACK if its value may be nowhere. Such a value has
    the length UNCHANGED. Return -1, or the first row that lacks another value or has not ``width`` columns.
    """
    for i in range(rows.size):
        at = rows[i]
        if _short(buffer, at) != width:
            return i
        at += 2
        for column in range(width):
            mark = buffer[at]
            at += 1
            line = wanted[column]
            if mark == _NULL_MARK:
                if line >= 0:
                    starts[line, i], lengths[line, i] = at, NULL
            elif mark == _UNCHANGED_MARK:
                if line >= 0:
                    if follows[i] == FULL_ROW or (follows[i] == KEY_ROW and known[line] == IN_KEY):
                        starts[line, i], lengths[line, i] = starts[line, i - 1], lengths[line, i - 1]
                    elif known[line] == MAY_LACK:
                        starts[line, i], lengths[line, i] = at, UNCHANGED
                    else:
                        return i
            else:
                length = _half(buffer, at)
                at += 4
                if line >= 0:
                    starts[line, i], lengths[line, i] = at, length
                at += length
    return -1


@kernel(VOID(IN_U8, IN_I64, IN_I64, OUT_U8))
def gather_values(buffer, starts, lengths, into):
    """Copy the bytes of one column's values, one after the other; NULL has none."""
    to = 0
    for i in range(starts.size):
        at = starts[i]
        for offset in range(lengths[i]):
            into[to] = buffer[at + offset]
            to += 1
