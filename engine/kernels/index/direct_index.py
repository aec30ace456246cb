"""Direct index of int64 words: an array has the slot + 1 of each word of a range, 0 where the word is no key.

``places`` int32 by ``word - base``. ``keys``, ``free``, ``state`` and ``fresh`` are those of the hash table:
see ``word_index.py``. A word outside of the range is not looked up: its slot is written as -1.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.index.word_index import ALLOCATED, FREE, FRESH, NULL, take_slot
from penstock.engine.kernels.kernel import I64, IN_I64, IN_U8, OUT_I32, OUT_I64, VOID, kernel

# Words read before new keys of them are inserted: reads that depend on nothing overlap their cache misses.
_AHEAD = 256


@kernel(I64(IN_I64, IN_U8, I64, OUT_I32, I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def insert(words, valid, start, places, base, keys, free, state, out, fresh):
    """Write the slot of every row from ``start`` on, new keys of the range getting one. Return the number of
    rows done, fewer when slots ran out.
    """
    size = np.uint64(places.size)
    for first in range(start, words.size, _AHEAD):
        end = min(first + _AHEAD, words.size)
        least = I64(0)
        for i in range(first, end):
            # a word below the base becomes a large number
            place = np.uint64(words[i]) - np.uint64(base)
            slot = I64(-1)
            if place < size:
                slot = I64(places[place]) - 1
            out[i] = slot
            least = min(least, slot)
        # every word is a key
        if least == 0 and valid.size == 0:
            continue
        for i in range(first, end):
            is_null = valid.size > 0 and valid[i] == 0
            # nearly all rows of a block with a new key
            if out[i] >= 0 and not is_null:
                continue
            place = np.uint64(words[i]) - np.uint64(base)
            if is_null:
                entry = state[NULL]
            elif place < size:
                # read again: an earlier row of this block may have inserted it
                entry = I64(places[place])
            else:
                entry = I64(0)
            if entry == 0 and (is_null or place < size):
                # no slot left: the caller makes some and calls again from this row
                if state[FREE] == 0 and state[ALLOCATED] == keys.size:
                    return i
                entry = take_slot(free, state) + 1
                fresh[state[FRESH]] = entry - 1
                state[FRESH] += 1
                if is_null:
                    state[NULL] = entry
                else:
                    places[place] = entry
                    keys[entry - 1] = words[i]
            out[i] = entry - 1
    return words.size


@kernel(VOID(IN_I64, IN_U8, OUT_I32, I64, OUT_I64, OUT_I64))
def find(words, valid, places, base, state, out):
    """Write the slot of every row, -1 when its word is no key of the range."""
    size = np.uint64(places.size)
    for i in range(words.size):
        place = np.uint64(words[i]) - np.uint64(base)
        out[i] = -1
        if valid.size > 0 and valid[i] == 0:
            out[i] = state[NULL] - 1  # -1 while NULL has no slot
        elif place < size:
            out[i] = I64(places[place]) - 1


@kernel(VOID(IN_I64, IN_I64, OUT_I32, I64))
def fill(words, slots, places, base):
    """Write the slots of words of the range; a slot of -1 removes its word."""
    for i in range(words.size):
        places[words[i] - base] = slots[i] + 1
