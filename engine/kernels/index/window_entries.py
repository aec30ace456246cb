"""Entries of windows: the few slices of a batch are numbered, so that each is looked up once. The entry that
a key was last added to is found without a hash.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I32, OUT_I64, VOID, kernel

# Comparisons a row, on average, beyond which a batch has too many slices in too little order.
_COMPARED_PER_ROW = 8


@kernel(I64(IN_I64, OUT_I64, OUT_I64), interpreted_by=(0,))
def number_slices(ends, distinct, numbers):
    """Write each distinct end once, in the order of first occurrence, and for each row the number of its end.
    Return how many there are; -1 where they do not fit, or are too many to be searched one after another.
    """
    count, last, left = 0, 0, _COMPARED_PER_ROW * ends.size
    for i in range(ends.size):
        # nearly always the slice of the row before
        if count == 0 or distinct[last] != ends[i]:
            # the newest first: rows are nearly in the order of their times
            last = count - 1
            while last >= 0 and distinct[last] != ends[i]:
                last -= 1
                left -= 1
            if left < 0:
                return -1
            if last < 0:
                if count == distinct.size:
                    return -1
                distinct[count] = ends[i]
                last = count
                count += 1
        numbers[i] = last
    return count


@kernel(I64(IN_I64, IN_I64, IN_I64, I64, OUT_I32, IN_I64, OUT_I64, OUT_I64), interpreted_by=(2,))
def find_recent(numbers, bases, key_slots, shift, recent, words, out, missing):
    """Write the entry of each row that is in the entry its key was last added to. A row's word is the base of
    its slice (without ``numbers``: of the only one) and its key slot shifted; ``words`` has those of entries.

    Of the other rows each word is written to ``missing``, once for rows that follow one another, and for each
    row -1 less the position of its word. Return how many words are missing. ``recent`` has, by key slot, the
    entry + 1, 0 for none. It has the same negative numbers until ``settle`` replaces them.
    """
    count = 0
    for i in range(key_slots.size):
        slot = np.uint64(key_slots[i])
        word = bases[numbers[i] if numbers.size else 0] | (key_slots[i] << shift)
        last = I64(recent[slot])
        if last > 0:
            if words[last - 1] == word:
                out[i] = last - 1
                continue
        elif last < 0 and missing[-1 - last] == word:
            out[i] = last
            continue
        missing[count] = word
        recent[slot] = out[i] = -1 - count
        count += 1
    return count


@kernel(VOID(IN_I64, IN_I64, OUT_I32, OUT_I64), interpreted_by=(0, 3))
def settle(key_slots, entries, recent, out):
    """Write the entries of missing words to the rows that wait for them, and as those their keys were last
    added to.
    """
    for i in range(entries.size):
        recent[key_slots[i]] = entries[i] + 1
    for i in range(out.size):
        if out[i] < 0:
            out[i] = entries[-1 - out[i]]
