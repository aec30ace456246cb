"""Bit aggregates of integers by slot: AND, OR and XOR, or counts per bit for retractions."""

from __future__ import annotations

from penstock.engine.kernels.kernel import IN_I64, SLOTS_I64, VOID, kernel

# The columns of ``unite``: bits set in some word, bits clear in some word, bits set an odd number of times,
# and how many words there were.
SOME, SOME_LACK, ODD, COUNT = 0, 1, 2, 3


@kernel(VOID(IN_I64, IN_I64, IN_I64, SLOTS_I64))
def unite(slots, words, weights, table):
    """Add words with weights that are not negative. Table: bits set in some word, bits clear in some word,
    bits set in an odd number of words, count.
    """
    for i in range(slots.size):
        slot, word = slots[i], words[i]
        weight = weights[i] if weights.size else 1
        if weight == 0:
            continue
        table[slot, SOME] |= word
        table[slot, SOME_LACK] |= ~word
        # XOR of an even number of equal words is 0.
        if weight & 1:
            table[slot, ODD] ^= word
        table[slot, COUNT] += weight


@kernel(VOID(IN_I64, IN_I64, SLOTS_I64, SLOTS_I64))
def merge_united(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        slot, source = into[i], slots[i]
        table[slot, SOME] |= other[source, SOME]
        table[slot, SOME_LACK] |= other[source, SOME_LACK]
        table[slot, ODD] ^= other[source, ODD]
        table[slot, COUNT] += other[source, COUNT]


@kernel(VOID(IN_I64, IN_I64, IN_I64, SLOTS_I64))
def count(slots, words, weights, table):
    """Add weighted words. Table: the count of each of the 64 bits, then the count of words."""
    for i in range(slots.size):
        slot, word = slots[i], words[i]
        weight = weights[i] if weights.size else 1
        # A column for each bit, so that a retraction can be subtracted.
        for bit in range(64):
            table[slot, bit] += weight * ((word >> bit) & 1)
        table[slot, 64] += weight


@kernel(VOID(IN_I64, IN_I64, SLOTS_I64, SLOTS_I64))
def merge_counts(into, slots, other, table):
    """Add rows ``slots`` of another table to rows ``into``."""
    for i in range(into.size):
        for column in range(65):
            table[into[i], column] += other[slots[i], column]
