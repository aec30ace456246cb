"""Words of window entries: the few slices of a batch are numbered, so that each is looked up once."""

from __future__ import annotations

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, VOID, kernel

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


@kernel(VOID(IN_I64, IN_I64, IN_I64, I64, OUT_I64), interpreted_by=(0,))
def entry_words(numbers, bases, key_slots, shift, words):
    """Write the word of each row's entry: the base of its slice, and its key slot shifted."""
    for i in range(numbers.size):
        words[i] = bases[numbers[i]] | (key_slots[i] << shift)
