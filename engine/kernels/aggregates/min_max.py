"""Minima and maxima by slot, of rows of order words (the least is the best) or of strings; and the prefilter
of a Top-N.
"""

from __future__ import annotations

from numba import njit

from penstock.engine.kernels.kernel import (
    I64,
    IN_F64,
    IN_I32,
    IN_I64,
    IN_U8,
    OUT_I64,
    OUT_U8,
    SLOTS_I64,
    TABLE_I64,
    VOID,
    kernel,
)

_GREATEST = 2**63 - 1
_NAN_BITS = 0x7FF8000000000000


@kernel(VOID(IN_I64, IN_I64, I64, SLOTS_I64), interpreted_by=(0,))
def best_words(slots, words, flip, table):
    """Table: the least word so far, then whether there is one. With ``flip`` -1 words are complemented, which
    gives the greatest.
    """
    for i in range(slots.size):
        slot = slots[i]
        # The complement reverses the order: the greatest value is the least complement.
        word = words[i] ^ flip
        if table[slot, 1] == 0 or word < table[slot, 0]:
            table[slot, 0] = word
            table[slot, 1] = 1


@kernel(VOID(IN_I64, IN_F64, IN_I64, I64, SLOTS_I64), interpreted_by=(0,))
def best_floats(slots, values, bits, flip, table):
    """Like ``best_words``, for floats (NaN largest, -0.0 as 0.0). ``bits`` are the same floats as
    integers.
    """
    for i in range(slots.size):
        slot = slots[i]
        word = bits[i]
        # Both zeros are one value.
        if values[i] == 0.0:
            word = 0
        elif values[i] != values[i]:
            word = _NAN_BITS
        # Negative floats sort backwards as integers: flip all their bits but the sign.
        word = (word ^ _GREATEST if word < 0 else word) ^ flip
        if table[slot, 1] == 0 or word < table[slot, 0]:
            table[slot, 0] = word
            table[slot, 1] = 1


@kernel(VOID(IN_I64, TABLE_I64, SLOTS_I64))
def least_rows(slots, rows, table):
    """Table: the least row of words so far, then whether there is one."""
    width = rows.shape[1]
    for i in range(slots.size):
        slot = slots[i]
        better = table[slot, width] == 0
        if not better:
            # The first word that differs decides.
            for k in range(width):
                if rows[i, k] != table[slot, k]:
                    better = rows[i, k] < table[slot, k]
                    break
        if better:
            table[slot, width] = 1
            for k in range(width):
                table[slot, k] = rows[i, k]


@njit(nogil=True)
def compare_bytes(left, left_start, left_length, right, right_start, right_length):
    """Return a number below, at or above 0 as the left string sorts before, with or after the right one."""
    # Bytes are unsigned: UTF-8 sorts by code points then.
    for k in range(min(left_length, right_length)):
        distance = I64(left[left_start + k]) - I64(right[right_start + k])
        if distance != 0:
            return distance
    # The shorter string is a prefix and sorts first.
    return left_length - right_length


@njit(nogil=True, inline="always")
def _better(order, greatest):
    return order > 0 if greatest else order < 0


@kernel(I64(IN_I64, IN_I32, IN_U8, I64, I64, I64, SLOTS_I64, OUT_U8, OUT_I64))
def best_strings(slots, offsets, data, greatest, start, in_place, table, arena, used):
    """Table: the best string's start in the arena, and its length plus 1 (0: none). Return the number of rows
    done, fewer when the arena is full. ``in_place``: a string may take the place of one that it supersedes.
    """
    for i in range(start, slots.size):
        slot = slots[i]
        first = I64(offsets[i])
        length = I64(offsets[i + 1]) - first
        # A string of length 0 is stored as 1: 0 is "none".
        if table[slot, 1]:
            order = compare_bytes(data, first, length, arena, table[slot, 0], table[slot, 1] - 1)
            if not _better(order, greatest):
                continue
        if length >= table[slot, 1] or not in_place:  # else it fits where the old one was
            # The caller grows the arena and calls again from this row.
            if used[0] + length > arena.size:
                return i
            table[slot, 0] = used[0]
            used[0] += length
        table[slot, 1] = length + 1
        for k in range(length):
            arena[table[slot, 0] + k] = data[first + k]
    return slots.size


@kernel(VOID(IN_I64, IN_I64, TABLE_I64, OUT_U8))
def pass_best(slots, keys, best, passed):
    """Merge the keys into ``best``, whose row per slot has the greatest keys in descending order. ``passed``
    marks the keys that are at least the last one of their row.
    """
    last = best.shape[1] - 1
    for row in range(slots.size):
        slot, key = slots[row], keys[row]
        # Most keys are not among the best: one comparison.
        if key <= best[slot, last]:
            continue
        # Insertion into a short sorted row: greater keys stay, smaller ones move down, the last one falls
        # out.
        position = last
        while position > 0 and best[slot, position - 1] < key:
            best[slot, position] = best[slot, position - 1]
            position -= 1
        best[slot, position] = key
    # After all keys of the batch: the last key of a row is then as great as it gets.
    for row in range(slots.size):
        passed[row] = keys[row] >= best[slots[row], last]
