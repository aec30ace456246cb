"""Counts and sums by slot. Tables have one row per slot. Empty ``weights`` mean +1 each. No argument is
NULL.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.aggregates.int128 import multiply
from penstock.engine.kernels.kernel import IN_F64, IN_I64, SLOTS_F64, SLOTS_I64, VOID, kernel

_LEAST = -(2**63)
# No unsigned index counts from the end: without that comparison loops take three quarters to half as long.
_FIRST = np.uint64(0)


@kernel(VOID(IN_I64, IN_I64, SLOTS_I64), interpreted_by=(0,))
def count(slots, weights, table):
    """Table: count."""
    if weights.size == 0:
        for i in range(slots.size):
            table[np.uint64(slots[i]), _FIRST] += 1
    else:
        for i in range(slots.size):
            table[slots[i], 0] += weights[i]


@kernel(VOID(IN_I64, IN_I64, IN_I64, SLOTS_I64))
def count_booleans(slots, values, weights, table):
    """Table: count of FALSE, count of TRUE."""
    for i in range(slots.size):
        table[slots[i], values[i]] += weights[i] if weights.size else 1


@njit(nogil=True, inline="always")
def _add_word(table, slot, value, carries):
    """Add a signed word and ``carries`` times 2**64 to (word, carries)."""
    old = table[slot, _FIRST]
    new = old + value
    table[slot, _FIRST] = new
    # The sum has wrapped: both addends have the other sign.
    if ((old ^ new) & (value ^ new)) < 0:
        carries += 1 if value >= 0 else -1
    if carries != 0:
        table[slot, 1] += carries


@kernel(VOID(IN_I64, IN_I64, IN_I64, SLOTS_I64), interpreted_by=(0,))
def sum_words(slots, values, weights, table):
    """Table: word, carries and, with more than two columns, count. The exact sum is word + carries *
    2**64.
    """
    counted = table.shape[1] > 2
    if weights.size == 0:
        for i in range(slots.size):
            slot = np.uint64(slots[i])
            _add_word(table, slot, values[i], 0)
            if counted:
                table[slot, np.uint64(2)] += 1
        return
    for i in range(slots.size):
        low, high = multiply(values[i], weights[i])
        # The low word is added as a signed number; where it is negative, 2**64 is missing.
        _add_word(table, slots[i], low, high + (1 if low < 0 else 0))
        if counted:
            table[slots[i], 2] += weights[i]


@kernel(VOID(IN_I64, IN_I64, SLOTS_I64, SLOTS_I64))
def merge_words(into, slots, other, table):
    """Add rows ``slots`` of another table of ``sum_words`` to rows ``into``."""
    for i in range(into.size):
        _add_word(table, into[i], other[slots[i], 0], other[slots[i], 1])
        if table.shape[1] > 2:
            table[into[i], 2] += other[slots[i], 2]


@njit(nogil=True, inline="always")
def _add_pair(table, slot, low, high):
    """Add a 128-bit number to (low, high, carries of 2**128)."""
    # Low words are unsigned: the sum is less than an addend exactly when it has wrapped.
    total = np.uint64(table[slot, 0]) + np.uint64(low)
    carry = 1 if total < np.uint64(low) else 0
    table[slot, 0] = np.int64(total)
    old = table[slot, 1]
    partial = old + high
    new = partial + carry
    table[slot, 1] = new
    # Two ways to leave 64 bits: the signed sum overflows, or the carry turns the greatest number into the
    # least. After a negative overflow both may happen, and cancel.
    overflows = ((old ^ partial) & (high ^ partial)) < 0
    wraps = carry == 1 and new == _LEAST
    if overflows:
        table[slot, 2] += 1 if high >= 0 else -1
    if wraps:
        table[slot, 2] += 1


@kernel(VOID(IN_I64, IN_I64, IN_I64, IN_I64, SLOTS_I64))
def sum_pairs(slots, lows, highs, weights, table):
    """Table: low, high, carries, count; the exact sum is low + high * 2**64 + carries * 2**128."""
    for i in range(slots.size):
        weight = weights[i] if weights.size else 1
        low, high = lows[i], highs[i]
        # The negative number in two's complement: invert, then add 1 to the low word, with its carry.
        if weight < 0:
            low = -low
            high = ~high + (1 if low == 0 else 0)
        # Weights are nearly always 1 or -1: repeated addition is simpler than a 128-bit product.
        for _ in range(abs(weight)):
            _add_pair(table, slots[i], low, high)
        table[slots[i], 3] += weight


@kernel(VOID(IN_I64, IN_I64, SLOTS_I64, SLOTS_I64))
def merge_pairs(into, slots, other, table):
    """Add rows ``slots`` of another table of ``sum_pairs`` to rows ``into``."""
    for i in range(into.size):
        _add_pair(table, into[i], other[slots[i], 0], other[slots[i], 1])
        table[into[i], 2] += other[slots[i], 2]
        table[into[i], 3] += other[slots[i], 3]


@kernel(VOID(IN_I64, IN_F64, IN_I64, SLOTS_F64, SLOTS_I64), interpreted_by=(0,))
def sum_floats(slots, values, weights, table, odd):
    """Table: sum, its rounding error (Neumaier), count. ``odd`` counts +inf, -inf and NaN, which are not
    summed.
    """
    for i in range(slots.size):
        slot = slots[i]
        weight = np.float64(weights[i]) if weights.size else 1.0
        value = values[i] * weight
        table[slot, 2] += weight
        # Infinity could not be subtracted from a sum again, so such values are only counted.
        if not np.isfinite(values[i]):
            kind = 2 if np.isnan(values[i]) else (0 if values[i] > 0 else 1)
            odd[slot, kind] += np.int64(weight)
            continue
        old = table[slot, 0]
        new = old + value
        # Neumaier: the rounding error is taken from the smaller of the two addends.
        table[slot, 1] += (old - new) + value if abs(old) >= abs(value) else (value - new) + old
        table[slot, 0] = new
        # All values are retracted: drop the rounding errors that remain.
        if table[slot, 2] == 0.0:
            table[slot, 0] = 0.0
            table[slot, 1] = 0.0


@kernel(VOID(IN_I64, IN_I64, SLOTS_F64, SLOTS_F64, SLOTS_I64, SLOTS_I64))
def merge_floats(into, slots, other, table, other_odd, odd):
    """Add rows ``slots`` of another table of ``sum_floats`` to rows ``into``."""
    for i in range(into.size):
        slot = into[i]
        value = other[slots[i], 0]
        old = table[slot, 0]
        new = old + value
        table[slot, 1] += other[slots[i], 1] + (
            (old - new) + value if abs(old) >= abs(value) else (value - new) + old
        )
        table[slot, 0] = new
        table[slot, 2] += other[slots[i], 2]
        for kind in range(3):
            odd[slot, kind] += other_odd[slots[i], kind]
